"""Tuning picks the best setting, keeps the shipped one on a tie, and weighs size buckets alike."""

from __future__ import annotations

import pytest

from pipelines.errors import DataError
from pipelines.evaluation.tuning import objective_mean_hmean, tune


def metrics_of(*buckets: tuple[int, float | None]) -> dict:
    """Metrics with one bucket for each (num_regions, every hmean)."""
    parts = {
        f"bucket{i}": {"num_regions": num, "hmean_50": hmean, "hmean_70": hmean, "hmean_80": hmean, "recall_50": 0.0}
        for i, (num, hmean) in enumerate(buckets)
    }
    return {"num_images": len(buckets), "by_bucket": parts}


def test_highest_objective_wins_and_every_trial_is_kept_in_order() -> None:
    result = tune([1, 5, 3], lambda setting: {"score": setting}, lambda metrics: float(metrics["score"]))
    assert result.best == 5
    assert [(trial.setting, trial.objective) for trial in result.table] == [(1, 1.0), (5, 5.0), (3, 3.0)]


def test_shipped_setting_listed_first_wins_a_tie() -> None:
    assert tune(["shipped", "other"], lambda _: {}, lambda _: 0.5).best == "shipped"
    assert tune(["shipped", "other"], lambda s: {"s": s}, lambda m: float(m["s"] == "other")).best == "other"


def test_each_setting_is_evaluated_once() -> None:
    calls: list[int] = []
    tune([1, 2, 3], lambda setting: calls.append(setting) or {}, lambda _: 0.0)
    assert calls == [1, 2, 3]


def test_no_candidates_and_nan_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one setting"):
        tune([], lambda _: {}, lambda _: 0.0)
    with pytest.raises(ValueError, match="nan for 2"):
        tune([1, 2], lambda s: {"s": s}, lambda m: float("nan") if m["s"] == 2 else 0.0)


def test_a_bucket_of_few_regions_weighs_as_much_as_one_of_many() -> None:
    assert objective_mean_hmean(metrics_of((1000, 0.9), (10, 0.5))) == pytest.approx(0.7)


def test_a_bucket_without_regions_is_left_out() -> None:
    assert objective_mean_hmean(metrics_of((1000, 0.9), (0, 0.0), (0, None))) == pytest.approx(0.9)


def test_a_split_without_text_is_a_data_error() -> None:
    with pytest.raises(DataError, match="none of the 2 images"):
        objective_mean_hmean(metrics_of((0, None), (0, 0.0)))
