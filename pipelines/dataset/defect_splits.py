"""A split of a defect dataset as records, with every fault found in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dataset.box_checks import box_faults, numeric_box
from pipelines.dataset.coco_files import CocoFile, entry_item, read_coco
from pipelines.dataset.image_files import image_size_hw, is_there
from pipelines.dataset.index import INDEX_NAME, read_index
from pipelines.dataset.label_files import normalised_path
from pipelines.dataset.splits import faults_message
from pipelines.errors import DataError
from pipelines.records import DefectAnnotation, Fault, Record

_WAY_OUT = "`wholebatch check` lists all of them; `wholebatch prepare defect` repairs what is safe to repair"


@dataclass(eq=False)
class _Image:
    """One usable image of the file, and the boxes found for it so far."""

    path: str
    item: str
    said_hw: tuple[Any, Any]
    boxes: list[tuple[float, float, float, float]] = field(default_factory=list)
    class_ids: list[int] = field(default_factory=list)
    is_ignored: list[bool] = field(default_factory=list)
    items: list[str] = field(default_factory=list)


def defect_classes(root: Path) -> tuple[str, ...]:
    """The class names in order: of `dataset.yml` if there is one, else as `train.json` lists its categories.

    Raises:
        DataError: neither file says them, or a name is there twice or is no text.
    """
    said, where = _said_classes(Path(root))
    if not said or not all(isinstance(name, str) and name for name in said):
        raise DataError(f"{where}: expected a list of class names, but got {said!r}")
    twice = [name for name, count in Counter(said).items() if count > 1]
    if twice:
        raise DataError(f"{where}: class {twice[0]!r} is there twice; `wholebatch prepare defect` makes it one")
    return tuple(said)


def _said_classes(root: Path) -> tuple[list[Any], Path]:
    """Whatever `dataset.yml`, else `train.json`, says are the class names, and which file it was.

    Raises:
        DataError: it can't be read.
    """
    index = read_index(root)
    if isinstance(index.get("classes"), list):
        return index["classes"], root / INDEX_NAME
    path = root / "train.json"
    try:
        return [category.get("name") for category in read_coco(path).categories], path
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def load_defect_split(root: Path, split: str) -> list[Record]:
    """All records of a split with their `DefectAnnotation`, in the label file's order; OK images have no defect.

    Class ids are positions in `defect_classes(root)`, found by name: neither ids nor order of the file's categories
    matter.

    Raises:
        DataError: every fault of the split in one message, each with file and entry.
    """
    records, faults = scan_defect_split(root, split)
    errors = [fault for fault in faults if fault.action == "error"]
    if errors:
        raise DataError(faults_message(f"{Path(root) / f'{split}.json'} can't be used", errors, _WAY_OUT))
    return records


def scan_defect_split(root: Path, split: str) -> tuple[list[Record], list[Fault]]:
    """The usable records of a split and everything that is wrong with the others, in the file's order."""
    root = Path(root)
    label_file = root / f"{split}.json"
    try:
        coco = read_coco(label_file)
        # Unusable names are told one by one below, with their place.
        classes = list(dict.fromkeys(name for name in _said_classes(root)[0] if isinstance(name, str) and name))
    except DataError as error:
        return [], [Fault(str(label_file), str(error), "error")]
    class_of, faults = _class_ids(coco, classes)
    images, found = _images(root, coco)
    faults += found + _add_boxes(coco, images, class_of)
    index = read_index(root)["images"]
    records = []
    for image in images.values():
        if image is not None:
            record, found = _record_of(root, label_file, image, index)
            faults += found
            records += [record] if record else []
    if not coco.images:
        faults.append(Fault(str(label_file), "lists no images", "error"))
    elif records and all(record.annotation.is_ok for record in records):
        reason = "holds no defect to learn or score: every image is OK, or has ignore regions alone"
        faults.append(Fault(str(label_file), reason, "error"))
    return records, faults


def _class_ids(coco: CocoFile, classes: Sequence[str]) -> tuple[dict[Any, int], list[Fault]]:
    """Class id by category id; both sides meet by name."""
    class_of: dict[Any, int] = {}
    faults = []
    for position, category in enumerate(coco.categories):
        name, key = category.get("name"), category.get("id")
        reason = ""
        if name not in classes:
            reason = f"category {name!r} is no class of this dataset ({', '.join(classes)})"
        elif type(key) is not int:
            reason = f"category {name!r}: expected a whole number as id, but got {key!r}"
        elif key in class_of:
            reason = f"category {name!r}: id {key} belongs to {classes[class_of[key]]!r} already"
        elif classes.index(name) in class_of.values():
            reason = f"category {name!r} is there twice"
        else:
            class_of[key] = classes.index(name)
        if reason:
            faults.append(Fault(str(coco.path), reason, "error", item=entry_item("categories", position, category)))
    return class_of, faults


