"""Detections find objects by COCO's greedy rule; ignore regions cost nothing."""

from __future__ import annotations

import numpy as np

from pipelines.evaluation.box_matching import PooledDetections, first_free, match_image
from tests.unit.evaluation.defect_images import annotated, predicted, random_images


def test_the_most_confident_detection_takes_the_object_and_a_second_one_is_false() -> None:
    twice = predicted((0, 0, 10, 9, 0, 0.6), (0, 0, 10, 8, 0, 0.8))
    match = match_image(twice, annotated((0, 0, 10, 10, 0)), 0.5)
    assert match.confidences.round(2).tolist() == [0.8, 0.6] and match.found.tolist() == [0, -1]


def test_a_detection_takes_the_free_object_that_it_fits_best() -> None:
    objects = annotated((0, 0, 10, 10, 0), (2, 0, 12, 10, 0))
    both = predicted((2, 0, 12, 10, 0, 0.9), (1, 0, 11, 10, 0, 0.8))
    assert match_image(both, objects, 0.5).found.tolist() == [1, 0]


def test_a_detection_of_another_class_finds_nothing_but_is_near() -> None:
    match = match_image(predicted((0, 0, 10, 10, 1, 0.9)), annotated((0, 0, 10, 10, 0)), 0.5)
    assert match.found.tolist() == [-1] and match.near_pairs.tolist() == [[0, 0]]


def test_an_overlap_at_the_threshold_is_enough_and_one_below_is_not() -> None:
    objects = annotated((0, 0, 10, 10, 0))
    assert match_image(predicted((0, 0, 10, 5, 0, 0.9)), objects, 0.5).found.tolist() == [0]
    assert match_image(predicted((0, 0, 10, 4.99, 0, 0.9)), objects, 0.5).found.tolist() == [-1]


def test_half_of_its_own_area_on_an_ignore_region_of_its_class_makes_a_detection_ignored() -> None:
    region = annotated(ignored=((0, 0, 100, 100, 0),))
    detections = predicted((95, 0, 105, 10, 0, 0.9), (96, 0, 106, 10, 0, 0.8), (0, 0, 10, 10, 1, 0.7))
    assert match_image(detections, region, 0.5).is_ignored.tolist() == [True, False, False]


def test_an_object_comes_before_an_ignore_region_on_the_same_place() -> None:
    there = annotated((0, 0, 10, 10, 0), ignored=((0, 0, 20, 20, 0),))
    match = match_image(predicted((0, 0, 10, 10, 0, 0.9), (1, 1, 10, 10, 0, 0.8)), there, 0.5)
    assert match.found.tolist() == [0, -1] and match.is_ignored.tolist() == [False, True]


def test_a_detection_without_an_area_finds_nothing_and_is_not_ignored() -> None:
    there = annotated((0, 0, 10, 10, 0), ignored=((0, 0, 20, 20, 0),))
    match = match_image(predicted((5, 5, 5, 8, 0, 0.9)), there, 0.5)
    assert match.found.tolist() == [-1] and match.is_ignored.tolist() == [False]


def test_leaving_out_less_confident_detections_changes_no_match() -> None:
    num_matched = 0
    for prediction, annotation in random_images(3):
        match = match_image(prediction, annotation, 0.5)
        kept = prediction.confidences >= np.float32(0.4)
        rows = np.column_stack((prediction.boxes_xyxy_px, prediction.class_ids, prediction.confidences))[kept]
        fewer = match_image(predicted(*rows.tolist()), annotation, 0.5)
        assert match.found[: len(rows)].tolist() == fewer.found.tolist()
        num_matched += int((fewer.found >= 0).sum())
    assert num_matched > 30


def test_first_free_takes_pairs_in_order() -> None:
    assert first_free(np.array([[0, 1], [0, 0], [2, 1], [2, 0]]), 3).tolist() == [1, -1, 0]


def test_pooling_counts_objects_by_class_and_leaves_out_what_is_ignored() -> None:
    there = annotated((0, 0, 10, 10, 2), (20, 0, 30, 10, 0), ignored=((50, 50, 90, 90, 0),))
    found = predicted((0, 0, 10, 10, 2, 0.9), (55, 55, 65, 65, 0, 0.8), (200, 0, 210, 10, 0, 0.7))
    pooled = PooledDetections.of([match_image(found, there, 0.5)], num_classes=4)
    assert pooled.num_objects.tolist() == [1, 0, 1, 0]
    assert pooled.is_true.tolist() == [True, False] and pooled.class_ids.tolist() == [2, 0]


def test_no_image_pools_to_nothing() -> None:
    pooled = PooledDetections.of([], num_classes=2)
    assert len(pooled.confidences) == len(pooled.is_true) == 0 and pooled.num_objects.tolist() == [0, 0]
