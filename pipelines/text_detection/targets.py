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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipelines.errors import UsageError
from pipelines.geometry import offset_polygon
from pipelines.records import Sample, TextAnnotation
from pipelines.text_detection.canvas import Canvas
from pipelines.text_detection.outlines import Outlines

# Drawn and traced again, a slanted edge lies where its outermost steps are: half a pixel out. The expansion makes
# 1.2 px of that (measured at 16 px text), so the unclip rule moves slanted kernels in by as much.
_STEP_PX = 0.5


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
        outlines = Outlines.of([region.points_px for region in annotation.regions])
        is_ignored = np.array([region.is_ignored for region in annotation.regions], bool)
        is_dropped = ~is_ignored & ~outlines.are_drawable
        is_small = ~is_ignored & ~is_dropped & (outlines.heights < self.min_height_px)
        canvas = Canvas(size_hw)
        wanted = np.flatnonzero(~(is_ignored | is_dropped | is_small))
        is_dropped[wanted] = ~self._draw_wanted(canvas, outlines.chosen(wanted))
        for index in np.flatnonzero(is_ignored | is_dropped | is_small):
            canvas.mask_out(outlines[index])
        counts = [int(each.sum()) for each in (is_ignored, is_small, is_dropped)]
        return DrawnTargets(canvas.maps(), len(outlines) - sum(counts), *counts)

    def _draw_wanted(self, canvas: Canvas, outlines: Outlines) -> np.ndarray:
        """Draw those regions that have a single kernel; whether each one has, bool (k,)."""
        distances = self._offsets(outlines)
        kernels = self._kernels(outlines, distances)
        has_one = np.array([kernel is not None for kernel in kernels], bool)
        drawn = outlines if has_one.all() else outlines.chosen(np.flatnonzero(has_one))
        canvas.draw(drawn, distances[has_one], [kernel for kernel in kernels if kernel is not None])
        return has_one

    def offset_px(self, points: np.ndarray) -> float:
        """How far the outline of a simple polygon, (n, 2), moves inwards to its kernel."""
        return float(self._offsets(Outlines.of([points]))[0])

    def _offsets(self, outlines: Outlines) -> np.ndarray:
        """How far each outline moves inwards, (k,)."""
        if self.shrink == "ratio":
            return outlines.areas * (1 - self.ratio**2) / outlines.perimeters
        u, angles = self.unclip_ratio, outlines.angles
        # moving inwards, reflex corners open into arcs: an angle a adds a / 2 where a convex one takes tan(a / 2)
        c = outlines.sums(np.where(angles > 0, np.tan(angles / 2), angles / 2))
        b = outlines.perimeters * (1 + u)
        discriminant = np.maximum(b * b - 4 * c * (u + 2) * u * outlines.areas, 0)
        return 2 * u * outlines.areas / (b + np.sqrt(discriminant))  # the smaller root, without cancellation

    def _kernels(self, outlines: Outlines, distances: np.ndarray) -> list[np.ndarray | None]:
        """The kernel of each outline; None where there is no single one."""
        moves = distances + _STEP_PX * (~_are_upright(outlines) if self.shrink == "unclip" else 0)
        moved, is_exact = outlines.moved_inwards(moves)
        return [
            moved[index] if is_exact[index] else _single(offset_polygon(outlines[index], -moves[index]))
            for index in range(len(outlines))
        ]


def _are_upright(outlines: Outlines) -> np.ndarray:
    """Whether every edge stays within one row or column of pixels, so that drawing it makes no steps; bool (k,)."""
    return outlines.sums(np.abs(outlines.edges).min(axis=1) >= _STEP_PX) == 0


def _single(pieces: list[np.ndarray]) -> np.ndarray | None:
    return pieces[0] if len(pieces) == 1 else None
