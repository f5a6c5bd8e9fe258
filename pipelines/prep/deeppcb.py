"""DeepPCB: `ID_test.jpg` with defects, `ID_temp.jpg` of the same board without any, boxes in `ID.txt`.

The lists name a pair a line, `group/ID.jpg group_not/ID.txt`; label lines are `x1 y1 x2 y2 class` (README of the
DeepPCB repository; class 0 is background and is never used).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pipelines.dataset.encodings import EncodingError, decode
from pipelines.dataset.image_files import is_there
from pipelines.errors import DataError
from pipelines.prep.raw import ClassList, DefectItem, RawBox, RawDefects, RawImage, name_below
from pipelines.prep.split_lists import ListLine, first_listings, read_lists
from pipelines.records import Fault

CLASSES = ("open", "short", "mousebite", "spur", "copper", "pin-hole")
"""Numbered from 1."""


def read_deeppcb(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Both images of every listed board, in one group: the board's folder, as its crops look alike.

    `train.txt` or `trainval.txt`, and `val.txt` or `test.txt`, are the split.

    Raises:
        DataError: the lists are not there, or none of their images is.
    """
    lines, faults = first_listings(read_lists(source))
    if not lines:
        raise DataError(f"{source}: expected train.txt (or trainval.txt) and val.txt (or test.txt) with pairs a line")
    yield ClassList(CLASSES)
    yield from faults
    root = images or source
    tried = []
    for line in lines.values():
        pair = line.text.split()
        board = PurePosixPath(pair[0])
        label = source / pair[1] if len(pair) == 2 else None
        found = {kind: root / board.parent / f"{board.stem}_{kind}.jpg" for kind in ("test", "temp")}
        missing = [path for path in found.values() if not is_there(path)]
        tried += missing
        yield from (Fault(str(line.file), f"image not found: {path}", "dropped", line.line) for path in missing)
        if label is None or not is_there(label):
            reason = f"expected an image and its label file, but got {line.text!r}"
            yield Fault(str(line.file), reason if label is None else f"no label file {label}", "dropped", line.line)
        elif is_there(found["test"]):
            boxes, fault = _boxes(label)
            yield _image(found["test"], source, str(label), boxes, line, fault)
        if is_there(found["temp"]):
            yield _image(found["temp"], source, str(line.file), (), line)
    if len(tried) == 2 * len(lines):
        raise DataError(f"0 of {len(tried)} images found under {root}; first tried path: {tried[0]}")


def _boxes(label: Path) -> tuple[tuple[RawBox, ...], str]:
    """The boxes of a label file, and why it can't be read, or ""."""
    try:
        texts = decode(label.read_bytes()).lines
    except OSError as error:
        return (), f"its label file can't be read: {error.strerror or error}"
    except EncodingError as error:
        return (), f"its label file can't be read: line {error.line}: {error}"
    return tuple(_box(text, number) for number, text in enumerate(texts, 1) if text.strip()), ""


def _image(
    path: Path, source: Path, label: str, boxes: tuple[RawBox, ...], line: ListLine, fault: str = ""
) -> RawDefects:
    group = line.text.split("/")[0] if "/" in line.text else line.key
    line_number = None if boxes else line.line
    return RawImage(path, name_below(path, source), label, line_number, boxes, line.split, group, fault=fault)


def _box(text: str, number: int) -> RawBox:
    try:
        left, top, right, bottom, class_number = (float(word) for word in text.replace(",", " ").split())
    except ValueError:
        return RawBox(None, None, line=number, fault=f"expected x1 y1 x2 y2 class, but got {text[:60]!r}")
    corners = (left, top, right, bottom)
    if class_number not in range(1, len(CLASSES) + 1):
        reason = f"class {class_number:g} is none of 1 to {len(CLASSES)} ({', '.join(CLASSES)})"
        return RawBox(corners, None, line=number, fault=reason)
    return RawBox(corners, CLASSES[int(class_number) - 1], line=number)
