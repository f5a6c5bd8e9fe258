"""Words or lines: what one text box holds, told by how near it stands to the next one on its row.

A space between words is about a third of the letter height (receipts and invoices, cut at their spaces: median 0.5 of
the box height); columns of a form lie further apart. So of word boxes about half have a neighbour within 0.6 of their
height (measured: .42 to .51), of line boxes few (.02 on receipts, .15 on tables).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.records import Fault, Record, TextAnnotation

NEAR_HEIGHTS = 0.6
"""Boxes with less than that between them stand as words of a line do."""

_WORDS_FROM, _LINES_UP_TO = 0.33, 0.2  # of a split
_WORDY_PAGE_FROM, _LINED_PAGE_UP_TO = 0.35, 0.15  # of one image, which holds fewer boxes
_LEAST_BOXES, _LEAST_PAGE_BOXES, _LEAST_PAGES = 30, 8, 3
_LEAST_PAGE_SHARE = 0.1  # of the other kind, to speak of a mixture
_MIN_OVERLAP = 0.5  # of the lower box: on one row
_ROWS = 256  # boxes compared with all others at once


@dataclass(frozen=True)
class Granularity:
    """How a split's boxes stand.

    Attributes:
        boxes: how many there are, ignore regions left out.
        near_share: of them, those with a neighbour on the right within `NEAR_HEIGHTS`.
        wordy: paths of images whose boxes stand like words.
        lined: paths of images whose boxes stand like lines.
    """

    boxes: int
    near_share: float
    wordy: tuple[str, ...]
    lined: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Either "words" or "lines"; "" where that can't be told."""
        if self.boxes < _LEAST_BOXES or _LINES_UP_TO < self.near_share < _WORDS_FROM:
            return ""
        return "words" if self.near_share >= _WORDS_FROM else "lines"

    @property
    def is_mixed(self) -> bool:
        """Whether some images are labelled by words and others by lines."""
        rarer = min(len(self.wordy), len(self.lined))
        return rarer >= max(_LEAST_PAGES, _LEAST_PAGE_SHARE * (len(self.wordy) + len(self.lined)))

    @classmethod
    def of(cls, records: Sequence[Record]) -> Granularity:
        near = {record.path: is_near_next(_boxes(record.annotation)) for record in records}
        everything = np.concatenate([np.zeros(0, bool), *near.values()])
        shares = {path: float(found.mean()) for path, found in near.items() if len(found) >= _LEAST_PAGE_BOXES}
        return cls(
            boxes=len(everything),
            near_share=float(everything.mean()) if len(everything) else 0.0,
            wordy=tuple(path for path, share in shares.items() if share >= _WORDY_PAGE_FROM),
            lined=tuple(path for path, share in shares.items() if share <= _LINED_PAGE_UP_TO),
        )


def is_near_next(boxes_xyxy_px: np.ndarray) -> np.ndarray:
    """bool (n,): the box, of (n, 4), has one of like height on its row, a little to the right."""
    found = [_near(boxes_xyxy_px[row : row + _ROWS], boxes_xyxy_px) for row in range(0, len(boxes_xyxy_px), _ROWS)]
    return np.concatenate([np.zeros(0, bool), *found])


def _near(some: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    first, second = some[:, None], boxes[None]
    heights = first[..., 3] - first[..., 1], second[..., 3] - second[..., 1]
    lower, higher = np.minimum(*heights), np.maximum(*heights)
    shared = np.minimum(first[..., 3], second[..., 3]) - np.maximum(first[..., 1], second[..., 1])
    gap = second[..., 0] - first[..., 2]
    is_beside = (shared >= _MIN_OVERLAP * lower) & (higher < 2 * lower) & (second[..., 0] > first[..., 0])
    return np.asarray((is_beside & (np.abs(gap) < NEAR_HEIGHTS * lower)).any(axis=1))


def _boxes(annotation: TextAnnotation) -> np.ndarray:
    points = [region.points_px for region in annotation.regions if not region.is_ignored]
    return np.array([[*of_one.min(axis=0), *of_one.max(axis=0)] for of_one in points]).reshape(-1, 4)


def granularity_faults(root: str, records: Mapping[str, Sequence[Record]]) -> list[Fault]:
    """Warnings where words and lines clash: between train and val, within one, or with what the models have learnt."""
    found = {split: Granularity.of(of_split) for split, of_split in records.items()}
    kinds = {split: of_split.kind for split, of_split in found.items() if of_split.kind}
    mixed = [_mixture(root, split, of_split) for split, of_split in found.items() if of_split.is_mixed]
    if set(kinds.values()) == {"words", "lines"}:
        told = ", ".join(f"{split} by {kind} ({_near_percent(found[split])})" for split, kind in kinds.items())
        advice = "a model that learns the one is scored as wrong on the other; label both alike"
        return [Fault(root, f"labelled differently: {told}; {advice}", "warning"), *mixed]
    if mixed or "words" not in kinds.values():
        return mixed
    told = _near_percent(found[next(iter(kinds))])
    advice = "the shipped models find whole lines, and need many images to learn another habit; label lines if you can"
    return [Fault(root, f"labelled by words ({told}): {advice}", "warning")]


def _mixture(root: str, split: str, of_split: Granularity) -> Fault:
    wordy, lined = of_split.wordy, of_split.lined
    told = f"{len(wordy)} images by words (such as {wordy[0]}), {len(lined)} by lines (such as {lined[0]})"
    return Fault(root, f"{split} is labelled differently: {told}; label all alike", "warning")


def _near_percent(of_split: Granularity) -> str:
    return f"{of_split.near_share:.0%}".replace("%", " % of the boxes stand as near to the next as words do")
