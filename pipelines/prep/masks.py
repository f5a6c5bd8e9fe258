"""Masks: a picture beside each image in which every spot that is not black is a defect; spots become boxes.

| layout | class |
|---|---|
| `ground_truth/CLASS/NAME_mask.png` with `test/CLASS/NAME.png`, `good` folders (MVTec AD) | the folder |
| `masks/…/NAME.png`, or `NAME_mask.png` beside `NAME.jpg` | the folder below `masks`, else by value, else "defect" |

By value: where `classes.txt` names them, spots of each value are a class of their own (see `mask_pixels`).
Spots are 8-connected; those under `MIN_AREA_PX` are left out and told. MVTec AD: Bergmann et al. 2019,
https://www.mvtec.com/company/research/datasets/mvtec-ad.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import cv2
import numpy as np

from pipelines.dataset.image_files import image_size_hw
from pipelines.errors import DataError
from pipelines.prep.mask_pixels import MaskClasses, defect_values, mask_classes, present_values
from pipelines.prep.raw import (
    IMAGE_SUFFIXES,
    ClassList,
    DefectItem,
    RawBox,
    RawDefects,
    RawImage,
    Unlabelled,
    images_by_stem,
    name_below,
)
from pipelines.prep.split_lists import side_of
from pipelines.records import Fault

MIN_AREA_PX = 4
_MASK_FOLDERS = frozenset({"masks", "mask", "ground_truth", "groundtruth"})
_ENDING = "_mask"
_OK_FOLDERS = frozenset({"good", "ok"})
_ONLY_CLASS = "defect"


def read_masks(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Images of every mask below `source`; images in folders called good or ok are OK without one.

    Raises:
        DataError: no mask below `source`, or none of their images.
    """
    files = [path for path in sorted(source.rglob("*")) if path.suffix.lower() in IMAGE_SUFFIXES]
    masks = [path for path in files if _is_mask(path, source)]
    if not masks:
        raise DataError(
            f"{source}: no masks; expected ground_truth/CLASS/NAME_mask.png, masks/NAME.png or NAME_mask.png"
        )
    classes = mask_classes(source)
    yield ClassList(tuple(classes.names.values()))
    others = sorted(images.rglob("*")) if images else [path for path in files if path not in set(masks)]
    pictures = images_by_stem(others)
    used: set[Path] = set()
    for mask in masks:
        try:
            picture = _picture_of(mask, pictures)
        except DataError as error:
            yield Fault(str(mask), str(error), "dropped")
            continue
        used.add(picture)
        yield from _image(picture, mask, source, classes)
    if not used:
        raise DataError(f"0 of {len(masks)} masks have an image below {images or source}; first tried: {masks[0]}")
    yield from _without_mask(sorted(path for paths in pictures.values() for path in paths if path not in used), source)


def _without_mask(pictures: list[Path], source: Path) -> Iterator[RawDefects | Unlabelled]:
    for path in pictures:
        if _OK_FOLDERS & {part.lower() for part in path.parts}:
            yield RawImage(path, name_below(path, source), str(path.parent), None, ())
        else:
            yield Unlabelled(path, f"no mask {path.stem}{_ENDING}.png")


def _is_mask(path: Path, source: Path) -> bool:
    folders = {part.lower() for part in path.relative_to(source).parts[:-1]}
    return bool(_MASK_FOLDERS & folders) or path.stem.lower().endswith(_ENDING)


def _stem(mask: Path) -> str:
    return mask.stem[: -len(_ENDING)] if mask.stem.lower().endswith(_ENDING) else mask.stem


def _picture_of(mask: Path, pictures: Mapping[str, list[Path]]) -> Path:
    """The image of a mask: of several with its stem the one in a folder of the same name.

    Raises:
        DataError: there is none, or any of several may be meant.
    """
    candidates = pictures.get(_stem(mask), [])
    near = [path for path in candidates if path.parent.name == mask.parent.name] or candidates
    near = [path for path in near if path.parent == mask.parent] or near
    if not near:
        raise DataError(f"image not found: {_stem(mask)}.png; say where with --images DIR")
    if len(near) > 1:
        raise DataError(f"{len(near)} images are called {_stem(mask)}: {near[0]}, {near[1]}, ...; which one is meant?")
    return near[0]


def _image(picture: Path, mask: Path, source: Path, classes: MaskClasses) -> Iterator[RawDefects | Fault]:
    boxes: list[RawBox] = []
    num_small, fault = 0, ""
    try:
        class_name = _folder_class(mask, source)
        values, by_value = defect_values(mask, MaskClasses() if class_name else classes)
        size_hw = image_size_hw(picture)
        if values.shape != size_hw:
            fault = f"its mask has {values.shape[1]} x {values.shape[0]} px, the image {size_hw[1]} x {size_hw[0]}"
        else:
            boxes, num_small = _spots(values, by_value, class_name or _ONLY_CLASS)
    except DataError as error:
        fault = str(error)
    if num_small:
        yield Fault(str(mask), f"{num_small} spots under {MIN_AREA_PX} px are left out", "dropped")
    if num_small and not boxes:
        fault = f"all its spots are under {MIN_AREA_PX} px: neither a defect nor OK"
    yield RawImage(picture, name_below(picture, source), str(mask), None, tuple(boxes), fault=fault)


def _folder_class(mask: Path, source: Path) -> str:
    """The folder of a mask below the folder of masks, "" if it lies in that itself or in a side of a split."""
    parts = mask.relative_to(source).parts[:-1]
    above = next((place for place, part in enumerate(parts) if part.lower() in _MASK_FOLDERS), len(parts))
    named = [part for part in parts[above + 1 :] if not side_of(part)]
    return named[-1] if named else ""


def _spots(values: np.ndarray, by_value: Mapping[int, str], other: str) -> tuple[list[RawBox], int]:
    """A box round every connected spot of one value, and how many were too small.

    Args:
        values: int32 (h, w), 0 where there is no defect.
        by_value: class names; spots of other values are of the class `other`.
        other: its name.
    """
    boxes: list[RawBox] = []
    num_small = 0
    for value in present_values(values):
        is_spot = (values == value).astype(np.uint8)
        _, _, found, _ = cv2.connectedComponentsWithStats(is_spot, connectivity=8)
        for left, top, width, height, area in found[1:].tolist():
            if area < MIN_AREA_PX:
                num_small += 1
                continue
            corners = (left, top, left + width, top + height)
            boxes.append(RawBox(corners, by_value.get(value, other), item=f"spot {len(boxes) + num_small + 1}"))
    return boxes, num_small
