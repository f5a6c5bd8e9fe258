"""Precision, recall and F1 of every class at a confidence threshold, and the threshold that serves them best."""

from __future__ import annotations

import numpy as np

from pipelines.evaluation.box_matching import PooledDetections

Counts = tuple[np.ndarray, np.ndarray]


def counts_at(detections: PooledDetections, thresholds: np.ndarray) -> Counts:
    """True and false positives of every class among the detections at or above each threshold.

    Args:
        detections: of all images.
        thresholds: float64 (t,).

    Returns:
        Two int64 arrays (t, num_classes).
    """
    num_classes = len(detections.num_objects)
    counts = np.zeros((2, len(thresholds), num_classes), dtype=np.int64)
    for row, is_wanted in zip(counts, (detections.is_true, ~detections.is_true), strict=True):
        for class_id in range(num_classes):
            confidences = np.sort(detections.confidences[is_wanted & (detections.class_ids == class_id)])
            row[:, class_id] = len(confidences) - np.searchsorted(confidences, thresholds)
    return counts[0], counts[1]


def best_threshold(detections: PooledDetections) -> float | None:
    """The threshold with the highest F1, averaged over the classes that have objects; the highest of equals.

    Between the confidences of two true positives a higher threshold only removes false ones, so no other
    values need be tried.

    Args:
        detections: of all images.

    Returns:
        The confidence of a detection, or None if none is true.
    """
    candidates = np.unique(detections.confidences[detections.is_true])[::-1]
    if len(candidates) == 0:
        return None
    num_true, num_false = counts_at(detections, candidates)
    has_objects = detections.num_objects > 0
    # 2TP / (2TP + FP + FN), and TP + FN is the number of objects.
    f1 = 2 * num_true / np.maximum(num_true + num_false + detections.num_objects, 1)
    return float(candidates[int(f1[:, has_objects].mean(axis=1).argmax())])


def class_scores(detections: PooledDetections, threshold: float) -> list[dict[str, float | int | None]]:
    """Counts and ratios of every class at a threshold, in class order; undefined ratios are None.

    Args:
        detections: of all images.
        threshold: confidences at or above it count.

    Returns:
        `num_objects`, `tp`, `fp`, `fn`, `precision`, `recall`, `f1` of each class.
    """
    num_true, num_false = counts_at(detections, np.array([threshold]))
    return [
        _ratios(*counts)
        for counts in zip(num_true[0].tolist(), num_false[0].tolist(), detections.num_objects.tolist(), strict=True)
    ]


def _ratios(tp: int, fp: int, num_objects: int) -> dict[str, float | int | None]:
    return {
        "num_objects": num_objects,
        "tp": tp,
        "fp": fp,
        "fn": num_objects - tp,
        "precision": tp / (tp + fp) if tp + fp else None,
        "recall": tp / num_objects if num_objects else None,
        "f1": 2 * tp / (tp + fp + num_objects) if tp + fp + num_objects else None,
    }
