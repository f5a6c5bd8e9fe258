"""Plane geometry of polygons and boxes: numpy, shapely, pyclipper; pixels, (x, y)."""

from __future__ import annotations

import numpy as np


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