def _images(root: Path, coco: CocoFile) -> tuple[dict[Any, _Image | None], list[Fault]]:
    """Images by id, None for one that can't be used; one fault for a wrong root, else one for each such image."""
    images: dict[Any, _Image | None] = {}
    faults: list[Fault] = []
    seen: set[str] = set()
    tried: list[Path] = []
    for position, entry in enumerate(coco.images):
        key, item = entry.get("id"), entry_item("images", position, entry)
        path, reason = _found(root, entry, tried)
        if type(key) is not int:
            reason, key = f"expected a whole number as id, but got {key!r}", item
        elif key in images:
            reason = f"id {key} belongs to another image already"
        elif path in seen:
            reason = f"{path} is listed twice"
        seen.add(path)
        if reason:
            faults.append(Fault(str(coco.path), reason, "error", item=item, image=path))
        if key not in images:
            said_hw = (entry.get("height"), entry.get("width"))
            images[key] = None if reason else _Image(path, item, said_hw)
    if tried and len(tried) == len(coco.images):
        reason = f"0 of {len(tried)} images found under {root}; first tried path: {tried[0]}"
        return dict.fromkeys(images), [Fault(str(coco.path), reason, "error")]
    return images, faults


def _found(root: Path, entry: Mapping[str, Any], tried: list[Path]) -> tuple[str, str]:
    """(path below root, "") of an image that is there, as written or in `images/`; else (path, reason)."""
    name = entry.get("file_name")
    if not isinstance(name, str) or not name.strip():
        return "", f"expected a file_name, but got {name!r}"
    path = normalised_path(name)
    for candidate in (path, f"images/{path}"):
        if is_there(root / candidate):
            return candidate, ""
    tried.append(root / path)
    return path, f"image not found: {root / path}"


def _add_boxes(coco: CocoFile, images: Mapping[Any, _Image | None], class_of: Mapping[Any, int]) -> list[Fault]:
    """Put every readable box on its image; a fault for every other."""
    faults: list[Fault] = []
    for position, entry in enumerate(coco.annotations):
        item = entry_item("annotations", position, entry)
        key, category, values = entry.get("image_id"), entry.get("category_id"), numeric_box(entry.get("bbox"))
        reason = ""
        # a key that can't be hashed can't be an id either
        if type(key) is not int or key not in images:
            reason = f"image_id {key!r} is no image of this file"
        elif type(category) is not int or category not in class_of:
            reason = f"category_id {category!r} is no usable category of this file"
        elif values is None:
            reason = f"expected a bbox of four numbers, but got {str(entry.get('bbox'))[:60]}"
        image = images.get(key) if type(key) is int else None
        if reason or values is None:
            faults.append(Fault(str(coco.path), reason, "error", item=item, image=image.path if image else ""))
            continue
        if image is not None:
            left, top, width, height = values
            image.boxes.append((left, top, left + width, top + height))
            image.class_ids.append(class_of[category])
            image.is_ignored.append(bool(entry.get("iscrowd")))
            image.items.append(item)
    return faults


def _record_of(
    root: Path, label_file: Path, image: _Image, index: Mapping[str, Any]
) -> tuple[Record | None, list[Fault]]:
    """The record of one image with its size, and the faults of its boxes."""
    known = index.get(image.path, {})
    try:
        height, width = known.get("size_hw") or image_size_hw(root / image.path)
    except DataError as error:
        return None, [Fault(str(label_file), str(error), "error", item=image.item, image=image.path)]
    if image.said_hw not in ((height, width), (None, None)):
        said = "{1} x {0}".format(*image.said_hw)
        reason = f"{image.path} has {width} x {height} px, but this file says {said}: labels of another picture?"
        return None, [Fault(str(label_file), reason, "error", item=image.item, image=image.path)]
    wrong = box_faults(image.boxes, (height, width))
    if wrong:
        return None, [Fault(str(label_file), reason, "error", None, image.items[i], image.path) for i, reason in wrong]
    # Rounding in the file may leave an edge a hundredth of a pixel outside.
    boxes = np.array(image.boxes, np.float32).reshape(-1, 4).clip(0, (width, height, width, height))
    annotation = DefectAnnotation(boxes, np.array(image.class_ids, np.int64), np.array(image.is_ignored, bool))
    return Record(image.path, (height, width), annotation, str(known.get("group", image.path))), []
