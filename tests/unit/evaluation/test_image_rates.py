"""Miss rate and false-alarm rate of images, and the threshold that reaches a wanted miss rate, against counting."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.evaluation.box_matching import match_image
from pipelines.evaluation.image_rates import ImageScores, rate_curve, rates_at, threshold_for_miss_rate
from tests.unit.evaluation.defect_images import annotated, predicted, random_images

NEVER = -np.inf


def scores(defective: list[float], ok: list[float]) -> ImageScores:
    return ImageScores(np.sort(np.array(defective, float)), np.sort(np.array(ok, float)))


HAND = scores([0.9, 0.8, 0.6, 0.3], ok=[0.7, 0.2, NEVER, NEVER, NEVER])


def test_an_image_scores_as_its_most_confident_detection_that_is_not_on_an_ignore_region() -> None:
    images = [
        (predicted((0, 0, 9, 9, 0, 0.4), (50, 50, 60, 60, 1, 0.8)), annotated((0, 0, 9, 9, 0))),
        (predicted((5, 5, 9, 9, 0, 0.9), (50, 50, 60, 60, 0, 0.3)), annotated(ignored=((0, 0, 10, 10, 0),))),
        (predicted(), annotated()),
        (predicted(), annotated((0, 0, 9, 9, 1))),
    ]
    found = ImageScores.of([match_image(*image, 0.5) for image in images])
    assert found.defective.round(3).tolist() == [NEVER, 0.8] and found.ok.round(3).tolist() == [NEVER, 0.3]


@pytest.mark.parametrize(
    ("threshold", "miss_rate", "false_alarm_rate"),
    [(1.0, 1.0, 0.0), (0.8, 0.5, 0.0), (0.7, 0.5, 0.2), (0.6, 0.25, 0.2), (0.3, 0.0, 0.2), (0.0, 0.0, 0.4)],
)
def test_rates_worked_by_hand(threshold: float, miss_rate: float, false_alarm_rate: float) -> None:
    assert rates_at(HAND, threshold) == {
        "threshold": threshold,
        "image_miss_rate": miss_rate,
        "image_false_alarm_rate": pytest.approx(false_alarm_rate),
    }


@pytest.mark.parametrize(
    ("wanted", "threshold"), [(0.0, 0.3), (0.24, 0.3), (0.25, 0.6), (0.5, 0.8), (0.75, 0.9), (1.0, 0.9)]
)
def test_the_threshold_for_a_wanted_miss_rate_worked_by_hand(wanted: float, threshold: float) -> None:
    point = threshold_for_miss_rate(HAND, wanted)
    assert point["threshold"] == threshold and point["is_reached"] is True and point["image_miss_rate"] <= wanted


def test_it_is_the_highest_such_threshold_on_random_images() -> None:
    found = ImageScores.of([match_image(*image, 0.5) for image in random_images(6, num_images=80)])
    assert len(found.defective) > 20
    for wanted in np.linspace(0, 0.95, 20).tolist():
        point = threshold_for_miss_rate(found, wanted)
        assert point["image_miss_rate"] <= wanted
        higher = np.nextafter(point["threshold"], 2)
        assert rates_at(found, float(higher))["image_miss_rate"] > wanted


def test_rounding_does_not_cost_an_image() -> None:
    # 0.29 x 100 is 28.999999999999996.
    hundred = scores(np.linspace(0.01, 1, 100).tolist(), ok=[])
    assert threshold_for_miss_rate(hundred, 0.29)["image_miss_rate"] == 0.29


def test_a_miss_rate_that_no_threshold_reaches_is_said_to_be_out_of_reach() -> None:
    half_blind = scores([0.9, NEVER], ok=[0.1, NEVER])
    assert threshold_for_miss_rate(half_blind, 0.2) == {
        "wanted_miss_rate": 0.2,
        "is_reached": False,
        "threshold": 0.0,
        "image_miss_rate": 0.5,
        "image_false_alarm_rate": 0.5,
    }
    assert threshold_for_miss_rate(half_blind, 0.5)["threshold"] == 0.9


def test_rates_of_images_that_do_not_exist_are_none() -> None:
    assert rates_at(scores([], [0.5]), 0.3)["image_miss_rate"] is None
    assert rates_at(scores([0.5], []), 0.3)["image_false_alarm_rate"] is None
    assert threshold_for_miss_rate(scores([], [0.5]), 0.1) == {
        "wanted_miss_rate": 0.1,
        "is_reached": False,
        "threshold": None,
        "image_miss_rate": None,
        "image_false_alarm_rate": None,
    }
    assert rate_curve(scores([], [])) == rate_curve(scores([NEVER], [NEVER])) == []
    assert ImageScores.of([]).defective.size == 0


@pytest.mark.parametrize("wanted", [-0.1, 1.01, float("nan")])
def test_a_wanted_rate_that_is_none_is_refused(wanted: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1, but got"):
        threshold_for_miss_rate(HAND, wanted)


def test_the_curve_has_few_points_from_high_to_low_and_both_ends() -> None:
    rng = np.random.default_rng(2)
    curve = rate_curve(scores(rng.random(300).tolist(), rng.random(700).tolist()), max_points=11)
    thresholds, misses, alarms = (
        [point[name] for point in curve] for name in ("threshold", "image_miss_rate", "image_false_alarm_rate")
    )
    assert len(curve) == 11
    assert thresholds == sorted(thresholds, reverse=True) and misses == sorted(misses, reverse=True)
    assert alarms == sorted(alarms) and (misses[-1], alarms[-1]) == (0.0, 1.0)
    assert [point["threshold"] for point in rate_curve(HAND)] == [0.9, 0.8, 0.7, 0.6, 0.3, 0.2]
