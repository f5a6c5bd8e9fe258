"""How much of the text, or of the defects, is too small to be seen at the size the network gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.geometry import equivalent_height
from pipelines.records import DefectAnnotation, Record

LEAST_PX = 8.0
"""Lower text trains nothing by default (`targets.min_height_px`); a cell of most detectors."""

TEXT_SIDE_PX = 960
"""Limit side of the shipped text configurations; those for defects look at full size."""

_SIDES_PX = (640, 960, 1280, 1600, 1920, 2560, 3200, 4000)  # paddleocr goes no further than 4000
_UNITS = {"text": ("of the text is", "lower"), "defects": ("of the defects are", "narrower")}


@dataclass(frozen=True)
class TooSmall:
    """What falls below 8 px.

    Attributes:
        of: "text" (its height) or "defects" (their short side); ignore regions left out.
        side_px: longest side that the network sees; images are never enlarged. None: full size.
        number: how many there are.
        share: of them, too small at `side_px`.
        full_share: the same at full size.
        shares: the same at other sides, px, below the longest image.
    """

    of: str
    side_px: int | None
    number: int
    share: float
    full_share: float
    shares: Mapping[int, float]

    def __str__(self) -> str:
        """One sentence: how much, and what another side would change."""
        verb, small = _UNITS[self.of]
        where = f"at longest side {self.side_px}" if self.side_px else "at full size"
        others = [f"at {side} it would be {_percent(share)}" for side, share in self._next_sides()]
        if self.side_px and self.share > self.full_share:
            others.append(f"at full size {_percent(self.full_share)}")
        return "; ".join([f"{_percent(self.share)} {verb} {small} than {LEAST_PX:g} px {where}", *others])

    def _next_sides(self) -> list[tuple[int, float]]:
        """The next larger side if that helps; at full size, the smallest sides, to see what shrinking costs."""
        if self.side_px is None:
            return list(self.shares.items())[:2]
        larger = [(side, share) for side, share in self.shares.items() if side > self.side_px and share < self.share]
        return larger[:1]


def too_small_text(records: Sequence[Record], side_px: int | None) -> TooSmall | None:
    """By height; None where there is no text."""
    sizes = [
        (equivalent_height(region.points_px), max(record.size_hw))
        for record in records
        for region in record.annotation.regions
        if not region.is_ignored
    ]
    return _too_small("text", sizes, side_px or TEXT_SIDE_PX)


def too_small_defects(records: Sequence[Record], side_px: int | None) -> TooSmall | None:
    """By short side; None where there is no defect."""
    sizes = [(size, max(record.size_hw)) for record in records for size in _short_sides(record.annotation)]
    return _too_small("defects", sizes, side_px)


def _short_sides(annotation: DefectAnnotation) -> list[float]:
    boxes = annotation.boxes_xyxy_px[~annotation.is_ignored]
    return [float(side) for side in (boxes[:, 2:] - boxes[:, :2]).min(axis=1)] if len(boxes) else []


def _too_small(of: str, sizes: Sequence[tuple[float, int]], side_px: int | None) -> TooSmall | None:
    if not sizes:
        return None
    measured, longest = np.array(sizes).T

    def share(side: float) -> float:
        return round(float((measured * np.minimum(1, side / longest) < LEAST_PX).mean()), 4)

    shares = {side: share(side) for side in _SIDES_PX if side < longest.max()}
    return TooSmall(of, side_px, len(measured), share(side_px or np.inf), share(np.inf), shares)


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{100 * share:.{0 if share == 0 or share >= 0.01 else 1}f} %"
