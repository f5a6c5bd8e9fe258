"""Training targets of DB: kernels to find (shrink map) and borders to place (threshold map).

Every label polygon P of area A and perimeter L is moved inwards by d to its kernel K; the threshold map rises
from the border's both sides, d wide, to the label's outline. What d is, is the rule:

- "ratio", as in the DB paper (Liao et al., AAAI 2020, eq. 10) and PaddleOCR: d = A (1 - r^2) / L.
- "unclip": d is what the post-processing will add again, A(K) u / L(K) = d. With the sum of half-angle tangents
  c (4 for rectangles) A(K) = A - L d + c d^2 and L(K) = L - 2 c d, so

      c (u + 2) d^2 - L (1 + u) d + u A = 0,

  whose smaller root is taken; it is real for convex polygons, as L^2 >= 4 c A (Lhuilier's inequality).

The rules agree on no aspect ratio in particular: for a long line of height h, r = 0.4 gives d = 0.42 h, a kernel of
0.16 h, which an unclip ratio of 1.5 brings back to 0.4 h only; the second rule gives d = 0.3 h and the label.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np

from pipelines.errors import UsageError
from pipelines.geometry import (
    equivalent_height,
    exterior_angles,
    is_simple_polygon,
    offset_polygon,
    polygon_area,
    polygon_perimeter,
)
from pipelines.records import Sample, TextAnnotation

# The threshold map lies between 0.3 and 0.7, as in the DB paper; here times 255, plus a half to round by truncation.
_LOW_BYTE, _RISE_BYTES = 0.3 * 255 + 0.5, 0.4 * 255
# Drawn and traced again, a slanted edge lies where its outermost steps are: half a pixel out. The expansion makes
# 1.2 px of that (measured at 16 px text), so the unclip rule moves slanted kernels in by as much.
_STEP_PX = 0.5
_FRACTION_BITS = 6  # of a pixel, for cv2.fillPoly


@dataclass(frozen=True, eq=False)
class DrawnTargets:
    """The maps of one image, and what became of its regions.

    Attributes:
        maps: uint8 (height, width) each: "shrink_map" 0/1, "shrink_mask" 0/1, "threshold_map" value * 255,
            "threshold_mask" 0/1.
        num_drawn: regions with a kernel.
        num_ignored: regions masked out because the label says so.
        num_small: regions masked out because they are too small to tell at this scale.
        num_dropped: regions masked out because they have no single kernel (crossing, flat, pinched).
    """

    maps: Mapping[str, np.ndarray]
    num_drawn: int = 0
    num_ignored: int = 0
    num_small: int = 0
    num_dropped: int = 0


@dataclass(frozen=True)
class TextTargets:
    """How text regions become maps; numpy only, picklable, callable as the Task's `targets`.

    Attributes:
        shrink: rule of the kernel's offset, "ratio" or "unclip" (see the module).
        ratio: r of the ratio rule.
        unclip_ratio: u of the unclip rule: the post-processing's.
        min_height_px: lower text is masked out.
    """

    shrink: Literal["ratio", "unclip"] = "unclip"
    ratio: float = 0.4
    unclip_ratio: float = 1.5
    min_height_px: float = 8.0

    def __post_init__(self) -> None:
        if self.shrink not in ("ratio", "unclip"):
            raise UsageError(f"shrink must be ratio or unclip, but got {self.shrink!r}")
        if not 0 < self.ratio < 1:
            raise UsageError(f"ratio must lie between 0 and 1, but got {self.ratio}")
        if self.unclip_ratio <= 0:
            raise UsageError(f"unclip_ratio must be positive, but got {self.unclip_ratio}")

    def __call__(self, image: np.ndarray, annotation: TextAnnotation, source: str) -> Sample:
        """One image, already transformed, with its maps and "num_dropped" (int32, no axis)."""
        drawn = self.draw((int(image.shape[0]), int(image.shape[1])), annotation)
        targets = {**drawn.maps, "num_dropped": np.array(drawn.num_dropped, np.int32)}
        return Sample(image=image, targets=targets, source=source)

    def draw(self, size_hw: tuple[int, int], annotation: TextAnnotation) -> DrawnTargets:
        """Maps of one image of (height, width); regions may reach beyond it, offsets see them whole."""
        canvas = _Canvas.blank(size_hw)
        counts = dict.fromkeys(("num_drawn", "num_ignored", "num_small", "num_dropped"), 0)
        for region in annotation.regions:
            points = _without_repeats(region.points_px.astype(np.float64))
            if region.is_ignored:
                outcome = "num_ignored"
            elif not _is_drawable(points):
                outcome = "num_dropped"
            elif equivalent_height(points) < self.min_height_px:
                outcome = "num_small"
            else:
                distance = self.offset_px(points)
                is_drawn = canvas.draw(points, self._kernels(points, distance), distance)
                outcome = "num_drawn" if is_drawn else "num_dropped"
            counts[outcome] += 1
            if outcome != "num_drawn":
                canvas.mask_out(points)
        return DrawnTargets(maps=canvas.maps(), **counts)

    def offset_px(self, points: np.ndarray) -> float:
        """How far the outline of a simple polygon, (n, 2), moves inwards to its kernel."""
        area, perimeter = polygon_area(points), polygon_perimeter(points)
        if self.shrink == "ratio":
            return area * (1 - self.ratio**2) / perimeter
        u, angles = self.unclip_ratio, exterior_angles(points)
        # moving inwards, reflex corners open into arcs: an angle a adds a / 2 where a convex one takes tan(a / 2)
        c = float(np.where(angles > 0, np.tan(angles / 2), angles / 2).sum())
        b = perimeter * (1 + u)
        discriminant = max(b * b - 4 * c * (u + 2) * u * area, 0.0)
        return 2 * u * area / (b + math.sqrt(discriminant))  # the smaller root, without cancellation; fine for c <= 0

    def _kernels(self, points: np.ndarray, distance: float) -> list[np.ndarray]:
        is_stepped = self.shrink == "unclip" and not _is_upright(points)
        return offset_polygon(points, -(distance + _STEP_PX if is_stepped else distance))


@dataclass(frozen=True, eq=False)
class _Canvas:
    """The four maps while they are drawn; uint8 (height, width)."""

    shrink_map: np.ndarray
    shrink_mask: np.ndarray
    threshold_map: np.ndarray
    threshold_mask: np.ndarray

    @classmethod
    def blank(cls, size_hw: tuple[int, int]) -> _Canvas:
        low = np.full(size_hw, int(_LOW_BYTE), np.uint8)
        return cls(np.zeros(size_hw, np.uint8), np.ones(size_hw, np.uint8), low, np.zeros(size_hw, np.uint8))

    def maps(self) -> dict[str, np.ndarray]:
        return dict(vars(self))

    def mask_out(self, points: np.ndarray) -> None:
        """Let nothing be learnt where the region is; the hull, as the outline may cross itself."""
        _fill(self.shrink_mask, cv2.convexHull(points.astype(np.float32)).reshape(-1, 2), 0)

    def draw(self, points: np.ndarray, kernels: list[np.ndarray], distance: float) -> bool:
        """Draw one region with the width of its border zone; False, and nothing drawn, without a single kernel."""
        if len(kernels) != 1:
            return False
        _fill(self.shrink_map, kernels[0], 1)
        _fill(self.threshold_mask, points, 1)
        height, width = self.shrink_map.shape
        x0, y0 = np.maximum(np.floor(points.min(axis=0) - distance).astype(int), 0)
        x1, y1 = np.minimum(np.ceil(points.max(axis=0) + distance).astype(int) + 1, (width, height))
        if x0 < x1 and y0 < y1:
            away = _distance_to_outline(points, np.arange(x0, x1), np.arange(y0, y1))
            self.threshold_mask[y0:y1, x0:x1] |= away <= distance
            away *= -_RISE_BYTES / distance  # from here on in place: bytes below the outline's
            np.maximum(away, -_RISE_BYTES, out=away)
            away += _LOW_BYTE + _RISE_BYTES
            part = self.threshold_map[y0:y1, x0:x1]
            np.maximum(part, away.astype(np.uint8), out=part)
        return True


def _fill(target: np.ndarray, outline: np.ndarray, value: int) -> None:
    units = np.rint(outline * 2**_FRACTION_BITS).astype(np.int32)
    cv2.fillPoly(target, [units], value, shift=_FRACTION_BITS)


def _is_upright(points: np.ndarray) -> bool:
    """Whether every edge stays within one row or column of pixels, so that drawing it makes no steps."""
    edges = np.abs(np.diff(points, axis=0, append=points[:1]))
    return bool((edges.min(axis=1) < _STEP_PX).all())


def _distance_to_outline(points: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Distance of every pixel of a grid to the nearest edge of a polygon; float32 (len(y), len(x)).

    Split along and across each edge, so that both parts are sums of a row and a column; what lies along the
    edge counts only beyond its ends.
    """
    edges = np.diff(points, axis=0, append=points[:1])
    lengths = np.sqrt((edges * edges).sum(axis=1))
    unit = edges / lengths[:, None]
    from_x = x - points[:, :1]
    from_y = y - points[:, 1:]
    along = _outer_sum(unit[:, :1] * from_x, unit[:, 1:] * from_y)
    across = _outer_sum(-unit[:, 1:] * from_x, unit[:, :1] * from_y)
    along -= np.clip(along, 0, lengths[:, None, None].astype(np.float32))
    np.square(along, out=along)
    np.square(across, out=across)
    along += across
    return np.sqrt(along.min(axis=0))


def _outer_sum(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(n, w) and (n, h) to float32 (n, h, w)."""
    return rows.astype(np.float32)[:, None, :] + columns.astype(np.float32)[:, :, None]


def _without_repeats(points: np.ndarray) -> np.ndarray:
    """Drop points equal to their predecessor; always leaves one."""
    keep = (points != np.concatenate((points[-1:], points[:-1]))).any(axis=1)
    return points[keep] if keep.any() else points[:1]


def _is_drawable(points: np.ndarray) -> bool:
    """Whether the outline encloses one area: at least a square pixel, without crossing itself."""
    if len(points) < 3 or polygon_area(points) < 1:
        return False
    angles = exterior_angles(points)
    is_convex = bool((angles >= 0).all()) and abs(float(angles.sum()) - 2 * math.pi) < 1e-6
    return is_convex or is_simple_polygon(points)  # the slower test only where the quick one can't tell
