"""Where a sample looks: one map from source pixels to sample pixels, and what it does to text regions.

The map is a 2 x 3 affine matrix, or a 3 x 3 homography where the image is seen from the side.

Points are in the frame of records (origin at a pixel's corner); OpenCV warps pixel centres, half a pixel on.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from pipelines.geometry import clip_polygon, is_simple_polygon, transform_points
from pipelines.records import TextAnnotation, TextRegion

Look = Callable[[np.ndarray, tuple[int, int]], np.ndarray]
"""`look(matrix, size_hw)`: what a view shows of some image, uint8 (height, width, 3), BGR."""


def crop_view(
    source_hw: tuple[int, int],
    crop_hw: tuple[int, int],
    scale: float,
    angle_degrees: float,
    rng: np.random.Generator,
    anchor: tuple[np.ndarray, float] | None = None,
    tilt: np.ndarray | None = None,
) -> np.ndarray:
    """A crop at a random place of the scaled and turned image.

    Args:
        source_hw: of the image, pixels.
        crop_hw: of the crop, pixels.
        scale: sample pixels per source pixel.
        angle_degrees: turn about the image's centre, clockwise as seen.
        rng: the sample's randomness.
        anchor: (x, y) in source pixels that the crop must show, and the margin around it in sample pixels.
        tilt: 3 x 3, how the image is seen from the side before it is scaled and turned (`tilted`), or None.

    Returns:
        Source to sample: 2 x 3, or 3 x 3 with a tilt. A side longer than the image shows all of it, somewhere inside.
    """
    turn = scale * _rotation(angle_degrees)
    height, width = source_hw
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    corners = (corners if tilt is None else transform_points(corners, tilt)) @ turn.T
    low = corners.min(axis=0)
    extent = corners.max(axis=0) - low
    crop_wh = np.array(crop_hw[::-1], np.float64)
    first = np.where(extent <= crop_wh, extent - crop_wh, 0)
    last = np.where(extent <= crop_wh, 0, extent - crop_wh)
    if anchor is not None:
        seen = turn @ (anchor[0] if tilt is None else transform_points(anchor[0][None], tilt)[0]) - low
        margin = np.minimum(anchor[1], crop_wh / 4)
        first, last = np.clip(seen + margin - crop_wh, first, last), np.clip(seen - margin, first, last)
    start = first + (last - first) * rng.random(2)
    return _after_tilt(np.column_stack([turn, -low - start]), tilt)


def tilted(source_hw: tuple[int, int], lean_xy: np.ndarray) -> np.ndarray:
    """The image as seen from the side, its centre in place and at its scale.

    Args:
        source_hw: of the image, pixels.
        lean_xy: how much farther away the right and the lower edge's middle are than the centre, and the left and upper
            nearer, times two: at a corner the depth is 1 + (lean_x + lean_y) / 2. Below 1 both, so no depth is 0.

    Returns:
        3 x 3 homography, source pixels to source pixels: an offset from the centre is divided by its depth.
    """
    width_height = np.array(source_hw[::-1], np.float64)
    centre, slope = width_height / 2, lean_xy / width_height
    depth = np.append(slope, 1 - slope @ centre)
    moved = np.column_stack([np.eye(2), -centre]) + np.outer(centre, depth)
    return np.vstack([moved, depth])


def page_view(
    source_hw: tuple[int, int], page_hw: tuple[int, int], angle_degrees: float, tilt: np.ndarray | None = None
) -> np.ndarray:
    """The whole image, resized as in evaluation and turned about its centre; 2 x 3, or 3 x 3 with a tilt."""
    scale_xy = np.array([page_hw[1] / source_hw[1], page_hw[0] / source_hw[0]])
    turn = _rotation(angle_degrees) * scale_xy  # scales first, then turns
    centre = np.array(page_hw[::-1]) / 2
    return _after_tilt(np.column_stack([turn, centre - turn @ (np.array(source_hw[::-1]) / 2)]), tilt)


def window_view(centre_xy: np.ndarray, extent_wh: np.ndarray, size_hw: tuple[int, int], turn: np.ndarray) -> np.ndarray:
    """An upright window of the image, turned and resized to fill the sample.

    Args:
        centre_xy: of the window, source pixels.
        extent_wh: (width, height) of the window, source pixels.
        size_hw: of the sample, pixels.
        turn: 2 x 2, a flip, quarter turn or both (`quarter_turn`).

    Returns:
        2 x 3 matrix, source to sample; it maps axes to axes.
    """
    size_wh = np.array(size_hw[::-1], np.float64)
    turned = (size_wh / (np.abs(turn) @ extent_wh))[:, None] * turn
    return np.column_stack([turned, size_wh / 2 - turned @ centre_xy])


def quarter_turn(quarters: int) -> np.ndarray:
    """The turn by so many quarters, clockwise as seen; 2 x 2 of exact 0, 1 and -1."""
    return np.rint(_rotation(90.0 * quarters))


def warp(image: np.ndarray, matrix: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """Look at an image through a view; what lies outside it has the colour of its margins.

    Linear without smoothing, as the resize of evaluation: the network learns the same grain that it will meet.
    """
    centres = matrix.copy()
    centres[:, 2] += matrix[:, :2] @ (0.5, 0.5)
    centres[:2] -= 0.5 * (centres[2] if len(centres) == 3 else np.array([0, 0, 1.0]))
    sampled = cv2.warpPerspective if len(centres) == 3 else cv2.warpAffine
    fill = paper_colour(image)
    return sampled(
        image, centres, size_hw[::-1], flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=fill
    )


def largest_scale(matrix: np.ndarray, size_hw: tuple[int, int]) -> float:
    """Sample pixels per source pixel at most, in any direction and anywhere in the sample.

    A homography that maps x to y at depth w has the derivative (A - y c) / w, c its last row's slope. Both factors are
    affine in y (1 / w is the last row of the inverse), so each is largest at a corner: their product is a bound.
    """
    if len(matrix) == 2:
        return float(np.linalg.norm(matrix[:, :2], 2))
    corners = np.array([(x, y, 1.0) for x in (0, size_hw[1]) for y in (0, size_hw[0])])
    nearness = (corners @ np.linalg.inv(matrix).T)[:, 2].max()
    slopes = matrix[:2, :2] - corners[:, :2, None] * matrix[2, :2]
    return float(np.linalg.norm(slopes, 2, axis=(1, 2)).max() * nearness)


def paper_colour(image: np.ndarray) -> tuple[float, ...]:
    """Median colour of the image's four edges, per channel: paper for scans, table top for photographs."""
    step = 4
    edges = [image[0, ::step], image[-1, ::step], image[::step, 0], image[::step, -1]]
    return tuple(float(value) for value in np.median(np.concatenate(edges), axis=0))


