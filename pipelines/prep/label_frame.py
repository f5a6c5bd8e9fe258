"""The frame labels were drawn in: the picture as it is shown, or its stored pixels before EXIF turns them.

Tools differ in whether they honour EXIF, so what an image's labels say decides, and where nothing does, this is told:

| evidence | frame |
|---|---|
| all labels lie inside one frame, and some mostly outside the other | that one |
| else the label file says the size of one frame | that one |
| else (a mirrored, half-turned or square picture; no size and small coordinates) | as shown, with a warning |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from pipelines.dataset.box_checks import LARGEST_PX, numeric_box
from pipelines.prep.images import ImageFacts
from pipelines.prep.raw import RawBox, RawImage, RawRegion, Region
from pipelines.records import Fault

LabelFrame = Literal["auto", "displayed", "raw"]
"""As `--label-frame` has it; "raw" are the stored pixels, as the sensor gave them."""
LABEL_FRAMES: tuple[str, ...] = get_args(LabelFrame)

Box = tuple[float, float, float, float]
# EXIF orientation (EXIF 2.3, section 4.6.4) as shown = linear @ stored + shift x (stored width, stored height)
_TURNS: dict[int, tuple[list[list[float]], list[list[float]]]] = {
    1: ([[1, 0], [0, 1]], [[0, 0], [0, 0]]),
    2: ([[-1, 0], [0, 1]], [[1, 0], [0, 0]]),
    3: ([[-1, 0], [0, -1]], [[1, 0], [0, 1]]),
    4: ([[1, 0], [0, -1]], [[0, 0], [0, 1]]),
    5: ([[0, 1], [1, 0]], [[0, 0], [0, 0]]),
    6: ([[0, -1], [1, 0]], [[0, 1], [0, 0]]),
    7: ([[0, -1], [-1, 0]], [[0, 1], [1, 0]]),
    8: ([[0, 1], [-1, 0]], [[0, 0], [1, 0]]),
}


def orientation_matrix(orientation: int, stored_hw: tuple[int, int]) -> np.ndarray:
    """float64 2 x 3: (x, y) px of the stored pixels to px of the picture as EXIF orientation 1 to 8 shows it."""
    linear, shift = (np.array(part, np.float64) for part in _TURNS[orientation])
    return np.column_stack([linear, shift @ np.array(stored_hw[::-1], np.float64)])


def in_shown_frame(
    raw: RawImage[Region], facts: ImageFacts, asked: LabelFrame
) -> tuple[RawImage[Region] | None, list[Fault]]:
    """The image with its labels on the picture as it is shown; None where they can't belong to it; what was done."""
    faults: list[Fault] = []
    if facts.orientation != 1:
        frame = _drawn_in(raw, facts) if asked == "auto" else asked
        if frame == "raw":
            told = f"labels drawn before EXIF orientation {facts.orientation} turned the picture: turned with it"
            faults += [_told(raw, told, "repaired")] if raw.regions else []
            raw = _turned(raw, facts)
        elif not frame and raw.regions:
            told = (
                f"nothing tells whether its labels were drawn before EXIF orientation {facts.orientation} turned the"
                " picture: taken as drawn on the picture as it is shown; if not so, say --label-frame raw"
            )
            faults.append(_told(raw, told, "warning"))
    reason, warning = _mismatch(raw, facts.size_hw)
    if reason:
        return None, [*faults, _told(raw, f"{reason}: the image is left out", "dropped")]
    if warning:
        faults.append(_told(raw, warning, "warning"))
    return raw, faults


def _told(raw: RawImage[Any], reason: str, action: Literal["repaired", "dropped", "warning"]) -> Fault:
    return Fault(raw.label, f"{raw.name}: {reason}", action, raw.line)


def _drawn_in(raw: RawImage[Any], facts: ImageFacts) -> str:
    """The frame that the labels speak for, "displayed" or "raw", or "" where nothing tells."""
    shown, stored = facts.size_hw, facts.stored_hw
    if shown == stored:
        return ""
    boxes = _boxes(raw)
    if _fit_only(boxes, stored, shown):
        return "raw"
    if _fit_only(boxes, shown, stored):
        return "displayed"
    return {stored: "raw", shown: "displayed"}.get(raw.said_hw or (0, 0), "")


