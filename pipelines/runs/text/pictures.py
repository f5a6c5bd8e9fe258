"""How text that a model found is shown: outlines over the image, points as JSON, and which lines it got right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from pipelines.evaluation.overlap import as_geometries, intersection_areas, iou_matrix
from pipelines.evaluation.text import IGNORED_SHARE, match_greedily
from pipelines.geometry import equivalent_height
from pipelines.records import Record, TextAnnotation, TextPrediction
from pipelines.report import ChangedImage, Findings

SHOWN_IOU = 0.7
_LINES_SHOWN = 40  # a window is so many text heights wide: what it shows can still be read


@dataclass(frozen=True)
class TextPresentation:
    """The `Presentation` of text; the post-processing has its own threshold, so none is needed here."""

    confidence: float | None = None
    key = "regions"
    note = ""

    def confident(self, prediction: TextPrediction) -> TextPrediction:
        if self.confidence is None:
            return prediction
        is_kept = prediction.confidences >= self.confidence
        polygons = [polygon for polygon, kept in zip(prediction.polygons_px, is_kept, strict=True) if kept]
        return TextPrediction(tuple(polygons), prediction.confidences[is_kept])

    def draw(self, image: np.ndarray, prediction: TextPrediction) -> np.ndarray:
        """A copy of the image with each polygon's outline."""
        drawn = image.copy()
        width = max(1, round(max(image.shape[:2]) / 700))
        outlines = [np.round(polygon).astype(np.int32) for polygon in prediction.polygons_px]
        cv2.polylines(drawn, outlines, True, (40, 40, 220), width, cv2.LINE_AA)
        return drawn

    def as_json(self, prediction: TextPrediction) -> list[dict[str, Any]]:
        """Points in source pixels and confidence of each region."""
        return [
            {"points": polygon.round(1).tolist(), "confidence": round(float(confidence), 4)}
            for polygon, confidence in zip(prediction.polygons_px, prediction.confidences, strict=True)
        ]

    def summary(self, counts: Sequence[int]) -> str:
        return f"{sum(counts)} text regions in {len(counts)} images"


def changed_image(record: Record, image: np.ndarray, before: Findings, after: Findings) -> ChangedImage:
    """An image with what two models found in it."""
    regions = record.annotation.regions
    labels = [region.points_px for region in regions if not region.is_ignored]
    height = float(np.median([equivalent_height(points) for points in labels])) if labels else 0.0
    ignored = [region.points_px for region in regions if region.is_ignored]
    return ChangedImage(record.path, image, labels, ignored, before, after, span_px=_LINES_SHOWN * height)


def findings(prediction: TextPrediction, annotation: TextAnnotation, iou: float = SHOWN_IOU) -> Findings:
    """Which boxes fit which labels, by the rules of the scorer."""
    is_ignored_region = np.array([region.is_ignored for region in annotation.regions], dtype=bool)
    regions = as_geometries([region.points_px for region in annotation.regions])
    boxes = as_geometries(prediction.polygons_px)
    areas, shared = np.array([box.area for box in boxes]), intersection_areas(regions, boxes)
    is_ignored = (shared[is_ignored_region] > IGNORED_SHARE * areas).any(axis=0)
    overlap = iou_matrix(shared, np.array([region.area for region in regions]), areas)[~is_ignored_region]
    overlap[:, is_ignored] = 0
    is_found, is_right = np.zeros(len(overlap), bool), np.zeros(len(boxes), bool)
    for region, box in match_greedily(overlap, iou):
        is_found[region] = is_right[box] = True
    return Findings(prediction.polygons_px, is_right, is_ignored, is_found)
