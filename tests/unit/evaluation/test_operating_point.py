"""Counts at a threshold are those of counting, and no other threshold has a better mean F1 than the chosen one."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.box_matching import PooledDetections, match_image
from pipelines.evaluation.operating_point import best_threshold, class_scores, counts_at
from tests.unit.evaluation.defect_images import random_images


def pooled(*rows: tuple[float, int, bool], num_objects: tuple[int, ...]) -> PooledDetections:
    """Rows of confidence, class, whether true."""
    confidences, class_ids, is_true = zip(*rows, strict=True) if rows else ((), (), ())
    return PooledDetections(
        np.array(confidences, dtype=np.float64),
        np.array(class_ids, dtype=np.int64),
        np.array(is_true, dtype=bool),
        np.array(num_objects),
    )


HAND = pooled((0.9, 0, True), (0.8, 0, False), (0.7, 0, True), (0.6, 1, True), (0.5, 1, False), num_objects=(4, 1, 0))


def test_counts_and_ratios_worked_by_hand() -> None:
    first, second, third = class_scores(HAND, 0.7)
    assert first == {
        "num_objects": 4,
        "tp": 2,
        "fp": 1,
        "fn": 2,
        "precision": 2 / 3,
        "recall": 0.5,
        "f1": pytest.approx(4 / 7),
    }
    assert (second["tp"], second["fp"], second["fn"]) == (0, 0, 1)
    assert (second["precision"], second["recall"], second["f1"]) == (None, 0.0, 0.0)
    assert (third["precision"], third["recall"], third["f1"]) == (None, None, None)


def test_a_detection_at_the_threshold_counts() -> None:
    num_true, num_false = counts_at(HAND, np.array([0.9, 0.9 + 1e-9, 0.0]))
    assert num_true[:, 0].tolist() == [1, 0, 2] and num_false[:, 0].tolist() == [0, 0, 1]


def test_the_chosen_threshold_worked_by_hand() -> None:
    # Mean F1 at .9: (2/5 + 0) / 2; at .7: (4/7 + 0) / 2; at .6: (4/7 + 1) / 2; at .5: (4/7 + 2/3) / 2.
    assert best_threshold(HAND) == 0.6


def test_of_equal_thresholds_the_highest_is_chosen() -> None:
    # One true at .9: F1 = 2/3. Then a false and a true one at .5: 4/6.
    assert (
        best_threshold(pooled((0.9, 0, True), (0.6, 0, False), (0.5, 0, True), (0.6, 0, False), num_objects=(2,)))
        == 0.9
    )


def test_false_detections_of_a_class_without_objects_do_not_move_the_threshold() -> None:
    rows = [(0.9, 0, True), (0.4, 0, True), *((0.5, 1, False) for _ in range(9))]
    assert best_threshold(pooled(*rows, num_objects=(2, 0))) == 0.4


def test_without_a_true_detection_there_is_nothing_to_choose() -> None:
    assert best_threshold(pooled(num_objects=(3,))) is None
    assert best_threshold(pooled((0.9, 0, False), num_objects=(3,))) is None


def test_no_threshold_at_all_is_better_than_the_chosen_one() -> None:
    detections = PooledDetections.of([match_image(*image, 0.5) for image in random_images(4)], 3)

    def mean_f1(threshold: float) -> float:
        return float(np.mean([row["f1"] for row in class_scores(detections, threshold)]))

    chosen = best_threshold(detections)
    assert chosen is not None
    values = [mean_f1(threshold) for threshold in [*detections.confidences.tolist(), 0.0, 1.0]]
    assert mean_f1(chosen) == max(values) > min(values) + 0.2