def view_annotation(
    annotation: TextAnnotation, matrix: np.ndarray, size_hw: tuple[int, int], min_visible: float
) -> TextAnnotation:
    """Text regions in sample pixels.

    A region outside the sample is gone. One that is cut through its height, or of which less than `min_visible`
    of the length and less than a square is left, can't be read: it is ignored. A line cut across stays positive and
    keeps its whole polygon, so that its kernel has the offset of the whole.
    """
    if not annotation.regions:
        return annotation
    # all regions at once: of a page of a hundred lines a crop shows a few
    points, starts = _points_of(annotation)
    points = transform_points(points, matrix)
    low, high = np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts)
    size_wh = np.array(size_hw[::-1])
    is_near = np.asarray(((high > 0) & (low < size_wh)).all(axis=1))
    is_whole = np.asarray(((low >= 0) & (high <= size_wh)).all(axis=1))
    parts = np.split(points, starts[1:])
    seen = (
        _seen_region(annotation.regions[index], parts[index], bool(is_whole[index]), size_hw, min_visible)
        for index in np.flatnonzero(is_near)
    )
    return TextAnnotation(tuple(region for region in seen if region is not None))


def _points_of(annotation: TextAnnotation) -> tuple[np.ndarray, np.ndarray]:
    """The points of all regions, one after the other, (n, 2), and where each region's begin, (k,)."""
    polygons = [region.points_px for region in annotation.regions]
    return np.concatenate(polygons), np.cumsum([0, *map(len, polygons[:-1])])


def _seen_region(
    region: TextRegion, points: np.ndarray, is_whole: bool, size_hw: tuple[int, int], min_visible: float
) -> TextRegion | None:
    """A region whose points in the sample are `points`; None where none of it is inside after all."""
    is_ignored = region.is_ignored
    if not is_whole and is_simple_polygon(points):
        inside = clip_polygon(points, size_hw)
        if len(inside) == 0:
            return None
        is_ignored = is_ignored or _is_cut_off(points, inside, min_visible)
    return TextRegion(points, region.transcription, is_ignored)


def _is_cut_off(points: np.ndarray, inside: np.ndarray, min_visible: float) -> bool:
    """Whether too little of a line is left, seen along its own length and height."""
    corners = cv2.boxPoints(cv2.minAreaRect(points))
    sides = corners[1:3] - corners[:2]
    lengths = np.maximum(np.linalg.norm(sides, axis=1), 1e-6)
    axes = (sides / lengths[:, None])[np.argsort(lengths)]
    height, length = np.ptp(points @ axes.T, axis=0)
    seen_height, seen_length = np.ptp(inside @ axes.T, axis=0)
    return bool(seen_height < min_visible * height or seen_length < min(min_visible * length, height))


def _after_tilt(matrix: np.ndarray, tilt: np.ndarray | None) -> np.ndarray:
    """One map in place of a tilt and the affine map after it."""
    return matrix if tilt is None else np.vstack([matrix, (0, 0, 1)]) @ tilt


def _rotation(angle_degrees: float) -> np.ndarray:
    angle = np.deg2rad(angle_degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
