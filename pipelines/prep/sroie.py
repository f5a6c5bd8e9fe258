"""Receipts as ICDAR 2019 SROIE lays them out: `img/ID.jpg` and `box/ID.csv`, optional lists of ids as the split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import DataError
from pipelines.prep.corner_files import read_corner_file
from pipelines.prep.raw import RawImage, RawText, images_by_stem, name_below
from pipelines.records import Fault


def read_sroie(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """Images of `source` by id; where `train.txt` and `val.txt` list ids, they are the split.

    Raises:
        DataError: no `box` folder, or no image folder.
    """
    box, image_folder = source / "box", images or source / "img"
    for folder in (box, image_folder):
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder; expected {source}/img/ID.jpg and {source}/box/ID.csv")
    labels = {path.stem: path for path in sorted(box.iterdir()) if path.suffix.lower() in (".csv", ".txt")}
    pictures = images_by_stem(image_folder.iterdir())
    split_of, faults = _listed_ids(source)
    yield from faults
    for key in split_of or sorted(labels.keys() | pictures.keys()):
        if key not in labels:
            yield Fault(str(pictures.get(key, [image_folder / key])[0]), f"no label file {box / key}.csv", "dropped")
        elif key not in pictures:
            yield Fault(str(labels[key]), f"image not found: {image_folder / key}.jpg", "dropped")
        else:
            yield from _image(source, labels[key], pictures[key], split_of.get(key, ""))
    if split_of and (rest := sorted(labels.keys() - split_of.keys())):
        yield Fault(str(box), f"{len(rest)} files are in no list and are left out, first {rest[0]}", "dropped")


def _image(source: Path, label: Path, pictures: list[Path], split: str) -> Iterator[RawText | Fault]:
    if len(pictures) > 1:
        reason = f"{len(pictures)} images have this id; {pictures[0].name} is taken, not {pictures[1].name}"
        yield Fault(str(label), reason, "warning")
    regions, faults = read_corner_file(label)
    yield from faults
    for region in regions:
        if region.is_ignored:
            reason = f"the text {region.transcription!r} means an ignore region to PaddleOCR, and is kept as one"
            yield Fault(str(label), reason, "warning", region.line)
    yield RawImage(pictures[0], name_below(pictures[0], source), str(label), None, regions, split)


def _listed_ids(source: Path) -> tuple[dict[str, str], list[Fault]]:
    """Split by id from `train.txt` and `val.txt`, {} unless both are there; an id in both stays in val."""
    lists = {split: source / f"{split}.txt" for split in ("val", "train")}
    if not all(path.is_file() for path in lists.values()):
        return {}, []
    split_of: dict[str, str] = {}
    faults: list[Fault] = []
    for split, path in lists.items():
        for number, line in enumerate(path.read_text("utf-8-sig").splitlines(), 1):
            key = line.strip()
            if key in split_of:
                faults.append(Fault(str(path), f"{key} is already listed for {split_of[key]}", "dropped", number))
            elif key:
                split_of[key] = split
    return split_of, faults
