"""Receipts as ICDAR 2019 SROIE lays them out: `img/ID.jpg` and `box/ID.csv`, optional lists of ids as the split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import DataError
from pipelines.prep.corner_files import FOUR_CORNERS, corner_image
from pipelines.prep.raw import RawImage, RawText, images_by_stem
from pipelines.prep.split_lists import first_listings, read_lists
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
    listed, faults = first_listings(read_lists(source))
    yield from faults
    for key in listed or sorted(labels.keys() | pictures.keys()):
        if key not in labels:
            yield Fault(str(pictures.get(key, [image_folder / key])[0]), f"no label file {box / key}.csv", "dropped")
        elif key not in pictures:
            yield Fault(str(labels[key]), f"image not found: {image_folder / key}.jpg", "dropped")
        else:
            yield from _image(source, labels[key], pictures[key], listed[key].split if listed else "")
    if listed and (rest := sorted((labels.keys() | pictures.keys()) - listed.keys())):
        yield Fault(str(box), f"{len(rest)} ids are in no list and are left out, first {rest[0]}", "dropped")


def _image(source: Path, label: Path, pictures: list[Path], split: str) -> Iterator[RawText | Fault]:
    if len(pictures) > 1:
        reason = f"{len(pictures)} images have this id; {pictures[0].name} is taken, not {pictures[1].name}"
        yield Fault(str(label), reason, "warning")
    for item in corner_image(pictures[0], label, source, FOUR_CORNERS, split):
        yield item
        for region in item.regions if isinstance(item, RawImage) else ():
            if region.is_ignored:
                reason = f"the text {region.transcription!r} means an ignore region to PaddleOCR, and is kept as one"
                yield Fault(str(label), reason, "warning", region.line)
