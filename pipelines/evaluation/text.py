"""Precision, recall and hmean of text detection with ignore regions: update, compute, reset.

The protocol is ICDAR 2015's IoU protocol (Karatzas et al., "ICDAR 2015 Competition on Robust Reading",
section on focused and incidental text localisation) as PaddleOCR's `DetectionIoUEvaluator` runs it:

- a prediction with more than half of its own area on one ignore region is ignored: it costs and earns nothing;
- the others are matched one to one, greedily: each region, in label order, takes the first free prediction, in
  the order given, whose IoU with it is above the threshold;
- counts are summed over all images, then divided.

Greedy in that order gives PaddleOCR's numbers exactly. It can fall short of a maximum matching only where one
polygon passes the threshold with two others, which takes predictions (or regions) that overlap each other.

Two things differ on purpose. Self-crossing polygons are repaired and counted (PaddleOCR drops them from both
sides, which hides a network that draws bow-ties). Undefined ratios are None, not 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from pipelines.evaluation.overlap import as_geometries, intersection_areas, iou_matrix
from pipelines.records import TextAnnotation, TextPrediction

IGNORED_SHARE = 0.5  # of a prediction's own area; DetectionIoUEvaluator's `area_precision_constraint`


def size_bucket(
    size_hw: tuple[int, int],
    edges_px: Sequence[int] = (2000,),
    names: Sequence[str] = ("small", "large"),
) -> str:
    """The bucket of an image by its longest side: `names[i]` holds sides in [edges_px[i-1], edges_px[i]).

    Args:
        size_hw: (height, width) in pixels.
        edges_px: rising limits between neighbouring buckets.
        names: one more than there are edges.

    Returns:
        One of `names`.

    Raises:
        ValueError: the edges don't rise, or the names don't fit them.
    """
    if len(names) != len(edges_px) + 1 or list(edges_px) != sorted(set(edges_px)):
        raise ValueError(
            f"edges_px must rise and have one name more than edges, but got edges {list(edges_px)} "
            f"and names {list(names)}"
        )
    return names[int(np.searchsorted(edges_px, max(size_hw), side="right"))]


@dataclass
class _Counts:
    """Sums over images; `num_matched` holds one count a threshold."""

    num_matched: np.ndarray
    num_images: int = 0
    num_regions: int = 0
    num_ignored_regions: int = 0
    num_predictions: int = 0
    num_ignored_predictions: int = 0

    def add(self, other: _Counts) -> None:
        self.num_matched = self.num_matched + other.num_matched
        self.num_images += other.num_images
        self.num_regions += other.num_regions
        self.num_ignored_regions += other.num_ignored_regions
        self.num_predictions += other.num_predictions
        self.num_ignored_predictions += other.num_ignored_predictions


def match_greedily(iou: np.ndarray, threshold: float) -> list[tuple[int, int]]:
    """One-to-one pairs (region, prediction): each region in turn takes the first free prediction above threshold.

    Args:
        iou: float (num_regions, num_predictions).
        threshold: a pair must be above it, not at it.

    Returns:
        Pairs in the order found.
    """
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    matched: set[int] = set()
    # np.argwhere lists candidates by region, then by prediction: the order PaddleOCR's two loops visit them in.
    for region, prediction in np.argwhere(iou > threshold).tolist():
        if region not in matched and prediction not in taken:
            matched.add(region)
            taken.add(prediction)
            pairs.append((region, prediction))
    return pairs


def score_image(prediction: TextPrediction, annotation: TextAnnotation, thresholds: Sequence[float]) -> _Counts:
    """Counts of one image at every IoU threshold, from one overlap matrix."""
    is_ignored = np.array([region.is_ignored for region in annotation.regions], dtype=bool)
    regions = as_geometries([region.points_px for region in annotation.regions])
    predictions = as_geometries(prediction.polygons_px)
    region_areas, prediction_areas = shapely.area(regions), shapely.area(predictions)
    intersections = intersection_areas(regions, predictions)

    on_ignored = (intersections[is_ignored] > IGNORED_SHARE * prediction_areas).any(axis=0)
    iou = iou_matrix(intersections, region_areas, prediction_areas)[~is_ignored][:, ~on_ignored]
    return _Counts(
        num_matched=np.array([len(match_greedily(iou, threshold)) for threshold in thresholds], dtype=np.int64),
        num_images=1,
        num_regions=int((~is_ignored).sum()),
        num_ignored_regions=int(is_ignored.sum()),
        num_predictions=int((~on_ignored).sum()),
        num_ignored_predictions=int(on_ignored.sum()),
    )


class TextScorer:
    """Sums over images; `compute` may be called at any time, and again after more images.

    Every threshold of `iou_thresholds` gives the keys hmean_T, precision_T and recall_T with T in per cent.
    """

    def __init__(self, iou_thresholds: Sequence[float] = (0.5, 0.7, 0.8)) -> None:
        if not iou_thresholds or not all(0 < threshold < 1 for threshold in iou_thresholds):
            raise ValueError(f"iou_thresholds must lie between 0 and 1, but got {list(iou_thresholds)}")
        self.iou_thresholds = tuple(iou_thresholds)
        self.reset()

    def reset(self) -> None:
        """Forget every image."""
        self._buckets: dict[str, _Counts] = {}

    def update(
        self,
        prediction: TextPrediction,
        annotation: TextAnnotation,
        size_hw: tuple[int, int],
        bucket: str | None = None,
    ) -> None:
        """Add one image.

        Args:
            prediction: in pixels of the image that the annotation belongs to.
            annotation: may be empty: then every prediction is a false one.
            size_hw: (height, width) of that image, for its bucket.
            bucket: overrides `size_bucket(size_hw)`.
        """
        counts = score_image(prediction, annotation, self.iou_thresholds)
        self._buckets.setdefault(bucket or size_bucket(size_hw), self._zero()).add(counts)

    def compute(self) -> dict[str, Any]:
        """Metrics of all images, and under "by_bucket" the same keys for each bucket; undefined ratios are None."""
        total = self._zero()
        for counts in self._buckets.values():
            total.add(counts)
        by_bucket = {name: self._ratios(counts) for name, counts in sorted(self._buckets.items())}
        return {**self._ratios(total), "by_bucket": by_bucket}

    def _zero(self) -> _Counts:
        return _Counts(num_matched=np.zeros(len(self.iou_thresholds), dtype=np.int64))

    def _ratios(self, counts: _Counts) -> dict[str, float | int | None]:
        metrics: dict[str, float | int | None] = {}
        for threshold, matched in zip(self.iou_thresholds, counts.num_matched.tolist(), strict=True):
            percent = f"{threshold * 100:g}"
            # 2PR/(P+R) = 2m/(p+r) for m matches: defined (as 0) also when nothing at all was predicted.
            metrics[f"hmean_{percent}"] = _ratio(2 * matched, counts.num_predictions + counts.num_regions)
            metrics[f"precision_{percent}"] = _ratio(matched, counts.num_predictions)
            metrics[f"recall_{percent}"] = _ratio(matched, counts.num_regions)
        return {
            **metrics,
            "num_images": counts.num_images,
            "num_regions": counts.num_regions,
            "num_predictions": counts.num_predictions,
            "num_ignored_regions": counts.num_ignored_regions,
            "num_ignored_predictions": counts.num_ignored_predictions,
        }


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
