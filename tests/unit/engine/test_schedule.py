"""Counts and learning rates, by hand and for every small number."""

from __future__ import annotations

import math

import pytest

from pipelines.engine.schedule import (
    LearningRateSchedule,
    capped_warmup,
    scaled_learning_rate,
    updates_per_epoch,
)
from pipelines.errors import UsageError


def test_updates_of_an_epoch_leave_no_sample_out_and_hold_no_empty_window() -> None:
    for num_samples in range(1, 70):
        for effective_batch in range(1, 40):
            updates = updates_per_epoch(num_samples, effective_batch)
            assert (updates - 1) * effective_batch < num_samples <= updates * effective_batch


def test_seven_samples_at_four_are_two_updates_and_three_are_one() -> None:
    assert updates_per_epoch(7, 4) == 2
    assert updates_per_epoch(3, 4) == 1


@pytest.mark.parametrize(
    ("rule", "effective_batch", "expected"),
    [("linear", 32, 4e-3), ("linear", 4, 5e-4), ("sqrt", 32, 2e-3), ("sqrt", 2, 5e-4), ("none", 32, 1e-3)],
)
def test_learning_rate_follows_the_effective_batch(rule: str, effective_batch: int, expected: float) -> None:
    assert scaled_learning_rate(1e-3, 8, effective_batch, rule) == pytest.approx(expected, rel=1e-12)


def test_unknown_learning_rate_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="linear, sqrt, none, but got 'cubic'"):
        scaled_learning_rate(1e-3, 8, 32, "cubic")


def test_warmup_is_never_longer_than_a_fifth_of_the_run() -> None:
    for num_updates in range(200):
        for asked in (0, 1, 5, 1000):
            warmup = capped_warmup(asked, num_updates)
            assert 0 <= warmup <= asked and 5 * warmup <= num_updates
            assert warmup == asked or warmup == num_updates // 5
            LearningRateSchedule(1.0, num_updates, warmup)


def test_a_warmup_longer_than_a_fifth_is_refused() -> None:
    with pytest.raises(ValueError, match="3 updates is more than a fifth of the 14"):
        LearningRateSchedule(1.0, 14, 3)


def test_warmup_rises_evenly_and_ends_below_the_peak() -> None:
    schedule = LearningRateSchedule(1.0, 20, 4)
    assert [schedule.at(update) for update in range(5)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0], rel=1e-12)


def test_cosine_by_hand() -> None:
    schedule = LearningRateSchedule(2.0, 8, final_share=0.5)
    # from 2 to 1: 1 + (1 + cos(pi u / 8)) / 2
    assert schedule.at(0) == pytest.approx(2.0)
    assert schedule.at(2) == pytest.approx(1.5 + math.sqrt(2) / 4)
    assert schedule.at(4) == pytest.approx(1.5)
    assert schedule.at(8) == pytest.approx(1.0)
    assert schedule.at(100) == pytest.approx(1.0)


def test_learning_rate_is_positive_and_falls_after_the_warmup_for_every_small_run() -> None:
    for num_updates in range(1, 40):
        schedule = LearningRateSchedule(3.0, num_updates, num_updates // 5)
        rates = [schedule.at(update) for update in range(num_updates)]
        assert max(rates) == rates[num_updates // 5] == 3.0
        assert rates[num_updates // 5 :] == sorted(rates[num_updates // 5 :], reverse=True)
        assert min(rates) > 0
