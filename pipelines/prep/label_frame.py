"""The frame that labels were drawn in: the picture as it is shown, or its pixels as the file stores them.

A camera held upright stores its pixels lying and says so by an EXIF orientation. Some label tools show the picture
turned, some do not, and label files do not say which. What tells:

| found | the labels are taken as drawn on |
|---|---|
| `--label-frame displayed` or `raw` | what it says |
| the label file gives the size of one frame alone | that frame |
| boxes that lie in one frame, and of which one is mostly outside the other | that frame |
| size and boxes contradict each other | nothing: the image is left out |
| neither | that of the source's other images where these agree, else the displayed one; told |

Turned or not, labels of another picture or scale are left out here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from pipelines.dataset.box_checks import LARGEST_PX, numeric_box
from pipelines.geometry import transform_boxes, transform_points, upright_matrix
from pipelines.prep.images import ImageFacts
from pipelines.prep.raw import READ_AS_NUMBERS, RawBox, RawImage, RawRegion, Region
from pipelines.records import Fault

LabelFrame = Literal["auto", "displayed", "raw"]
LABEL_FRAMES: tuple[LabelFrame, ...] = ("auto", "displayed", "raw")

TURNED = "labels drawn on the picture as stored"
"""How the finding begins that says labels were turned with their picture."""

_ROUNDING_PX = 1.0
_Box = tuple[float, float, float, float]


class _Misplaced(Exception):
    """The labels can't belong to the picture as it is; the text says why."""


def usual_frame(labelled: Iterable[tuple[RawImage[Region], ImageFacts]]) -> LabelFrame:
    """The frame of images that tell nothing: that of the others where these agree, "auto" where they don't or can't."""
    told = set()
    for raw, facts in labelled:
        try:
            told.add(_told_frame(raw, facts))
        except _Misplaced:
            continue
    told.discard("auto")
    return told.pop() if len(told) == 1 else "auto"


def shown_labels(
    raw: RawImage[Region], facts: ImageFacts, asked: LabelFrame, usual: LabelFrame
) -> tuple[RawImage[Region] | None, list[Fault]]:
    """The labels where they lie on the picture as it is shown, None if the image can't be used; and what was found.

    Args:
        raw: labels as the reader gave them.
        facts: what decoding told.
        asked: the user's choice.
        usual: see `usual_frame`.
    """
    try:
        frame, faults = _frame(raw, facts, asked, usual)
        frame_hw = facts.stored_hw if frame == "raw" else facts.size_hw
        warning = _size_warning(raw, frame_hw, facts)
    except _Misplaced as error:
        return None, [Fault(raw.label, f"{raw.name}: {error}: the image is left out", "dropped", raw.line)]
    if warning:
        faults.append(Fault(raw.label, f"{raw.name}: {warning}", "warning", raw.line))
    if frame == "raw" and facts.orientation != 1 and raw.regions:
        raw, found = _turned(raw, facts)
        faults += found
    return raw, faults


def _frame(
    raw: RawImage[Region], facts: ImageFacts, asked: LabelFrame, usual: LabelFrame
) -> tuple[LabelFrame, list[Fault]]:
    """The frame to take the labels in, and what the user should know of that.

    Raises:
        _Misplaced: size and boxes contradict each other.
    """
    if facts.orientation == 1 or not raw.regions:
        return "displayed", []
    if asked != "auto":
        return asked, []
    told = _told_frame(raw, facts)
    if told != "auto":
        return told, []
    taken: LabelFrame = "displayed" if usual == "auto" else usual
    why = "" if usual == "auto" else ", as the others of this source are"
    reason = (
        f"{raw.name}: EXIF orientation {facts.orientation}, and nothing tells whether its labels were drawn on the"
        f" picture as shown or as stored: taken as drawn on the {taken} one{why}; --label-frame says otherwise"
    )
    return taken, [Fault(raw.label, reason, "warning", raw.line)]


def _told_frame(raw: RawImage[Region], facts: ImageFacts) -> LabelFrame:
    """The frame that size or boxes tell; "auto" where they don't, or where there is but one.

    Raises:
        _Misplaced: they contradict each other.
    """
    shown, stored = facts.size_hw, facts.stored_hw
    if shown == stored or not raw.regions:
        return "auto"
    by_size: LabelFrame = "displayed" if raw.said_hw == shown else "raw" if raw.said_hw == stored else "auto"
    boxes = _boxes(raw.regions)
    by_boxes: LabelFrame = "auto"
    if _only_fit(boxes, shown, stored):
        by_boxes = "displayed"
    elif _only_fit(boxes, stored, shown):
        by_boxes = "raw"
    if "auto" not in (by_size, by_boxes) and by_size != by_boxes:
        raise _Misplaced(
            f"the label file says {_wh(raw.said_hw)} px, the size of the {by_size} picture, but its boxes fit only the"
            f" {by_boxes} one of EXIF orientation {facts.orientation}; --label-frame {by_boxes} takes them so"
        )
    return by_boxes if by_size == "auto" else by_size


