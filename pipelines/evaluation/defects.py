"""Scores of defect detection on whole images: update, compute, reset.

AP is COCO's (`coco_ap`). Everything else is taken at IoU 0.5 and at one confidence threshold, given or chosen here:
precision and recall of a class (`operating_point`), the confusion matrix (`confusion`), and how many defective
images are missed and OK images stopped (`image_rates`). Undefined figures are None, never -1 or 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pipelines.evaluation import image_rates
from pipelines.evaluation.box_matching import ImageMatch, PooledDetections, match_image
from pipelines.evaluation.coco_ap import AveragePrecision, average_precision
from pipelines.evaluation.confusion import confusion_matrix
from pipelines.evaluation.operating_point import best_threshold, class_scores
from pipelines.records import DefectAnnotation, DefectPrediction

IOU_THRESHOLD = 0.5
DEFAULT_THRESHOLD = 0.5
"""Where no detection is true, so that no threshold is better than another."""


class DefectScorer:
    """Gathers images; `compute` may be called at any time, and again after more images."""

    def __init__(self, class_names: Sequence[str], wanted_miss_rate: float = 0.02, max_detections: int = 100) -> None:
        """Start without images.

        Args:
            class_names: in the order of class ids.
            wanted_miss_rate: share of defective images that may slip through, 0 to 1.
            max_detections: of one class in one image that count for AP, the most confident ones; COCO's is 100.

        Raises:
            ValueError: no class, a class twice, or a rate that is none.
        """
        if not 0 <= wanted_miss_rate <= 1:
            raise ValueError(f"wanted_miss_rate must lie between 0 and 1, but got {wanted_miss_rate}")
        if not class_names or len(set(class_names)) != len(class_names):
            raise ValueError(f"class_names must be different names, at least one, but got {list(class_names)}")
        self.class_names = tuple(class_names)
        self.wanted_miss_rate = wanted_miss_rate
        self.max_detections = max_detections
        self.reset()

    def reset(self) -> None:
        """Forget every image."""
        self._images: list[tuple[DefectPrediction, DefectAnnotation]] = []
        self._matches: list[ImageMatch] = []

    def update(self, prediction: DefectPrediction, annotation: DefectAnnotation, size_hw: tuple[int, int]) -> None:
        """Add one image.

        Args:
            prediction: in pixels of the image; what lies beyond its frame is cut off, and a reversed box has no area.
            annotation: may be empty (an OK image): then every detection is a false one.
            size_hw: (height, width) of the image, pixels.

        Raises:
            ValueError: a class id without a name.
        """
        for name, class_ids in (("prediction", prediction.class_ids), ("annotation", annotation.class_ids)):
            unnamed = class_ids[(class_ids < 0) | (class_ids >= len(self.class_names))]
            if len(unnamed):
                raise ValueError(
                    f"class ids of the {name} must be 0 to {len(self.class_names) - 1}, one a name of "
                    f"{list(self.class_names)}, but got {sorted(set(unnamed.tolist()))}"
                )
        inside = np.clip(prediction.boxes_xyxy_px, 0, np.tile(size_hw[::-1], 2))
        inside[:, 2:] = np.maximum(inside[:, 2:], inside[:, :2])  # two reversed sides would make a positive area
        prediction = replace(prediction, boxes_xyxy_px=inside)
        self._images.append((prediction, annotation))
        self._matches.append(match_image(prediction, annotation, IOU_THRESHOLD))

    def compute(self, threshold: float | None = None) -> dict[str, Any]:
        """Every figure of the images so far, ready for JSON.

        Args:
            threshold: confidences at or above it are detections; None chooses the one with the best F1, averaged
                over the classes that have objects.

        Returns:
            `ap_50`, `map`, `map_small|medium|large`; counts; `threshold` and `threshold_by` ("given", "mean_f1", or
            "default" if no detection is true); `mean_f1`; `per_class` by name; `confusion` (rows are objects, columns
            detections); `image_miss_rate` and `image_false_alarm_rate` at the threshold, `image_curve` from high to
            low thresholds, `at_wanted_miss_rate` at the highest threshold that reaches it.
        """
        average = average_precision(self._images, len(self.class_names), self.max_detections)
        detections = PooledDetections.of(self._matches, len(self.class_names))
        threshold, threshold_by = self._chosen(threshold, detections)
        scores = image_rates.ImageScores.of(self._matches)
        per_class = self._per_class(average, class_scores(detections, threshold))
        f1 = [row["f1"] for row in per_class.values() if row["num_objects"]]
        return {
            "ap_50": average.ap_50,
            "map": average.map,
            **{f"map_{size}": value for size, value in average.map_by_size.items()},
            **self._counts(),
            "threshold_by": threshold_by,
            "mean_f1": float(np.mean(f1)) if f1 else None,
            "per_class": per_class,
            "confusion": {
                "names": [*self.class_names, "background"],
                "counts": confusion_matrix(self._matches, len(self.class_names), threshold).tolist(),
            },
            **image_rates.rates_at(scores, threshold),
            "image_curve": image_rates.rate_curve(scores),
            "at_wanted_miss_rate": image_rates.threshold_for_miss_rate(scores, self.wanted_miss_rate),
        }

    def threshold_for_miss_rate(self, wanted: float) -> image_rates.Point:
        """The highest threshold whose image miss rate is at most `wanted`; see `image_rates`."""
        return image_rates.threshold_for_miss_rate(image_rates.ImageScores.of(self._matches), wanted)

    def _chosen(self, threshold: float | None, detections: PooledDetections) -> tuple[float, str]:
        if threshold is not None:
            return float(threshold), "given"
        best = best_threshold(detections)
        return (DEFAULT_THRESHOLD, "default") if best is None else (best, "mean_f1")

    def _per_class(self, average: AveragePrecision, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        figures = zip(self.class_names, average.class_ap_50, average.class_map, rows, strict=True)
        return {name: {"ap_50": ap_50, "map": mean, **row} for name, ap_50, mean, row in figures}

    def _counts(self) -> dict[str, int]:
        return {
            "num_images": len(self._matches),
            "num_ok_images": sum(match.is_ok for match in self._matches),
            "num_objects": sum(len(match.object_class_ids) for match in self._matches),
            "num_ignored_regions": sum(match.num_ignored_regions for match in self._matches),
            "num_predictions": sum(len(match.confidences) for match in self._matches),
            "max_detections": self.max_detections,
        }