def _mismatch(raw: RawImage[Any], actual: tuple[int, int]) -> tuple[str, str]:
    """(why the labels can't belong to a picture of this size, what the user should know), each or both ""."""
    swapped = actual[::-1]
    boxes = _boxes(raw)
    shown = f"{actual[1]} x {actual[0]} px"
    if actual != swapped and _fit_only(boxes, swapped, actual):
        return f"its labels fit {swapped[1]} x {swapped[0]} px but not its {shown}: drawn on the turned image?", ""
    if raw.said_hw in (None, actual):
        return "", ""
    said = f"the label file says {raw.said_hw[1]} x {raw.said_hw[0]} px, the picture has {shown}"
    if not raw.regions:
        return "", said  # an image without labels has none at any size
    if raw.said_hw != swapped:
        return f"{said}: labels of another picture or scale?", ""
    return "", f"{said}: width and height swapped? the labels fit the picture and are kept as they are"


def _boxes(raw: RawImage[Any]) -> list[Box]:
    """The boxes round the labels that have numbers for coordinates."""
    boxes = []
    for region in raw.regions:
        points = _points(region)
        if points is not None:
            (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
            boxes.append((float(left), float(top), float(right), float(bottom)))
    return boxes


def _points(region: RawRegion | RawBox) -> np.ndarray | None:
    """float64 (n, 2): the outline of a text region or two corners of a box; None if these are no finite numbers."""
    if isinstance(region, RawBox):
        box = numeric_box(region.corners)
        return None if box is None else np.array(box, np.float64).reshape(2, 2)
    try:
        points = np.asarray(region.points, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    is_outline = points.ndim == 2 and points.shape[1] == 2 and len(points) > 0
    return points if is_outline and (np.abs(points) <= LARGEST_PX).all() else None


def _fit_only(boxes: Sequence[Box], frame_hw: tuple[int, int], other_hw: tuple[int, int]) -> bool:
    """Whether all boxes lie inside one frame, to a pixel, and one of them mostly outside the other."""
    height, width = frame_hw
    inside = all(min(box) >= -1 and box[2] <= width + 1 and box[3] <= height + 1 for box in boxes)
    return inside and any(_is_mostly_outside(box, other_hw) for box in boxes)


def _is_mostly_outside(box: Box, size_hw: tuple[int, int]) -> bool:
    """Whether less than half of a box lies inside a frame."""
    left, top, right, bottom = box
    width_inside = min(right, size_hw[1]) - max(left, 0.0)
    height_inside = min(bottom, size_hw[0]) - max(top, 0.0)
    area = (right - left) * (bottom - top)
    return area > 0 and max(width_inside, 0.0) * max(height_inside, 0.0) < 0.5 * area


def _turned(raw: RawImage[Region], facts: ImageFacts) -> RawImage[Region]:
    matrix = orientation_matrix(facts.orientation, facts.stored_hw)
    said_hw = facts.size_hw if raw.said_hw == facts.stored_hw else raw.said_hw
    return replace(raw, regions=tuple(_turned_region(region, matrix) for region in raw.regions), said_hw=said_hw)


def _turned_region(region: Any, matrix: np.ndarray) -> Any:
    """A `RawRegion` or `RawBox` on the picture as it is shown; one without numbers stays, for the repair to drop."""
    points = _points(region)
    if points is None:
        return region
    turned = points @ matrix[:, :2].T + matrix[:, 2]
    if isinstance(region, RawBox):
        (left, top), (right, bottom) = turned.min(axis=0).tolist(), turned.max(axis=0).tolist()
        is_reversed = bool((points[1] < points[0]).any())
        repairs = (*region.repairs, *(["corners reversed: swapped"] if is_reversed else []))
        return replace(region, corners=(left, top, right, bottom), repairs=repairs)
    is_text = np.asarray(region.points).dtype.kind == "U"  # kept so, for the repair to tell
    return replace(region, points=(turned.astype(str) if is_text else turned).tolist())
