"""From raw boxes to a defect annotation: repaired only where one repair is right, and always told.

| fault | action |
|---|---|
| coordinates written as text ("12.5"), no bbox but an outline | read (by the format's reader) |
| corners reversed | swapped |
| reaches outside the image | clipped to the image |
| one object twice | kept once |
| no numbers, a side under 1 px, wholly outside, no usable class | the box is dropped |
| every box of an image dropped | the image is left out: nobody knows whether it is OK |
| labels drawn on an image of another size, or on the image turned by 90 degrees | the image is left out |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.dataset.box_checks import MIN_SIDE_PX, box_faults, numeric_box, shown_box
from pipelines.prep.class_names import ClassNames, Meaning
from pipelines.prep.images import ImageFacts
from pipelines.prep.raw import RawBox, RawDefects
from pipelines.records import DefectAnnotation, Fault


class DroppedBox(Exception):
    """A box with nothing left to learn from; the text says why."""


Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class _Kept:
    box: Box
    class_id: int
    is_ignored: bool


def annotate_boxes(
    raw: RawDefects, facts: ImageFacts, classes: ClassNames
) -> tuple[DefectAnnotation | None, list[Fault]]:
    """All boxes of an image that can be used, None if the image can't be, and a fault for every change."""
    reason, warning = _frame(raw, facts)
    if reason:
        return None, [Fault(raw.label, f"{raw.name}: {reason}: the image is left out", "dropped", raw.line)]
    faults = [Fault(raw.label, f"{raw.name}: {warning}", "warning", raw.line)] if warning else []
    kept: list[_Kept] = []
    num_dropped = 0
    for region in raw.regions:
        meaning = classes.meanings.get(region.class_name) if isinstance(region.class_name, str) else None
        if meaning is not None and meaning.class_id < 0 and not meaning.fault:
            continue  # of a class that the user did not choose; told once a class
        try:
            candidate, repairs = _repaired(region, meaning, facts.size_hw)
        except DroppedBox as error:
            num_dropped += 1
            faults.append(Fault(raw.label, str(error), "dropped", region.line, region.item))
            continue
        if candidate in kept:
            repairs = (*repairs, f"the same box and class twice {shown_box(candidate.box)}: kept once")
        else:
            kept.append(candidate)
        if repairs:
            faults.append(Fault(raw.label, "; ".join(repairs), "repaired", region.line, region.item))
    if num_dropped and not kept:
        reason = f"{raw.name}: none of its {num_dropped} box(es) can be used, so it may not be OK: left out"
        return None, [*faults, Fault(raw.label, reason, "dropped", raw.line)]
    return _annotation(kept), faults


def _annotation(kept: Sequence[_Kept]) -> DefectAnnotation:
    return DefectAnnotation(
        np.array([one.box for one in kept], np.float32).reshape(-1, 4),
        np.array([one.class_id for one in kept], np.int64),
        np.array([one.is_ignored for one in kept], bool),
    )


def _repaired(region: RawBox, meaning: Meaning | None, size_hw: tuple[int, int]) -> tuple[_Kept, tuple[str, ...]]:
    """The box with every safe repair, and what was done.

    Raises:
        DroppedBox: nothing usable is left.
    """
    if region.fault:
        raise DroppedBox(region.fault)
    if meaning is None:
        raise DroppedBox(f"expected a class name, but got {region.class_name!r}")
    if meaning.fault:
        raise DroppedBox(meaning.fault)
    box = numeric_box(region.corners)
    if box is None:
        raise DroppedBox(f"expected a box of four finite numbers, but got {str(region.corners)[:60]}")
    repairs = list(region.repairs)
    left, top, right, bottom = box
    if right < left or bottom < top:
        repairs.append(f"corners reversed {shown_box(box)}: swapped")
        box = (min(left, right), min(top, bottom), max(left, right), max(top, bottom))
    if not box_faults([box], size_hw):
        return _Kept(box, meaning.class_id, region.is_ignored or meaning.is_ignored), tuple(repairs)
    clipped = _clipped(box, size_hw)
    if min(box[2] - box[0], box[3] - box[1]) < MIN_SIDE_PX:
        raise DroppedBox(f"encloses no area (a side under {MIN_SIDE_PX:g} px): {shown_box(box)}")
    height, width = size_hw
    if min(clipped[2] - clipped[0], clipped[3] - clipped[1]) < MIN_SIDE_PX:
        raise DroppedBox(f"lies outside the image of {width} x {height} px: {shown_box(box)}")
    repairs.append(f"reaches outside the image of {width} x {height} px {shown_box(box)}: clipped")
    return _Kept(clipped, meaning.class_id, region.is_ignored or meaning.is_ignored), tuple(repairs)


def _clipped(box: Box, size_hw: tuple[int, int]) -> Box:
    height, width = size_hw
    left, right = (min(max(value, 0.0), width) for value in box[0::2])
    top, bottom = (min(max(value, 0.0), height) for value in box[1::2])
    return left, top, right, bottom


def _frame(raw: RawDefects, facts: ImageFacts) -> tuple[str, str]:
    """(why the boxes can't belong to the picture as it is shown, what the user should know), each or both ""."""
    actual = facts.size_hw
    swapped = actual[::-1]
    boxes = [box for box in (numeric_box(region.corners) for region in raw.regions) if box is not None]
    shown = f"{actual[1]} x {actual[0]} px"
    only_turned = actual != swapped and _fit(boxes, swapped) and any(_is_mostly_outside(box, actual) for box in boxes)
    if only_turned:
        return f"its boxes fit {swapped[1]} x {swapped[0]} px but not its {shown}: drawn on the turned image?", ""
    if raw.said_hw in (None, actual):
        return "", ""
    said = f"the label file says {raw.said_hw[1]} x {raw.said_hw[0]} px, the picture has {shown}"
    if not boxes:
        return "", said  # an OK image is OK at any size
    if raw.said_hw != swapped:
        return f"{said}: labels of another picture or scale?", ""
    if facts.is_turned:
        return f"{said} and is turned by its EXIF: the labels were drawn before turning", ""
    return "", f"{said}: width and height swapped? the boxes fit the picture and are kept as they are"


def _fit(boxes: Sequence[Box], size_hw: tuple[int, int]) -> bool:
    """Whether all boxes lie inside a frame, to a pixel."""
    return all(
        min(box) >= -1 and max(box[0::2]) <= size_hw[1] + 1 and max(box[1::2]) <= size_hw[0] + 1 for box in boxes
    )


def _is_mostly_outside(box: Box, size_hw: tuple[int, int]) -> bool:
    """Whether less than half of a box lies inside a frame."""
    left, top, right, bottom = box
    inside = _clipped(box, size_hw)
    area, area_inside = abs((right - left) * (bottom - top)), abs((inside[2] - inside[0]) * (inside[3] - inside[1]))
    return area > 0 and area_inside < 0.5 * area