def _size_warning(raw: RawImage[Region], frame_hw: tuple[int, int], facts: ImageFacts) -> str:
    """What the user should know of the size that the label file says, or "".

    Raises:
        _Misplaced: the labels are of another picture or scale, or lie in the frame turned by 90 degrees.
    """
    boxes = _boxes(raw.regions)
    swapped = frame_hw[::-1]
    if _only_fit(boxes, swapped, frame_hw):
        raise _Misplaced(f"its boxes fit {_wh(swapped)} px but not its {_wh(frame_hw)} px: drawn on the turned image?")
    if raw.said_hw in (None, facts.size_hw, facts.stored_hw):
        return ""
    said = f"the label file says {_wh(raw.said_hw)} px, the picture has {_wh(frame_hw)} px"
    if not boxes:
        return said  # no text and no defect are none at any size
    if raw.said_hw == swapped:
        return f"{said}: width and height swapped? the boxes fit the picture and are kept as they are"
    if _fit(boxes, frame_hw) and not _fit(boxes, raw.said_hw):
        return f"{said}: the boxes fit the picture alone, and are kept as they are"
    raise _Misplaced(f"{said}: labels of another picture or scale?")


def _wh(size_hw: Sequence[Any] | None) -> str:
    return "none" if size_hw is None else f"{size_hw[1]} x {size_hw[0]}"


def _boxes(regions: Iterable[Any]) -> list[_Box]:
    """The box round every region that has numbers."""
    boxes = (_box(region) for region in regions)
    return [box for box in boxes if box is not None]


def _box(region: RawRegion | RawBox) -> _Box | None:
    if isinstance(region, RawBox):
        return numeric_box(region.corners)
    points = _points(region.points)
    if points is None:
        return None
    (left, top), (right, bottom) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return left, top, right, bottom


def _points(values: Any) -> np.ndarray | None:
    """Points as float64 (n, 2), n > 0, numbers written as text too; None if they are anything else."""
    try:
        points = np.array([[float(value) for value in point] for point in values])
    except (TypeError, ValueError, OverflowError):
        return None
    # nan compares as false
    is_usable = points.ndim == 2 and points.shape[1] == 2 and (np.abs(points) <= LARGEST_PX).all()
    return points if is_usable else None


def _fit(boxes: Sequence[_Box], size_hw: tuple[int, int]) -> bool:
    """Whether all boxes lie inside a frame, to a pixel."""
    height, width = size_hw
    return all(
        min(box) >= -_ROUNDING_PX and max(box[0::2]) <= width + _ROUNDING_PX and max(box[1::2]) <= height + _ROUNDING_PX
        for box in boxes
    )


def _only_fit(boxes: Sequence[_Box], size_hw: tuple[int, int], other_hw: tuple[int, int]) -> bool:
    """Whether all boxes lie in one frame and one is mostly outside the other: a small overshoot tells nothing."""
    return size_hw != other_hw and _fit(boxes, size_hw) and any(_is_mostly_outside(box, other_hw) for box in boxes)


def _is_mostly_outside(box: _Box, size_hw: tuple[int, int]) -> bool:
    """Whether less than half of a box lies inside a frame."""
    left, top, right, bottom = box
    height, width = size_hw
    seen_width = abs(min(max(right, 0), width) - min(max(left, 0), width))
    seen_height = abs(min(max(bottom, 0), height) - min(max(top, 0), height))
    area = abs((right - left) * (bottom - top))
    return area > 0 and seen_width * seen_height < 0.5 * area


def _turned(raw: RawImage[Region], facts: ImageFacts) -> tuple[RawImage[Region], list[Fault]]:
    """The image with its labels turned as its pixels are, and what was done."""
    matrix = upright_matrix(facts.orientation, facts.stored_hw)
    size = f"{_wh(facts.stored_hw)} px"
    reason = f"{raw.name}: {TURNED} ({size}): turned with it by EXIF orientation {facts.orientation}"
    faults = [Fault(raw.label, reason, "repaired", raw.line)]
    regions: list[Any] = []
    for region in raw.regions:
        if isinstance(region, RawRegion) and _has_text_numbers(region):
            faults.append(Fault(raw.label, READ_AS_NUMBERS, "repaired", region.line, region.item))
        regions.append(_turned_region(region, matrix))
    return replace(raw, regions=tuple(regions)), faults


def _has_text_numbers(region: RawRegion) -> bool:
    return _points(region.points) is not None and any(isinstance(value, str) for p in region.points for value in p)


def _turned_region(region: Any, matrix: np.ndarray) -> Any:
    """A region turned; as it is where it has no numbers, so that its reader's or the repair's finding stands."""
    if isinstance(region, RawBox):
        box = numeric_box(region.corners)
        if box is None:
            return region
        return replace(region, corners=tuple(transform_boxes(np.array([box]), matrix)[0].tolist()))
    points = _points(region.points)
    return region if points is None else replace(region, points=transform_points(points, matrix).tolist())
