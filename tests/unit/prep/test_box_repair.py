"""What becomes of one image's boxes. Run: pytest tests/unit/prep/test_box_repair.py"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.prep.box_repair import annotate_boxes
from pipelines.prep.class_names import class_names
from pipelines.prep.images import ImageFacts
from pipelines.prep.raw import RawBox, RawDefects, RawImage

SIZE_HW = (60, 80)
SOUND = RawBox((10, 20, 30, 40), "dent", item="object 1")


def annotated(*boxes: RawBox):
    raw: RawDefects = RawImage(Path("a.jpg"), "a.jpg", "a.xml", None, boxes)
    classes, _ = class_names([raw], (), None)
    return annotate_boxes(raw, ImageFacts(SIZE_HW), classes)


def box(*corners: object) -> RawBox:
    return replace(SOUND, corners=corners)


def test_a_sound_box_is_kept_as_it_is_and_nothing_is_told():
    annotation, faults = annotated(SOUND, box(0, 0, 80, 60))
    assert annotation.boxes_xyxy_px.tolist() == [[10, 20, 30, 40], [0, 0, 80, 60]] and not faults


def test_an_image_without_boxes_is_ok():
    annotation, faults = annotated()
    assert annotation.is_ok and annotation.boxes_xyxy_px.shape == (0, 4) and not faults


@pytest.mark.parametrize(
    ("corners", "expected", "reason"),
    [
        ((30, 40, 10, 20), [10, 20, 30, 40], "corners reversed (30, 40) to (10, 20): swapped"),
        ((30, 20, 10, 40), [10, 20, 30, 40], "swapped"),
        ((-5, 20, 30, 40), [0, 20, 30, 40], "reaches outside the image of 80 x 60 px (-5, 20) to (30, 40): clipped"),
        ((70, 50, 81, 61), [70, 50, 80, 60], "clipped"),
        ((90, 50, 70, 70), [70, 50, 80, 60], "swapped; reaches outside"),
    ],
)
def test_a_box_with_one_right_repair_is_repaired_and_told(corners, expected, reason):
    annotation, (fault,) = annotated(box(*corners))
    assert annotation.boxes_xyxy_px.tolist() == [expected]
    assert fault.action == "repaired" and reason in fault.reason and fault.item == "object 1"


@pytest.mark.parametrize(
    ("corners", "reason"),
    [
        ((10, 20, 10, 40), "no area"),
        ((10, 20, 10.4, 40), "no area"),
        ((80, 10, 95, 20), "outside"),
        ((79.5, 10, 95, 20), "outside"),
        ((float("nan"), 10, 20, 20), "four finite numbers"),
        ((1, 2, 3), "four finite numbers"),
    ],
)
def test_a_box_without_a_right_repair_is_dropped_and_the_others_stay(corners, reason):
    annotation, (fault,) = annotated(SOUND, box(*corners))
    assert annotation.boxes_xyxy_px.tolist() == [[10, 20, 30, 40]]
    assert fault.action == "dropped" and reason in fault.reason


def test_an_image_whose_every_box_is_dropped_is_left_out_for_it_may_not_be_ok():
    annotation, faults = annotated(box(10, 20, 10, 20), box(90, 0, 99, 9))
    assert annotation is None and [fault.action for fault in faults] == ["dropped"] * 3
    assert "none of its 2 box(es) can be used, so it may not be OK" in faults[-1].reason


def test_a_rounding_error_at_the_edge_is_no_finding():
    annotation, faults = annotated(box(10, 20, 80.01, 60.01))
    assert not faults and len(annotation.class_ids) == 1


def test_one_object_twice_is_one_and_two_classes_at_one_place_are_two():
    annotation, (fault,) = annotated(SOUND, replace(SOUND, class_name="scratch"), replace(SOUND, item="object 3"))
    assert annotation.class_ids.tolist() == [0, 1] and fault.item == "object 3" and "kept once" in fault.reason


def test_a_small_overshoot_is_clipped():
    annotation, (fault,) = annotated(box(5, 40, 20, 63))
    assert annotation.boxes_xyxy_px.tolist() == [[5, 40, 20, 60]] and fault.action == "repaired"
