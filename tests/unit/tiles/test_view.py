"""What a window shows: cut boxes in its own pixels, too little left is ignored, slivers are never objects."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.records import DefectAnnotation
from pipelines.tiles import view_boxes

WINDOW = (100, 50, 200, 150)


def annotated(*boxes: tuple[float, ...]) -> DefectAnnotation:
    return DefectAnnotation(np.array(boxes), np.arange(len(boxes)), np.zeros(len(boxes), bool))


def test_a_whole_object_moves_into_the_windows_frame() -> None:
    view = view_boxes(annotated((110, 60, 130.5, 90)), WINDOW)
    assert view.boxes_xyxy_px.tolist() == [[10, 10, 30.5, 40]] and not view.is_ignored.any()


@pytest.mark.parametrize(("left", "is_ignored"), [(92, False), (91, True), (81, True), (93, False)])
def test_an_object_stays_one_while_six_tenths_of_it_are_seen(left: float, is_ignored: bool) -> None:
    # 20 x 20 px, of which (left + 20 - 100) x 20 are inside: 60 % at left = 92.
    view = view_boxes(annotated((left, 60, left + 20, 80)), WINDOW, min_side_px=0)
    assert view.is_ignored.tolist() == [is_ignored]


def test_slivers_are_ignored_however_large_a_share_they_are_of_the_box() -> None:
    # Seen 3 of 5 px: the share is enough, the side is not; a whole object of 3 px stays one.
    view = view_boxes(annotated((98, 60, 103, 100), (120, 60, 123, 100)), WINDOW)
    assert view.boxes_xyxy_px[:, [0, 2]].tolist() == [[0, 3], [20, 23]]
    assert view.is_ignored.tolist() == [True, False]
    assert view_boxes(annotated((98, 60, 103, 100)), WINDOW, min_side_px=3).is_ignored.tolist() == [False]


def test_a_box_two_hundredths_inside_is_an_ignore_region_there_not_an_object() -> None:
    view = view_boxes(annotated((2, 60, 102, 100)), WINDOW)
    assert view.boxes_xyxy_px.tolist() == [[0, 10, 2, 50]] and view.is_ignored.tolist() == [True]


def test_a_scratch_longer_than_the_window_counts_by_what_the_window_can_show() -> None:
    through, end = (0, 60, 1000, 70), (-900, 60, 130, 70)
    assert view_boxes(annotated(through, end), WINDOW).is_ignored.tolist() == [False, True]
    assert view_boxes(annotated(through), WINDOW).boxes_xyxy_px.tolist() == [[0, 10, 100, 20]]


@pytest.mark.parametrize("box", [(0, 0, 90, 40), (200, 60, 220, 80), (110, 150, 130, 170), (90, 60, 100, 80)])
def test_what_lies_outside_or_only_touches_the_window_is_gone(box: tuple[int, ...]) -> None:
    view = view_boxes(annotated(box), WINDOW)
    assert view.boxes_xyxy_px.shape == (0, 4) and view.is_ok


def test_a_trace_too_thin_to_colour_a_pixel_is_gone_so_no_box_is_empty_after_a_move() -> None:
    view = view_boxes(annotated((110, 149.999985, 130, 170), (110, 149.75, 130, 170)), WINDOW)
    assert view.boxes_xyxy_px.tolist() == [[10, 99.75, 30, 100]]


def test_ignore_regions_stay_ignored_and_classes_stay_with_their_boxes() -> None:
    boxes = np.array([(0, 0, 10, 10), (110, 60, 130, 80), (120, 70, 140, 90)])
    view = view_boxes(DefectAnnotation(boxes, np.array([7, 5, 6]), np.array([False, True, False])), WINDOW)
    assert view.class_ids.tolist() == [5, 6] and view.is_ignored.tolist() == [True, False]


def test_an_ok_image_shows_nothing_anywhere() -> None:
    assert view_boxes(DefectAnnotation(), WINDOW).is_ok


def test_the_whole_image_as_window_changes_nothing() -> None:
    annotation = annotated((0, 0, 1, 1), (3.25, 4.5, 640, 480))
    view = view_boxes(annotation, (0, 0, 640, 480))
    np.testing.assert_array_equal(view.boxes_xyxy_px, annotation.boxes_xyxy_px)
    assert not view.is_ignored.any()
