"""Areas shared by two sets of polygons, computed once an image for all pairs that can touch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import shapely

_EMPTY = shapely.Polygon()


def as_geometries(polygons_px: Sequence[np.ndarray]) -> np.ndarray:
    """Valid shapely geometries of any polygons; nothing a network draws makes this fail.

    A polygon that crosses itself (a bow-tie) becomes its convex hull: it was meant to enclose its points.
    Fewer than 3 points or a nan give the empty polygon, which overlaps nothing.

    Args:
        polygons_px: (k, 2) each, pixels; k may differ.

    Returns:
        Object array (n,) of geometries, in order.
    """
    geometries = np.full(len(polygons_px), _EMPTY, dtype=object)
    points = [np.asarray(polygon, dtype=np.float64).reshape(-1, 2) for polygon in polygons_px]
    drawable = np.array([len(p) >= 3 and bool(np.isfinite(p).all()) for p in points], dtype=bool)
    if drawable.any():
        kept = [points[index] for index in np.flatnonzero(drawable)]
        ring_of_point = np.repeat(np.arange(len(kept)), [len(p) for p in kept])
        geometries[drawable] = shapely.polygons(shapely.linearrings(np.concatenate(kept), indices=ring_of_point))
    crossed = ~shapely.is_valid(geometries)
    geometries[crossed] = shapely.convex_hull(geometries[crossed])
    return geometries


def intersection_areas(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Area of the intersection of every row geometry with every column geometry, px².

    On a page of text nearly all pairs lie apart, so only pairs whose bounding boxes overlap are intersected.

    Args:
        rows: (n,) valid geometries.
        columns: (m,) valid geometries.

    Returns:
        float64 (n, m).
    """
    areas = np.zeros((len(rows), len(columns)))
    # The empty polygon's bounds are nan, so every comparison with it is False.
    left, top, right, bottom = shapely.bounds(rows).T[:, :, None]
    other_left, other_top, other_right, other_bottom = shapely.bounds(columns).T[:, None, :]
    touches = (left < other_right) & (other_left < right) & (top < other_bottom) & (other_top < bottom)
    row, column = np.nonzero(touches)
    areas[row, column] = shapely.area(shapely.intersection(rows[row], columns[column]))
    return areas


def iou_matrix(intersections: np.ndarray, row_areas: np.ndarray, column_areas: np.ndarray) -> np.ndarray:
    """Intersection over union, float64 (n, m); 0 where neither polygon has an area."""
    unions = row_areas[:, None] + column_areas[None, :] - intersections
    return np.divide(intersections, unions, out=np.zeros_like(intersections), where=unions > 0)
