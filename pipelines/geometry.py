"""Plane geometry of polygons and boxes: numpy, shapely, pyclipper; pixels, (x, y)."""

from __future__ import annotations

import numpy as np
import shapely


def polygon_area(points: np.ndarray) -> float:
    """Unsigned area of a simple polygon, (n, 2); the shoelace formula."""
    x, y = points[:, 0].astype(np.float64), points[:, 1].astype(np.float64)
    return abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2


def polygon_perimeter(points: np.ndarray) -> float:
    """Length of the closed outline of (n, 2) points."""
    return float(np.linalg.norm(points - np.roll(points, -1, axis=0), axis=1).sum())


def transform_points(points: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Apply a 2 x 3 affine matrix to (n, 2) points; float32."""
    return (points @ matrix[:, :2].T + matrix[:, 2]).astype(np.float32)


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
