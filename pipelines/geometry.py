"""Plane geometry of polygons and boxes: numpy, shapely, pyclipper; pixels, (x, y)."""

from __future__ import annotations

import numpy as np
import pyclipper
import shapely

_CLIPPER_UNITS_PER_PX = 128  # pyclipper works on whole numbers
_ARC_TOLERANCE_PX = 0.1


def polygon_area(points: np.ndarray) -> float:
    """Unsigned area of a simple polygon, (n, 2); the shoelace formula."""
    x, y = points[:, 0].astype(np.float64), points[:, 1].astype(np.float64)
    return abs(float(np.dot(x, _following(y)) - np.dot(y, _following(x)))) / 2


def polygon_perimeter(points: np.ndarray) -> float:
    """Length of the closed outline of (n, 2) points."""
    edges = _following(points) - points
    return float(np.sqrt((edges * edges).sum(axis=1)).sum())


def _following(values: np.ndarray) -> np.ndarray:
    """The next value round the outline; `np.roll(values, -1, axis=0)` at a fifth of its price for few points."""
    return np.concatenate((values[1:], values[:1]))


def transform_points(points: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Apply a 2 x 3 affine matrix, or a 3 x 3 homography, to (n, 2) points; float32."""
    moved = points @ matrix[:, :2].T + matrix[:, 2]
    return (moved[:, :2] / moved[:, 2:] if len(matrix) == 3 else moved).astype(np.float32)


def upright_matrix(orientation: int, stored_hw: tuple[int, int]) -> np.ndarray:
    """The 2 x 3 matrix from the pixels as a file stores them to the picture as its EXIF orientation shows it.

    Args:
        orientation: 1 to 8: which sides of the picture the stored rows and columns begin at (EXIF 2.3, section 4.6.4).
        stored_hw: (height, width) of the stored pixels; (0, 0) is the outer corner of the first, so a mirrored x is
            width - x.

    Returns:
        float64 (2, 3), for `transform_points` and `transform_boxes`.
    """
    height, width = stored_hw
    right, down, left, up = (1, 0, 0), (0, 1, 0), (-1, 0, width), (0, -1, height)
    # What the shown x and the shown y are, in stored coordinates.
    axes = {
        1: (right, down),
        2: (left, down),
        3: (left, up),
        4: (right, up),
        5: (down, right),
        6: (up, right),
        7: (up, left),
        8: (down, left),
    }
    return np.array(axes[orientation], np.float64)


def equivalent_height(points: np.ndarray) -> float:
    """Short side of the rectangle that has this polygon's area and perimeter, (n, 2); exact for rectangles.

    With area A = h w and half perimeter s = h + w, h is the smaller root of h^2 - s h + A = 0. A polygon
    rounder than a square has no such rectangle and gets s / 2.
    """
    half_perimeter, area = polygon_perimeter(points) / 2, polygon_area(points)
    return (half_perimeter - max(half_perimeter**2 - 4 * area, 0.0) ** 0.5) / 2


def is_simple_polygon(points: np.ndarray) -> bool:
    """Whether the closed outline of (n, 2) points neither crosses nor touches itself and encloses an area."""
    return bool(shapely.Polygon(points).is_valid)


def untangle_quad(points: np.ndarray) -> np.ndarray:
    """The simple quadrilateral on the four points of a bow-tie, (4, 2), from the same first point.

    Two crossing segments have their four ends in convex position, so going round their centre by angle is
    the only order without a crossing. The turning sense is clockwise as seen (y points down).
    """
    offsets = points - points.mean(axis=0)
    order = np.argsort(np.arctan2(offsets[:, 1], offsets[:, 0]), kind="stable")
    return points[np.roll(order, -int(np.flatnonzero(order == 0)[0]))]


def clip_polygon(points: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """The part of a simple polygon inside the frame [0, width] x [0, height]; float32 (k, 2), k = 0 if none.

    Of several parts the largest is taken. Where moving the points onto the frame gives that very part (any
    upright box), the points keep their number and order.
    """
    height, width = size_hw
    moved = np.clip(points, 0, (width, height)).astype(np.float32)
    inside = shapely.intersection(shapely.Polygon(points), shapely.box(0, 0, width, height))
    if inside.area == 0:
        return np.zeros((0, 2), np.float32)
    if is_simple_polygon(moved):
        difference = shapely.symmetric_difference(shapely.Polygon(moved), inside)
        if difference.area < 1e-6 * inside.area:
            return moved
    largest = max(shapely.get_parts(inside), key=shapely.area)
    return np.asarray(largest.exterior.coords[:-1], dtype=np.float32)


def exterior_angles(points: np.ndarray) -> np.ndarray:
    """Turning angle at each vertex of a closed outline, (n, 2) without repeated neighbours; radians, (n,).

    Positive at convex vertices whatever the direction of travel; they sum to 2 pi for a simple polygon and to
    0 for a bow-tie.
    """
    after = _following(points) - points
    before = np.concatenate((after[-1:], after[:-1]))
    cross = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    angles = np.arctan2(cross, (before * after).sum(axis=1))
    return angles if angles.sum() >= 0 else -angles


def offset_polygon(points: np.ndarray, distance_px: float) -> list[np.ndarray]:
    """Move the outline of a simple polygon outwards (negative: inwards), round at corners that open.

    Args:
        points: (n, 2), in either direction.
        distance_px: how far.

    Returns:
        The pieces, float64 (k, 2) each: one as a rule, none if the polygon vanishes, more if it falls apart.
    """
    offset = pyclipper.PyclipperOffset(2.0, _ARC_TOLERANCE_PX * _CLIPPER_UNITS_PER_PX)
    try:
        units = np.rint(np.asarray(points, np.float64) * _CLIPPER_UNITS_PER_PX)
        offset.AddPath(units, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    except pyclipper.ClipperException:  # no three distinct points are left
        return []
    return [np.array(piece) / _CLIPPER_UNITS_PER_PX for piece in offset.Execute(distance_px * _CLIPPER_UNITS_PER_PX)]


def transform_boxes(boxes_xyxy: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Apply a 2 x 3 matrix that maps axes to axes (scale, flips, quarter turns, shift) to (n, 4) boxes; float32."""
    corners = transform_points(boxes_xyxy.reshape(-1, 2), matrix).reshape(-1, 2, 2)
    return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)


def box_areas(boxes_xyxy: np.ndarray) -> np.ndarray:
    """Areas of boxes, (..., 4) to (...)."""
    return np.asarray((boxes_xyxy[..., 2:] - boxes_xyxy[..., :2]).prod(axis=-1))


def box_intersection_wh(first_xyxy: np.ndarray, second_xyxy: np.ndarray) -> np.ndarray:
    """Width and height that boxes share, (..., 4) each (broadcast) to (..., 2); negative where they lie apart."""
    low = np.maximum(first_xyxy[..., :2], second_xyxy[..., :2])
    return np.minimum(first_xyxy[..., 2:], second_xyxy[..., 2:]) - low


def box_intersections(first_xyxy: np.ndarray, second_xyxy: np.ndarray) -> np.ndarray:
    """Areas that boxes share, (..., 4) each (broadcast) to (...); `a[:, None], b[None]` compares all with all."""
    return np.asarray(np.maximum(box_intersection_wh(first_xyxy, second_xyxy), 0).prod(axis=-1))
