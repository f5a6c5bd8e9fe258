"""From raw boxes to a defect annotation: repaired only where one repair is right, and always told.

| fault | action |
|---|---|
| coordinates written as text ("12.5"), no bbox but an outline | read (by the format's reader) |
| corners reversed | swapped |
| reaches outside the image | clipped to the image |
| one object twice | kept once |
| no numbers, a side under 1 px, wholly outside, no usable class | the box is dropped |
| every box of an image dropped | the image is left out: nobody knows whether it is OK |

The frame that boxes were drawn in is `label_frame`'s to find.
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
    faults: list[Fault] = []
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
