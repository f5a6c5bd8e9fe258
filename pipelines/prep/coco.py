"""COCO: one JSON, or one a split; ids mean something inside their own file only, classes go by name."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.dataset.coco_files import CocoFile, entry_item, read_coco
from pipelines.errors import DataError
from pipelines.prep.coco_entries import Tally, identity, raw_box
from pipelines.prep.named_images import NamedImage, NamedImages
from pipelines.prep.raw import ClassList, DefectItem, RawBox, RawDefects, Unlabelled, size_from
from pipelines.prep.split_lists import side_of
from pipelines.records import Fault


@dataclass(eq=False)
class _Listed:
    """An image of a COCO file with what has been found for it."""

    entry: dict[str, Any]
    item: str
    fault: str = ""
    boxes: list[RawBox] = field(default_factory=list)


def read_coco_source(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Images of a COCO file, or of those in a folder, in its `annotations`, or one in each of its folders.

    Files or folders called `…train…` together with `…val…` or `…test…` are the split, any others are split later.

    Raises:
        DataError: no COCO file, or none of its images found.
    """
    files = _label_files(source)
    found = NamedImages(source, images)
    for path, split in files:
        try:
            coco = read_coco(path)
        except DataError as error:
            if len(files) == 1:
                raise DataError(f"{path}: {error}") from None
            yield Fault(str(path), str(error), "dropped")
            continue
        yield ClassList(tuple(c["name"] for c in coco.categories if isinstance(c.get("name"), str)))
        yield from _images_of(coco, found, split)
    yield from found.unlisted([path for path, _ in files])


def _label_files(source: Path) -> list[tuple[Path, str]]:
    """(file, split) at `source`, train first; the split is "" unless train and val are both there."""
    if source.is_file():
        return [(source, "")]
    found = (sorted(source.glob(pattern)) for pattern in ("*.json", "annotations/*.json", "*/*.json"))
    files: list[Path] = next(filter(None, found), [])
    if not files:
        expected = "NAME.json, or train.json and val.json, there or in a folder of it"
        raise DataError(f"{source}: no COCO file; expected {expected}")
    sides = {path: side_of(path.relative_to(source).as_posix()) for path in files}
    has_split = {"train", "val"} <= set(sides.values())
    return sorted(
        ((path, sides[path] if has_split else "") for path in files), key=lambda pair: (pair[1] != "train", pair)
    )


def _images_of(coco: CocoFile, found: NamedImages, split: str) -> Iterator[RawDefects | Unlabelled | Fault]:
    """Every image of a file that is there, with its boxes; and everything wrong with the file's entries."""
    tally = Tally(str(coco.path))
    images, faults = _by_id(coco, tally)
    yield from faults
    yield from _add_boxes(coco, images, tally)
    yield from tally.faults()
    for listed in images.values():
        name, boxes = str(listed.entry.get("file_name")), tuple(listed.boxes)
        said_hw = size_from(listed.entry.get("height"), listed.entry.get("width"))
        entry = NamedImage((name,), listed.item, boxes, split, said_hw, listed.fault)
        yield from found.located(entry, coco.path)


def _by_id(coco: CocoFile, tally: Tally) -> tuple[dict[Hashable, _Listed], list[Fault]]:
    """Images by id; where an id belongs to several images none of them can be used."""
    images: dict[Hashable, _Listed] = {}
    faults = []
    for position, entry in enumerate(coco.images):
        item = entry_item("images", position, entry)
        key = identity(entry.get("id"), item, tally)
        if not isinstance(entry.get("file_name"), str) or not entry["file_name"].strip() or key is None:
            reason = f"expected an id and a file_name, but got {entry.get('id')!r} and {entry.get('file_name')!r}"
            faults.append(Fault(str(coco.path), reason, "dropped", item=item))
            continue
        first = images.setdefault(key, _Listed(entry, item))
        if first.entry["file_name"] != entry["file_name"]:
            both = f"{first.entry['file_name']} and {entry['file_name']}"
            way_out = "if two exports were joined, give them as two files in one folder"
            first.fault = f"id {key} belongs to {both}, so nobody knows whose its boxes are: left out; {way_out}"
            # An entry of its own, which no box can reach.
            images[key, position] = _Listed(entry, item, first.fault)
        elif first.entry is not entry:
            reason = f"{entry['file_name']} is there twice under id {key}: kept once"
            faults.append(Fault(str(coco.path), reason, "repaired", item=item))
    return images, faults


def _add_boxes(coco: CocoFile, images: Mapping[Hashable, _Listed], tally: Tally) -> list[Fault]:
    """Put every annotation on its image, whatever is wrong with it; faults for those without one."""
    names, faults = _names_by_id(coco, tally)
    seen: set[Hashable] = set()
    for position, entry in enumerate(coco.annotations):
        item = entry_item("annotations", position, entry)
        number = identity(entry.get("id"), item, tally)
        if number is not None and number in seen:
            tally.add("an annotation's id is there already: numbered anew", item)
        seen.add(number)
        listed = images.get(identity(entry.get("image_id"), item, tally))
        if listed is None:
            reason = f"image_id {entry.get('image_id')!r} is no image of this file"
            faults.append(Fault(str(coco.path), reason, "dropped", item=item))
            continue
        category = identity(entry.get("category_id"), item, tally)
        box = raw_box(entry, names.get(category), item, tally)
        if category not in names:
            box = replace(box, fault=f"category_id {entry.get('category_id')!r} is no category of this file")
        listed.boxes.append(box)
    return faults


def _names_by_id(coco: CocoFile, tally: Tally) -> tuple[dict[Hashable, str], list[Fault]]:
    """Class names by category id; an id of two names means neither."""
    names: dict[Hashable, str] = {}
    clashing: set[Hashable] = set()
    faults = []
    for position, category in enumerate(coco.categories):
        item = entry_item("categories", position, category)
        key, name = identity(category.get("id"), item, tally), category.get("name")
        reason = ""
        if key is None or not isinstance(name, str) or not name.strip():
            reason = f"expected an id and a name, but got {category.get('id')!r} and {name!r}"
        elif names.setdefault(key, name) != name:
            clashing.add(key)
            reason = f"id {key} means {names[key]!r} and {name!r}: its boxes can't be used"
        if reason:
            faults.append(Fault(str(coco.path), reason, "dropped", item=item))
    return {key: name for key, name in names.items() if key not in clashing}, faults
