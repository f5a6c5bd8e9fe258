"""PaddleOCR label files, also as PPOCRLabel leaves them; damaged lines are mended where there is one way only."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipelines.dataset.image_files import is_there
from pipelines.dataset.label_files import decoded, normalised_path, numbered_lines, split_label_line
from pipelines.errors import DataError
from pipelines.prep.page_groups import page_groups
from pipelines.prep.ppocrlabel import CROPS, Confirmed, confirmed, is_label_file, unknown_state
from pipelines.prep.raw import IMAGE_SUFFIXES, RawImage, RawRegion, RawText, is_ignore_mark, name_below
from pipelines.records import Fault

_SPACED = re.compile(r"^(\S.*?\.(?:jpe?g|png|bmp|tiff?|webp))\s+(\[.*\])\s*$", re.IGNORECASE)

_CONTROL = re.compile(r"[\x00-\x1f]")


def read_paddleocr(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """Images of a label file, or of the label files in a folder.

    `train*.txt` with `val*.txt` or `test*.txt` are the split, any others are split later.

    Raises:
        DataError: no label file, or none of its images found.
    """
    files = _label_files(source)
    found = _Found(images)
    states: list[Confirmed] = []
    for label, split in files:
        items = list(_entries_of(label))
        state = confirmed(label, [item.path for item in items if isinstance(item, _Entry)])
        states.append(state)
        yield from unknown_state(state, label)
        groups, told = page_groups(label)
        yield from told
        for item in items:
            if isinstance(item, Fault):
                yield item
                continue
            path = found.image_of(item, label)
            if isinstance(path, Fault):
                yield path
                continue
            regions = tuple(_raw_region(entry, item.line, n) for n, entry in enumerate(item.regions, 1))
            name, fault = name_below(path, source), state.fault(item.path)
            group = groups.get(path.resolve(), "")
            yield RawImage(path, name, str(label), item.line, regions, split, group, fault=fault)
    folder = images or files[0][0].parent
    found.require_one(folder)
    yield from _unlisted(folder, found.used, states)


def _unlisted(folder: Path, used: Container[Path], states: Sequence[Confirmed]) -> Iterator[Fault]:
    """A fault for every image below `folder` that no label file lists."""
    unlisted = "no label file lists it: left out; an image without text has a line of its own, `PATH<TAB>[]`"
    for picture in sorted(folder.rglob("*")):
        if picture.suffix.lower() in IMAGE_SUFFIXES and CROPS not in picture.parts and picture.resolve() not in used:
            reason = next(filter(None, (state.missing(picture) for state in states)), unlisted)
            yield Fault(str(picture), reason, "dropped")


def _label_files(source: Path) -> list[tuple[Path, str]]:
    """(file, split) of the label files at `source`; the split is "" unless train and val are both there."""
    if source.is_file():
        return [(source, "")]
    texts = [path for path in sorted(source.glob("*.txt")) if is_label_file(path)]
    if not texts:
        raise DataError(f"{source}: no label files; expected train.txt and val.txt, or Label.txt")
    val = [path for path in texts if path.stem.lower().startswith(("val", "test", "eval"))]
    train = [path for path in texts if path.stem.lower().startswith("train")]
    if not (train and val):
        return [(path, "") for path in texts]
    return [(path, "val") for path in val] + [(path, "train") for path in train]


def _candidates(written: str, label: Path, images: Path | None) -> list[Path]:
    """Where the image may be: below `images`, beside the label file, or, as PPOCRLabel writes it, one folder up."""
    roots = [images] if images else [label.parent, label.parent.parent]
    # A label line from Windows may name D:\scans\a.jpg: only its last part means anything here.
    path = normalised_path(written)
    tail = path.rsplit("/", 1)[-1]
    inside = [] if re.match(r"^[A-Za-z]:", path) else [root / path for root in roots]
    # So may an absolute path from another machine, which is looked for where it says first.
    is_absolute = not inside or path.startswith("/")
    # Archives made on Windows leave files whose very names hold back-slashes.
    unpacked = [root / written for root in roots if "\\" in written and inside]
    return list(dict.fromkeys([*inside, *(root / tail for root in roots if is_absolute or images), *unpacked]))


def _raw_region(entry: Any, line: int, number: int) -> RawRegion:
    known = entry if isinstance(entry, dict) else {}
    transcription = str(known.get("transcription", ""))
    is_ignored = is_ignore_mark(transcription) or known.get("difficult") is True
    return RawRegion(known.get("points"), transcription, is_ignored, line, f"region {number}")


@dataclass(frozen=True)
class _Entry:
    """A line of a label file: its number, image path, and regions as written."""

    line: int
    path: str
    regions: list[Any]


class _Found:
    """Finds the images of label lines, and remembers which it has found."""

    def __init__(self, images: Path | None):
        self.used: set[Path] = set()
        self._images = images
        self._tried: list[Path] = []

    def image_of(self, entry: _Entry, label: Path) -> Path | Fault:
        candidates = _candidates(entry.path, label, self._images)
        image = next((candidate for candidate in candidates if is_there(candidate)), None)
        if image is None:
            self._tried.append(candidates[0])
            reason = f"image not found: tried {', '.join(map(str, candidates))}"
            return Fault(str(label), reason, "dropped", entry.line)
        self.used.add(image.resolve())
        return image

    def require_one(self, folder: Path) -> None:
        """Refuse a source of which images were looked for and none found.

        Raises:
            DataError: so it is.
        """
        if self._tried and not self.used:
            raise DataError(
                f"0 of {len(self._tried)} images found under {folder}; first tried path: {self._tried[0]}; "
                "say where they are with --images DIR"
            )


def _entries_of(label: Path) -> Iterator[_Entry | Fault]:
    """Every line that can be read or mended, and what was done."""
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
        yield _Entry(number, path, entries)


def _mended(lines: list[tuple[int, str]], start: int) -> tuple[tuple[str, list[Any]], str, int] | None:
    """A damaged line read in the one way that makes sense: (path, entries), what was done, lines used."""
    line = lines[start][1]
    spaced = _SPACED.match(line)
    if spaced and "\t" not in line and (parsed := _parsed(f"{spaced[1]}\t{spaced[2]}")):
        return parsed, "spaces taken for the tab", 1
    path, tab, text = line.partition("\t")
    escaped = _CONTROL.sub(lambda character: f"\\u{ord(character[0]):04x}", text)
    if tab and escaped != text and (parsed := _parsed(f"{path}\t{escaped}")):
        return parsed, "taken as part of the text", 1
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
