"""Many polygons measured at once: a crop shows fifty text regions, and numpy's calls cost more than their arithmetic.

Points are in pixels, (x, y). One array holds those of all polygons, one polygon after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipelines.geometry import is_simple_polygon

_LEAST_EDGE_PX = 1e-6  # of a moved outline; less is rounding


@dataclass(frozen=True, eq=False)
class Outlines:
    """Closed outlines without points equal to their predecessor.

    Attributes:
        points: float64 (n, 2), of all polygons.
        starts: int64 (k,), where in `points` each polygon begins; each has one point at least.
    """

    points: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, polygons: Sequence[np.ndarray]) -> Outlines:
        """The outlines of polygons, (m, 2) each; repeated points are left out."""
        starts = _starts([len(polygon) for polygon in polygons])
        points = np.concatenate([*polygons, np.zeros((0, 2))]).astype(np.float64)
        keep = (points != points[_before(starts, len(points))]).any(axis=1)
        if keep.all():
            return cls(points, starts)
        keep[starts[~np.logical_or.reduceat(keep, starts)]] = True  # of a polygon that is one point
        return cls(points[keep], _starts(np.add.reduceat(keep, starts, dtype=np.int64)))

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> np.ndarray:
        """The points of one polygon, (m, 2)."""
        return self.points[self._slice(index)]

    def chosen(self, indices: np.ndarray) -> Outlines:
        """Some of the polygons, by position."""
        return Outlines.of([self[index] for index in indices])

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """What belongs to the points, (n, ...), polygon by polygon."""
        return [values[self._slice(index)] for index in range(len(self))]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum over the points of each polygon, (n,) to (k,)."""
        return np.add.reduceat(values, self.starts, dtype=np.float64) if len(self) else np.zeros(0)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """To every point the value of its polygon, (k, ...) to (n, ...)."""
        return np.repeat(values, np.diff(self.starts, append=len(self.points)), axis=0)

    @cached_property
    def edges(self) -> np.ndarray:
        """From each point to the next one of its polygon, (n, 2)."""
        before = _before(self.starts, len(self.points))
        edges = np.empty_like(self.points)
        edges[before] = self.points - self.points[before]
        return edges

    @cached_property
    def lengths(self) -> np.ndarray:
        """Of the edges, (n,)."""
        return np.hypot(self.edges[:, 0], self.edges[:, 1])

    @cached_property
    def areas(self) -> np.ndarray:
        """Unsigned, (k,); the shoelace formula about each polygon's first point."""
        origin = self.spread(self.points[self.starts])
        return np.abs(self.sums(_cross(self.points - origin, self.edges))) / 2

    @cached_property
    def perimeters(self) -> np.ndarray:
        """(k,)."""
        return self.sums(self.lengths)

    @cached_property
    def angles(self) -> np.ndarray:
        """Turn at each point, radians, (n,); positive where the outline is convex (see `geometry.exterior_angles`)."""
        return self._turns * self.spread(self._directions)

    @cached_property
    def are_convex(self) -> np.ndarray:
        """Whether an outline goes round once, never turning back, bool (k,)."""
        once = np.abs(self.sums(self.angles) - 2 * math.pi) < 1e-6
        return (self.sums(self.angles < 0) == 0) & once

    @cached_property
    def are_drawable(self) -> np.ndarray:
        """Whether an outline encloses one area, at least a square pixel, without crossing itself; bool (k,)."""
        drawable = self.are_convex & (self.areas >= 1)
        for index in np.flatnonzero(~self.are_convex & (self.areas >= 1)):  # the slower test where the quick can't tell
            drawable[index] = len(self[index]) >= 3 and is_simple_polygon(self[index])
        return drawable

    @cached_property
    def heights(self) -> np.ndarray:
        """Short side of the rectangle of the same area and perimeter, (k,) (see `geometry.equivalent_height`)."""
        half = self.perimeters / 2
        return (half - np.sqrt(np.maximum(half**2 - 4 * self.areas, 0))) / 2

    def moved_inwards(self, distances: np.ndarray) -> tuple[Outlines, np.ndarray]:
        """Every outline moved inwards, edge by edge.

        An edge moved by d loses d times the tangent of half the turn at each of its ends. A convex polygon that keeps
        all its edges is the intersection of the moved half planes, and so exactly what was to be found.

        Args:
            distances: of each polygon, (k,), pixels.

        Returns:
            The outlines, with their points in the same places, and bool (k,): whether each one is exact. Others (not
            convex, or an edge vanishes) need a general method.
        """
        away = self.spread(distances)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            cut = away * np.tan(self.angles / 2)
            unit = self.edges / self.lengths[:, None]
            inwards = np.stack([-unit[:, 1], unit[:, 0]], axis=1) * self.spread(self._directions)[:, None]
            # along the edge to where the moved neighbour meets it, then across
            points = self.points + unit * cut[:, None] + inwards * away[:, None]
        after_cut = np.empty_like(cut)
        after_cut[_before(self.starts, len(cut))] = cut
        left = self.lengths - cut - after_cut > _LEAST_EDGE_PX
        return Outlines(points, self.starts), self.are_convex & (self.sums(~left) == 0)

    @cached_property
    def _turns(self) -> np.ndarray:
        """Turn at each point, clockwise as seen, radians, (n,)."""
        arriving = self.edges[_before(self.starts, len(self.points))]
        return np.arctan2(_cross(arriving, self.edges), (arriving * self.edges).sum(axis=1))

    @cached_property
    def _directions(self) -> np.ndarray:
        """1 for outlines that run clockwise as seen, else -1; (k,)."""
        return np.where(self.sums(self._turns) < 0, -1.0, 1.0)

    def _slice(self, index: int) -> slice:
        return slice(self.starts[index], self.starts[index + 1] if index + 1 < len(self) else None)


def _starts(counts: Iterable[int]) -> np.ndarray:
    return np.cumsum([0, *counts])[:-1]


def _before(starts: np.ndarray, num_points: int) -> np.ndarray:
    """Of every point the one before it on its outline, as positions; (n,)."""
    before = np.arange(num_points) - 1
    before[starts] = np.append(starts[1:], num_points)[: len(starts)] - 1
    return before


def _cross(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
