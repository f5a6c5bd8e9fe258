"""ICDAR 2013 and 2015 text localisation: `gt_NAME.txt` with a region a line, `NAME.jpg` beside it or elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import DataError
from pipelines.prep.corner_files import BOX_OR_CORNERS, FOUR_CORNERS, LineFormat, corner_image
from pipelines.prep.raw import RawText, images_by_stem
from pipelines.prep.split_lists import side_of_folders
from pipelines.records import Fault


def read_icdar2013(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """As `read_icdar2015`, with upright boxes: `x1 y1 x2 y2 "text"`, or with commas."""
    return _read(source, images, BOX_OR_CORNERS)


def read_icdar2015(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """Images of every `gt_*.txt` below `source`, looked for below `images`, else below `source`.

    The original download names its folders "...training..." and "...test...": they are the split if both are there.

    Raises:
        DataError: no such label file.
    """
    return _read(source, images, FOUR_CORNERS)


def _read(source: Path, images: Path | None, format: LineFormat) -> Iterator[RawText | Fault]:
    labels = sorted(source.rglob("gt_*.txt"))
    if not labels:
        raise DataError(f"{source}: no label files; expected gt_NAME.txt for every image NAME.jpg")
    pictures = images_by_stem((images or source).rglob("*"))
    splits = {label: side_of_folders(label, source) for label in labels}
    has_split = set(splits.values()) == {"train", "val"}
    labelled: set[Path] = set()
    for label in labels:
        found = _matching(label, pictures.get(label.stem.removeprefix("gt_"), []), source)
        labelled.update(found)
        if len(found) != 1:
            yield Fault(str(label), _lookup_reason(label, found, images or source), "dropped")
            continue
        yield from corner_image(found[0], label, source, format, splits[label] if has_split else "")
    for path in sorted(path for paths in pictures.values() for path in paths if path not in labelled):
        yield Fault(str(path), f"no label file gt_{path.stem}.txt", "dropped")


def _matching(label: Path, candidates: list[Path], source: Path) -> list[Path]:
    """Of images with the right name those nearest to the label file: same folder, else same split, else all."""
    beside = [path for path in candidates if path.parent == label.parent]
    alike = [path for path in candidates if side_of_folders(path, source) == side_of_folders(label, source)]
    return beside or alike or candidates


def _lookup_reason(label: Path, found: list[Path], folder: Path) -> str:
    stem = label.stem.removeprefix("gt_")
    if not found:
        return f"image not found: {stem}.jpg below {folder}"
    return f"{len(found)} images are called {stem}: {found[0]}, {found[1]}, ...; choose a folder with --images"
