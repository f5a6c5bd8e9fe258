"""What makes a defect's box impossible to train on as it is: no numbers, no area, outside the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipelines.dataset.label_files import shortest

MIN_SIDE_PX = 1.0
"""A box thinner than a pixel is a slip of the mouse, and no detector has a cell for it."""
ROUNDING_PX = 0.02
"""Label files round to 0.01 px, so a left edge and a width may together miss the image's edge by twice half of it."""

LARGEST_PX = 1e9
"""A coordinate beyond this is no place in a picture, and squares of it are no numbers in single precision."""


def numeric_box(values: Any) -> tuple[float, float, float, float] | None:
    """Four finite numbers, or None if they are anything else; text is no number here, as in every COCO reader."""
    if not isinstance(values, (list, tuple)) or len(values) != 4:
        return None
    # nan compares as false; a JSON integer may be too large for a float.
    if not all(type(value) in (int, float) and abs(value) <= LARGEST_PX for value in values):
        return None
    left, top, right, bottom = (float(value) for value in values)
    return left, top, right, bottom


def box_faults(boxes: Sequence[Sequence[float]], size_hw: tuple[int, int]) -> list[tuple[int, str]]:
    """(index, reason) of every box (left, top, right, bottom; px) that can't be used on an image of this size."""
    array = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    sides = array[:, 2:] - array[:, :2]
    limits = np.array(size_hw[::-1], dtype=np.float64)
    is_thin = (sides < MIN_SIDE_PX - ROUNDING_PX).any(axis=1)
    is_outside = (array[:, :2] < -ROUNDING_PX).any(axis=1) | (array[:, 2:] > limits + ROUNDING_PX).any(axis=1)
    return [(int(i), box_fault(boxes[i], size_hw)) for i in np.flatnonzero(is_thin | is_outside)]


def box_fault(box: Sequence[float], size_hw: tuple[int, int]) -> str:
    """Why a box that `box_faults` found can't be used."""
    left, top, right, bottom = box
    if right < left or bottom < top:
        return f"its corners are reversed: {shown_box(box)}"
    if right - left < MIN_SIDE_PX - ROUNDING_PX or bottom - top < MIN_SIDE_PX - ROUNDING_PX:
        return f"encloses no area (a side under {MIN_SIDE_PX:g} px): {shown_box(box)}"
    return f"reaches outside the image of {size_hw[1]} x {size_hw[0]} px: {shown_box(box)}"


def shown_box(box: Sequence[float]) -> str:
    """A box for a message: its corners, to 0.01 px."""
    return "({}, {}) to ({}, {})".format(*(shortest(value) for value in box))
