"""The confusion matrix: rows sum to objects, columns to detections, the diagonal is what the classes count."""

from __future__ import annotations

import numpy as np

from pipelines.evaluation.box_matching import PooledDetections, match_image
from pipelines.evaluation.confusion import confusion_matrix
from pipelines.evaluation.operating_point import counts_at
from pipelines.records import DefectAnnotation, DefectPrediction
from tests.unit.evaluation.defect_images import annotated, predicted, random_images


def matrix(prediction: DefectPrediction, annotation: DefectAnnotation, threshold: float = 0.5) -> list[list[int]]:
    return confusion_matrix([match_image(prediction, annotation, 0.5)], 2, threshold).tolist()


def test_found_confused_missed_and_false_each_have_their_cell() -> None:
    objects = annotated((0, 0, 10, 10, 0), (20, 0, 30, 10, 0), (40, 0, 50, 10, 1))
    found = predicted((0, 0, 10, 10, 0, 0.9), (20, 0, 30, 10, 1, 0.8), (70, 0, 80, 10, 1, 0.7))
    assert matrix(found, objects) == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]


def test_below_the_threshold_nothing_is_found() -> None:
    objects, found = annotated((0, 0, 10, 10, 0)), predicted((0, 0, 10, 10, 0, 0.4))
    assert matrix(found, objects) == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert matrix(found, objects, threshold=0.4 - 1e-6) == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_a_less_confident_detection_of_the_right_class_comes_before_one_of_the_wrong_class() -> None:
    found = predicted((0, 0, 10, 10, 1, 0.9), (0, 0, 10, 9, 0, 0.6))
    assert matrix(found, annotated((0, 0, 10, 10, 0))) == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_two_wrong_classes_on_one_object_confuse_it_once() -> None:
    found = predicted((0, 0, 10, 10, 1, 0.9), (0, 0, 10, 9, 1, 0.6))
    assert matrix(found, annotated((0, 0, 10, 10, 0))) == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]


def test_detections_on_ignore_regions_are_in_no_cell() -> None:
    assert matrix(predicted((5, 5, 9, 9, 0, 0.9)), annotated(ignored=((0, 0, 10, 10, 0),))) == [[0] * 3] * 3


def test_no_image_is_a_matrix_of_zeros() -> None:
    assert confusion_matrix([], 2, 0.5).tolist() == [[0] * 3] * 3


def test_rows_are_objects_columns_detections_and_the_diagonal_the_true_positives() -> None:
    matches = [match_image(*image, 0.5) for image in random_images(5)]
    counts = confusion_matrix(matches, 3, 0.3)
    detections = PooledDetections.of(matches, 3)
    num_true, num_false = counts_at(detections, np.array([0.3]))
    np.testing.assert_array_equal(np.diag(counts)[:3], num_true[0])
    np.testing.assert_array_equal(counts[:3].sum(axis=1), detections.num_objects)
    np.testing.assert_array_equal(counts[:, :3].sum(axis=0), num_true[0] + num_false[0])
    assert counts[3, 3] == 0 and counts[:3, :3].sum() > np.trace(counts) > 0 and counts[:3, 3].sum() > 0
