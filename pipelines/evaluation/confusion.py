"""What was taken for what: the confusion matrix of detections, with background."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.evaluation.box_matching import ImageMatch, first_free


def confusion_matrix(matches: Sequence[ImageMatch], num_classes: int, threshold: float) -> np.ndarray:
    """Objects (rows) by what they were detected as (columns); the last row and column are background.

    Detections at or above the threshold that found an object of their class are on the diagonal, as in the
    per-class counts. Of the rest, each takes the free object of another class with the highest IoU, the most
    confident first. What is left over was background (last row) or was missed (last column). So a row sums to
    the objects of a class, a column to its detections that are not ignored.

    Args:
        matches: of all images.
        num_classes: without background.
        threshold: confidences at or above it count.

    Returns:
        int64 (num_classes + 1, num_classes + 1).
    """
    counts = np.zeros((num_classes + 1, num_classes + 1), dtype=np.int64)
    for match in matches:
        is_counted = (match.confidences >= threshold) & ~match.is_ignored
        found = np.where(is_counted, match.found, -1)
        other = _found_as_other_class(match, is_counted, found)
        found = np.where(found < 0, other, found)

        truth = np.append(match.object_class_ids, num_classes)[found[is_counted]]  # -1 is the last one: background
        np.add.at(counts, (truth, match.class_ids[is_counted]), 1)
        is_missed = np.ones(len(match.object_class_ids), bool)
        is_missed[found[found >= 0]] = False
        np.add.at(counts, (match.object_class_ids[is_missed], num_classes), 1)
    return counts


def _found_as_other_class(match: ImageMatch, is_counted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The objects that the detections without one of their own class lie on; int64, -1 for none."""
    detection, target = match.near_pairs.T
    is_free = is_counted[detection] & (found[detection] < 0) & ~np.isin(target, found)
    return first_free(match.near_pairs[is_free], len(found))
