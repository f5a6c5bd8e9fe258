"""The exported model in another program against the network it came from: the same boxes, or how they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
from shapely.geometry import Polygon

from pipelines.geometry import box_areas, box_intersections
from pipelines.records import DefectPrediction, TextPrediction

Prediction = TypeVar("Prediction", TextPrediction, DefectPrediction)

MIN_IOU = 0.99
MIN_SHARE = 0.98
"""Share of equal boxes that passes: fused kernels round differently, so a box on the very edge of a threshold
may come or go; a wrong resize, mean or threshold changes nearly all of them."""


@dataclass(frozen=True)
class ParityReport:
    """How two sets of predictions on the same images compare.

    Attributes:
        num_ours: boxes found by the network.
        num_theirs: boxes found by the exported model.
        num_equal: pairs, one to one, with IoU of at least `MIN_IOU`.
        images_with_other_count: indices of images with different numbers of boxes.
        max_confidence_difference: over the equal pairs.
        program: that ran the exported model.
    """

    num_ours: int
    num_theirs: int
    num_equal: int
    images_with_other_count: tuple[int, ...] = ()
    max_confidence_difference: float = 0.0
    program: str = "paddleocr"

    @property
    def share(self) -> float:
        """Equal pairs over the larger number of boxes; 1 if neither found any."""
        largest = max(self.num_ours, self.num_theirs)
        return self.num_equal / largest if largest else 1.0

    @property
    def ok(self) -> bool:
        return self.share >= MIN_SHARE

    def to_json(self) -> dict[str, Any]:
        """The report for `parity.json`: its fields, the share, the bounds and the verdict."""
        return {**asdict(self), "share": self.share, "min_iou": MIN_IOU, "min_share": MIN_SHARE, "ok": self.ok}

    def render(self) -> str:
        """One line for people."""
        if not self.num_ours and not self.num_theirs:
            return f"{self.program}: neither the network nor the exported model found a box, so nothing was compared"
        verdict = "agrees" if self.ok else "DIFFERS"
        return (
            f"{self.program} {verdict}: {self.num_equal} boxes with IoU >= {MIN_IOU} of {self.num_ours} ours and "
            f"{self.num_theirs} theirs ({self.share:.1%}, at least {MIN_SHARE:.0%} needed), "
            f"{len(self.images_with_other_count)} images with another count, "
            f"confidences within {self.max_confidence_difference:.1e}"
        )


def compare_predictions(ours: Sequence[TextPrediction], theirs: Sequence[TextPrediction]) -> ParityReport:
    """Pair the polygons of each image.

    Raises:
        ValueError: not one prediction of each for every image.
    """
    return _compared(ours, theirs, equal_pairs, "paddleocr")


def compare_defect_predictions(
    ours: Sequence[DefectPrediction], theirs: Sequence[DefectPrediction], program: str = "paddlex"
) -> ParityReport:
    """Pair the boxes of each image within each class.

    Args:
        ours: of the network.
        theirs: of the exported model.
        program: that ran the exported model, for the report.

    Raises:
        ValueError: not one prediction of each for every image.
    """
    return _compared(ours, theirs, equal_defects, program)


def _compared(
    ours: Sequence[Prediction],
    theirs: Sequence[Prediction],
    pairs_of: Callable[[Prediction, Prediction], list[tuple[int, int]]],
    program: str,
) -> ParityReport:
    if len(ours) != len(theirs):
        raise ValueError(f"expected as many predictions of both, but got {len(ours)} and {len(theirs)}")
    differences: list[float] = []
    other_count = []
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if len(one.confidences) != len(other.confidences):
            other_count.append(index)
        for i, j in pairs_of(one, other):
            differences.append(abs(float(one.confidences[i]) - float(other.confidences[j])))
    return ParityReport(
        num_ours=sum(len(prediction.confidences) for prediction in ours),
        num_theirs=sum(len(prediction.confidences) for prediction in theirs),
        num_equal=len(differences),
        images_with_other_count=tuple(other_count),
        max_confidence_difference=max(differences, default=0.0),
        program=program,
    )


def equal_pairs(one: TextPrediction, other: TextPrediction) -> list[tuple[int, int]]:
    """Indices of polygons with IoU >= `MIN_IOU`, each in one pair at most."""
    if not one.polygons_px or not other.polygons_px:
        return []
    # Only boxes whose frames overlap can be equal: spares nearly all polygon intersections.
    candidates = np.argwhere(_iou_of_boxes(_extents(one.polygons_px), _extents(other.polygons_px)) > 0)
    return _one_to_one(
        (i, j) for i, j in candidates.tolist() if _iou(one.polygons_px[i], other.polygons_px[j]) >= MIN_IOU
    )


def equal_defects(one: DefectPrediction, other: DefectPrediction) -> list[tuple[int, int]]:
    """Indices of boxes of one class with IoU >= `MIN_IOU`, each in one pair at most."""
    iou = _iou_of_boxes(one.boxes_xyxy_px.astype(np.float64), other.boxes_xyxy_px.astype(np.float64))
    is_equal = (iou >= MIN_IOU) & (one.class_ids[:, None] == other.class_ids)
    return _one_to_one(np.argwhere(is_equal).tolist())


def _one_to_one(pairs: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    """First come, first paired: at such an IoU a box has two partners only if those nearly coincide."""
    partner_of: dict[int, int] = {}
    taken: set[int] = set()
    for i, j in pairs:
        if i not in partner_of and j not in taken:
            partner_of[i] = j
            taken.add(j)
    return list(partner_of.items())


def _iou_of_boxes(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Every box (n, 4) with every other (m, 4): (n, m)."""
    shared = box_intersections(first[:, None], second[None])
    union = box_areas(first)[:, None] + box_areas(second) - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def _iou(first: np.ndarray, second: np.ndarray) -> float:
    a, b = Polygon(first).buffer(0), Polygon(second).buffer(0)
    intersection = a.intersection(b).area
    union = a.area + b.area - intersection
    return intersection / union if union > 0 else 0.0


def _extents(polygons: Sequence[np.ndarray]) -> np.ndarray:
    """(n, 4): smallest x, y and largest x, y of each polygon."""
    return np.array([[*polygon.min(axis=0), *polygon.max(axis=0)] for polygon in polygons], np.float64)
