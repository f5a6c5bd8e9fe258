"""PaddleOCR label files, also as PPOCRLabel leaves them; damaged lines are mended where there is one way only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.dataset.image_files import is_there
from pipelines.dataset.label_files import decoded, normalised_path, numbered_lines, split_label_line
from pipelines.errors import DataError
from pipelines.prep.raw import IMAGE_SUFFIXES, RawImage, RawRegion, RawText, is_ignore_mark, name_below
from pipelines.records import Fault

_NOT_LABELS = ("filestate", "rec_gt")
"""What PPOCRLabel writes beside its Label.txt."""
_CROPS = "crop_img"
"""Where it puts the cut-out words for text recognition."""
_SPACED = re.compile(r"^(\S.*?\.(?:jpe?g|png|bmp|tiff?|webp))\s+(\[.*\])\s*$", re.IGNORECASE)


def read_paddleocr(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """Images of a label file, or of the label files in a folder.

    `train*.txt` with `val*.txt` or `test*.txt` are the split, any others are split later.

    Raises:
        DataError: no label file, or none of its images found.
    """
    files = _label_files(source)
    tried: list[Path] = []
    used: set[Path] = set()
    for label, split in files:
        for item in _entries_of(label):
            if isinstance(item, Fault):
                yield item
                continue
            number, path, entries = item
            candidates = _candidates(path, label, images)
            image = next((candidate for candidate in candidates if is_there(candidate)), None)
            if image is None:
                tried.append(candidates[0])
                reason = f"image not found: tried {', '.join(map(str, candidates))}"
                yield Fault(str(label), reason, "dropped", number)
                continue
            used.add(image.resolve())
            regions = tuple(_raw_region(entry, number, n) for n, entry in enumerate(entries, 1))
            yield RawImage(image, name_below(image, source), str(label), number, regions, split)
    folder = images or files[0][0].parent
    if tried and not used:
        raise DataError(
            f"0 of {len(tried)} images found under {folder}; first tried path: {tried[0]}; "
            "say where they are with --images DIR"
        )
    for picture in sorted(folder.rglob("*")):
        if picture.suffix.lower() in IMAGE_SUFFIXES and _CROPS not in picture.parts and picture.resolve() not in used:
            reason = "no label file lists it: left out; an image without text has a line of its own, `PATH<TAB>[]`"
            yield Fault(str(picture), reason, "dropped")


def _label_files(source: Path) -> list[tuple[Path, str]]:
    """(file, split) of the label files at `source`; the split is "" unless train and val are both there."""
    if source.is_file():
        return [(source, "")]
    texts = [path for path in sorted(source.glob("*.txt")) if not path.stem.lower().startswith(_NOT_LABELS)]
    if not texts:
        raise DataError(f"{source}: no label files; expected train.txt and val.txt, or Label.txt")
    val = [path for path in texts if path.stem.lower().startswith(("val", "test", "eval"))]
    train = [path for path in texts if path.stem.lower().startswith("train")]
    if not (train and val):
        return [(path, "") for path in texts]
    return [(path, "val") for path in val] + [(path, "train") for path in train]


def _candidates(path: str, label: Path, images: Path | None) -> list[Path]:
    """Where the image may be: below `images`, beside the label file, or, as PPOCRLabel writes it, one folder up."""
    roots = [images] if images else [label.parent, label.parent.parent]
    # A label line from Windows may name D:\scans\a.jpg: only its last part means anything here.
    tail = path.rsplit("/", 1)[-1]
    is_foreign = re.match(r"^[A-Za-z]:", path) is not None
    inside = [root / tail for root in roots] if is_foreign else [root / path for root in roots]
    return list(dict.fromkeys([*inside, roots[0] / tail] if images else inside))


def _raw_region(entry: Any, line: int, number: int) -> RawRegion:
    known = entry if isinstance(entry, dict) else {}
    transcription = str(known.get("transcription", ""))
    is_ignored = is_ignore_mark(transcription) or known.get("difficult") is True
    return RawRegion(known.get("points"), transcription, is_ignored, line, f"region {number}")


def _entries_of(label: Path) -> Iterator[tuple[int, str, list[Any]] | Fault]:
    """(line, path, region entries) of every line that can be read or mended, and what was done."""
    text, faults = decoded(label)
    yield from (replace(fault, action="repaired" if text else "dropped") for fault in faults)
    lines = list(numbered_lines(text))
    position = 0
    while position < len(lines):
        number, line = lines[position]
        position += 1
        try:
            path, entries = split_label_line(line)
        except DataError as error:
            mended = _mended(lines, position - 1)
            if mended is None:
                action = "dropped" if line.strip() else "repaired"
                yield Fault(str(label), f"{error}", action, number)
                continue
            (path, entries), how, used = mended
            position += used - 1
            yield Fault(str(label), f"{error}: {how}", "repaired", number)
        yield number, normalised_path(path), entries


def _mended(lines: list[tuple[int, str]], start: int) -> tuple[tuple[str, list[Any]], str, int] | None:
    """A damaged line read in the one way that makes sense: (path, entries), what was done, lines used."""
    line = lines[start][1]
    spaced = _SPACED.match(line)
    if spaced and "\t" not in line and (parsed := _parsed(f"{spaced[1]}\t{spaced[2]}")):
        return parsed, "spaces taken for the tab", 1
    # A line break inside a transcription cuts a line in two; its other half has no tab.
    for used in (2, 3):
        following = [text for _, text in lines[start + 1 : start + used]]
        if "\t" not in line or any("\t" in text for text in following):
            return None
        if parsed := _parsed("\\n".join([line, *following])):
            return parsed, f"joined with the next {used - 1} line(s)", used
    return None


def _parsed(line: str) -> tuple[str, list[Any]] | None:
    try:
        return split_label_line(line)
    except DataError:
        return None
