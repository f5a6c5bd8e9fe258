"""YOLO: a text file an image with a line an object, numbers as shares of the image's width and height.

| numbers after the class | meaning |
|---|---|
| 4 | centre x, centre y, width, height |
| 5 | the same and a confidence, as predictions are saved: no label |
| 6 or more, even | a polygon x1 y1 x2 y2 ...; eight may as well be a turned box, which has the same outline |

`images/…/NAME.jpg` belongs to `labels/…/NAME.txt`; names and split are in `yolo_data`.
Source: docs.ultralytics.com/datasets (detect, segment, obb).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pipelines.dataset.encodings import decode
from pipelines.dataset.image_files import image_size_hw
from pipelines.errors import DataError
from pipelines.prep.raw import (
    ClassList,
    DefectItem,
    DrawnItem,
    RawImage,
    RawShape,
    Unlabelled,
    images_by_stem,
    name_below,
)
from pipelines.prep.shapes import as_defects, outline_of, rectangle
from pipelines.prep.yolo_data import NAME_LISTS, YoloData, YoloSplit, read_yolo_data
from pipelines.records import Fault

_NO_LABELS = frozenset({*NAME_LISTS, "train.txt", "val.txt", "valid.txt", "test.txt", "readme.txt", "notes.txt"})


def read_yolo(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Images of every label file below `source`, with the split of data.yaml, of lists, or of folders so called.

    An empty label file is an OK image, an image without one is unlabelled.

    Raises:
        DataError: no label files, or none of their images.
    """
    return as_defects(_drawn(source, images))


def _drawn(source: Path, images: Path | None) -> Iterator[DrawnItem]:
    data = read_yolo_data(source)
    texts = (path for path in sorted(source.rglob("*.txt")) if path.name.lower() not in _NO_LABELS)
    labels = [path for path in texts if path not in data.split.lists]
    if not labels:
        raise DataError(f"{source}: no label files; expected labels/NAME.txt for every image images/NAME.jpg")
    yield from data.faults
    yield ClassList(tuple(data.names.values()))
    pictures = images_by_stem((images or source).rglob("*"))
    found: list[RawImage[RawShape]] = []
    for label in labels:
        picture = _picture_of(label, pictures.get(label.stem, []))
        if isinstance(picture, str):
            yield Fault(str(label), picture, "dropped")
        else:
            found.append(_image(picture, label, source, data))
    if not found:
        raise DataError(f"0 of {len(labels)} label files have an image below {images or source}; first: {labels[0]}")
    yield from _with_split(found, data.split)
    used = {raw.image for raw in found}
    for path in sorted(path for paths in pictures.values() for path in paths if path not in used):
        yield Unlabelled(path, f"no label file {path.stem}.txt")


def _with_split(raws: Sequence[RawImage[RawShape]], split: YoloSplit) -> Iterator[RawImage[RawShape]]:
    """The images with their split, if the source has one; what is on neither side of it is left out."""
    sides = [split.side(raw.image, Path(raw.label)) for raw in raws]
    has_split = {"train", "val"} <= set(sides)
    for raw, side in zip(raws, sides, strict=True):
        is_lost = has_split and split.is_given and not side
        fault = raw.fault or ("is in neither train nor val: left out" if is_lost else "")
        yield replace(raw, split=side if has_split else "", fault=fault)


def _picture_of(label: Path, candidates: Sequence[Path]) -> Path | str:
    """The image of a label file, or why there is none."""
    if not candidates:
        return f"image not found: {label.stem}.jpg; say where with --images DIR"
    mirrored = Path(*("images" if part == "labels" else part for part in label.parent.parts))
    near = [path for path in candidates if path.parent in (mirrored, label.parent)] or list(candidates)
    if len(near) > 1:
        return f"{len(near)} images are called {label.stem}: {near[0]}, {near[1]}, ...; say which with --images DIR"
    return near[0]


def _image(picture: Path, label: Path, source: Path, data: YoloData) -> RawImage[RawShape]:
    fault = ""
    shapes: tuple[RawShape, ...] = ()
    try:
        lines = decode(label.read_bytes()).lines
        shapes = tuple(_shapes(lines, image_size_hw(picture), data))
    except OSError as error:
        fault = f"{label}: can't be read: {error.strerror or error}"
    except DataError as error:
        fault = str(error)
    return RawImage(picture, name_below(picture, source), str(label), None, shapes, fault=fault)


def _shapes(lines: Sequence[str], size_hw: tuple[int, int], data: YoloData) -> Iterator[RawShape]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _shape(line, f"line {number}", size_hw, data)


def _shape(line: str, item: str, size_hw: tuple[int, int], data: YoloData) -> RawShape:
    fields = line.split()
    try:
        class_id = _whole(fields[0])
        shares = [float(field) for field in fields[1:]]
    except ValueError:
        return RawShape(
            (), None, item=item, fault=f"expected a class number and numbers, but got {line.strip()[:60]!r}"
        )
    class_name = data.names.get(class_id, str(class_id))
    if data.has_key_points:
        shares = shares[:4]
    reason = _wrong(shares, class_id, data.names)
    if reason:
        return RawShape((), class_name, item=item, fault=reason)
    height, width = size_hw
    if len(shares) == 4:
        x, y, w, h = shares
        corners = rectangle((x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height)
        return RawShape(corners, class_name, item=item)
    points = [(x * width, y * height) for x, y in zip(shares[::2], shares[1::2], strict=True)]
    return RawShape(outline_of(points)[0], class_name, item=item)


def _whole(field: str) -> int:
    """A class number; numpy writes 1.000000e+00. Raises ValueError."""
    number = float(field)
    if not number.is_integer():
        raise ValueError(field)
    return int(number)


def _wrong(shares: Sequence[float], class_id: int, names: Mapping[int, str]) -> str:
    """Why a line is no label, or ""."""
    if names and class_id not in names:
        return f"class {class_id} is not among the {len(names)} names (0 to {max(names)})"
    if len(shares) == 5:
        return "six numbers are a prediction with its confidence, no label"
    if len(shares) < 4 or len(shares) % 2:
        return f"expected 4 numbers after the class, or 6 and more for a polygon, but got {len(shares)}"
    # A box drawn to the very edge may be rounded a little beyond it; pixels are far beyond.
    if not all(-0.01 <= share <= 1.01 for share in shares):
        worst = max(shares, key=lambda share: abs(share - 0.5))
        return f"expected shares of the image from 0 to 1, but got {worst:g}: are these pixels?"
    return ""
