"""What makes a text region impossible to draw as it is: no area, a crossing outline, outside the image."""

from __future__ import annotations

import json
from collections.abc import Sequence

import cv2
import numpy as np

from pipelines.dataset.label_files import shortest
from pipelines.geometry import is_simple_polygon, polygon_area
from pipelines.records import TextRegion

MIN_AREA_PX = 1.0
"""A region below one square pixel has nothing to learn from and breaks polygon offsetting."""


def region_faults(regions: Sequence[TextRegion], size_hw: tuple[int, int]) -> list[tuple[int, str]]:
    """(index, reason) of every region that can't be drawn as it is: crossing, empty, or outside the image."""
    good: set[int] = set()
    quads = [i for i, region in enumerate(regions) if len(region.points_px) == 4]
    if quads:
        # Nearly all regions are convex quads inside the image: one vectorised pass clears those.
        points = np.stack([regions[i].points_px for i in quads]).astype(np.float64)
        after, before = np.roll(points, -1, axis=1) - points, points - np.roll(points, 1, axis=1)
        turns = before[..., 0] * after[..., 1] - before[..., 1] * after[..., 0]
        # The turns at two opposite corners of a quad are twice the areas of its two halves.
        is_sound = (np.abs(turns).sum(axis=1) >= 4 * MIN_AREA_PX) & ((turns > 0).all(axis=1) | (turns < 0).all(axis=1))
        is_inside = (points >= 0).all(axis=(1, 2)) & (points <= np.array(size_hw[::-1])).all(axis=(1, 2))
        good = {quads[k] for k in np.flatnonzero(is_sound & is_inside)}
    rest = ((i, region_fault(regions[i].points_px, size_hw)) for i in range(len(regions)) if i not in good)
    return [(i, reason) for i, reason in rest if reason]


def region_fault(points: np.ndarray, size_hw: tuple[int, int]) -> str:
    """Why a polygon, (n, 2) px, can't be drawn as it is on an image; "" if it can."""
    height, width = size_hw
    hull_area = cv2.contourArea(cv2.convexHull(points.astype(np.float32)))
    if hull_area < MIN_AREA_PX:
        return f"encloses no area ({hull_area:.2f} px²): {compact(points)}"
    if not is_simple_polygon(points):
        return f"its outline crosses or touches itself (a bow-tie?): {compact(points)}"
    if polygon_area(points) < MIN_AREA_PX:
        return f"encloses no area ({polygon_area(points):.2f} px²): {compact(points)}"
    if (points < 0).any() or (points > (width, height)).any():
        return f"reaches outside the image of {width} x {height} px: {compact(points)}"
    return ""


def compact(points: np.ndarray) -> str:
    """Points for a message: at most the first six."""
    shown = [[shortest(c) for c in point] for point in points[:6].tolist()]
    return json.dumps(shown)[:-1] + (", ...]" if len(points) > 6 else "]")
