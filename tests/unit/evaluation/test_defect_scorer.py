"""The scorer puts the figures of whole images together, defined for any images, ready for JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pipelines.evaluation.defects import DefectScorer
from tests.unit.evaluation.defect_images import SIZE_HW, Image, annotated, predicted, random_images

NAMES = ("scratch", "pit", "stain")


def scorer(images: list[Image], **settings: float) -> DefectScorer:
    made = DefectScorer(NAMES, **settings)  # type: ignore[arg-type]
    for prediction, annotation in images:
        made.update(prediction, annotation, SIZE_HW)
    return made


FOUND = (predicted((0, 0, 40, 40, 0, 0.9)), annotated((0, 0, 40, 40, 0)))
MISSED = (predicted((0, 0, 40, 40, 1, 0.2)), annotated((100, 0, 140, 40, 1)))
QUIET = (predicted(), annotated())
ALARMED = (predicted((0, 0, 40, 40, 2, 0.8)), annotated())


def test_four_images_worked_by_hand() -> None:
    metrics = scorer([FOUND, MISSED, QUIET, ALARMED]).compute()
    assert (metrics["threshold"], metrics["threshold_by"]) == (pytest.approx(0.9), "mean_f1")
    assert [metrics["ap_50"], metrics["map"]] == pytest.approx([0.5, 0.5])  # 1 for scratches, 0 for pits, no stain
    assert metrics["mean_f1"] == 0.5
    assert metrics["per_class"]["scratch"] == {
        "ap_50": pytest.approx(1),
        "map": pytest.approx(1),
        "num_objects": 1,
        "tp": 1,
        "fp": 0,
        "fn": 0,
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
    }
    assert metrics["per_class"]["stain"]["ap_50"] is None and metrics["per_class"]["stain"]["recall"] is None
    assert metrics["confusion"] == {
        "names": ["scratch", "pit", "stain", "background"],
        "counts": [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
    }
    assert (metrics["image_miss_rate"], metrics["image_false_alarm_rate"]) == (0.5, 0.0)
    assert metrics["at_wanted_miss_rate"]["threshold"] == pytest.approx(0.2)
    assert metrics["at_wanted_miss_rate"]["image_false_alarm_rate"] == 0.5
    counts = {name: value for name, value in metrics.items() if name.startswith("num_")}
    assert counts == {
        "num_images": 4,
        "num_ok_images": 2,
        "num_objects": 2,
        "num_ignored_regions": 0,
        "num_predictions": 3,
    }


def test_a_given_threshold_is_kept() -> None:
    metrics = scorer([FOUND, MISSED, QUIET, ALARMED]).compute(threshold=0.5)
    assert (metrics["threshold"], metrics["threshold_by"]) == (0.5, "given")
    assert metrics["per_class"]["stain"]["fp"] == 1 and metrics["image_false_alarm_rate"] == 0.5
    assert metrics["confusion"]["counts"][3] == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("images", "ap_50", "miss_rate", "false_alarm_rate"),
    [
        ([], None, None, None),
        ([QUIET], None, None, 0.0),
        ([ALARMED], None, None, 1.0),
        ([FOUND], 1.0, 0.0, None),
        ([(predicted(), annotated((0, 0, 9, 9, 0)))], 0.0, 1.0, None),
        ([(predicted(), annotated(ignored=((0, 0, 9, 9, 0),)))], None, None, 0.0),
    ],
    ids=["no image", "an OK image", "an OK image with an alarm", "one image", "nothing found", "ignored alone"],
)
def test_every_figure_is_defined_or_none_and_goes_into_json(
    images: list[Image], ap_50: float | None, miss_rate: float | None, false_alarm_rate: float | None
) -> None:
    metrics = json.loads(json.dumps(scorer(images).compute(), allow_nan=False))
    assert metrics["ap_50"] == (ap_50 and pytest.approx(ap_50))
    assert (metrics["image_miss_rate"], metrics["image_false_alarm_rate"]) == (miss_rate, false_alarm_rate)
    assert -1 not in numbers_of(metrics)


def test_the_search_for_minus_one_can_find_it() -> None:
    assert -1 in numbers_of({"a": [{"b": None}, {"c": -1.0}]})


def numbers_of(value: object) -> list[object]:
    if isinstance(value, dict | list):
        return [
            number for each in (value.values() if isinstance(value, dict) else value) for number in numbers_of(each)
        ]
    return [value]


def test_without_a_true_detection_the_threshold_is_the_default_and_says_so() -> None:
    metrics = scorer([MISSED]).compute()
    assert (metrics["threshold"], metrics["threshold_by"], metrics["mean_f1"]) == (0.5, "default", 0.0)


def test_the_order_of_images_does_not_matter() -> None:
    images = random_images(7)
    forwards, backwards = scorer(images).compute(), scorer(images[::-1]).compute()
    assert forwards == backwards and 0.2 < forwards["map"] < forwards["ap_50"] < 0.95


def test_reset_forgets_every_image() -> None:
    used = scorer([FOUND, ALARMED])
    used.reset()
    assert used.compute() == scorer([]).compute()


def test_what_is_drawn_beyond_the_frame_is_cut_off() -> None:
    at_corner = annotated((380, 380, 400, 400, 0))
    metrics = scorer([(predicted((380, 380, 450, 450, 0, 0.9)), at_corner)]).compute()
    assert metrics["ap_50"] == pytest.approx(1)
    inside = scorer([(predicted((330, 330, 400, 400, 0, 0.9)), at_corner)]).compute()
    assert inside["ap_50"] == 0  # the control: as large, but not beyond the frame


def test_a_reversed_box_is_a_false_detection_not_the_box_it_would_be_if_turned() -> None:
    reversed_box = predicted((40, 40, 0, 0, 0, 0.9))
    metrics = scorer([(reversed_box, FOUND[1])]).compute(threshold=0.5)
    assert metrics["ap_50"] == 0 and metrics["per_class"]["scratch"]["fp"] == 1


def test_a_threshold_for_another_miss_rate_can_be_asked_for() -> None:
    asked = scorer([FOUND, MISSED, QUIET, ALARMED]).threshold_for_miss_rate(0.5)
    assert asked["threshold"] == pytest.approx(0.9) and asked["image_false_alarm_rate"] == 0.0


def test_a_class_id_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"class ids of the prediction must be 0 to 2.*stain.*got \[3\]"):
        scorer([(predicted((0, 0, 9, 9, 3, 0.5)), annotated())])
    with pytest.raises(ValueError, match=r"class ids of the annotation .* got \[7\]"):
        scorer([(predicted(), annotated((0, 0, 9, 9, 7)))])


@pytest.mark.parametrize(("names", "rate"), [((), 0.1), (("pit", "pit"), 0.1), (("pit",), 1.5)])
def test_settings_that_make_no_sense_are_refused(names: tuple[str, ...], rate: float) -> None:
    with pytest.raises(ValueError, match="but got"):
        DefectScorer(names, wanted_miss_rate=rate)


def test_annotations_and_predictions_are_left_as_they_were() -> None:
    (prediction, annotation), *_ = random_images(8, num_images=1)
    before = prediction.boxes_xyxy_px.copy(), annotation.boxes_xyxy_px.copy()
    scorer([(prediction, annotation)]).compute()
    np.testing.assert_array_equal(prediction.boxes_xyxy_px, before[0])
    np.testing.assert_array_equal(annotation.boxes_xyxy_px, before[1])
