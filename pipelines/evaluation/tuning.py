"""Choose settings (limit side, thresholds, unclip ratio) by score: a grid search and its objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from pipelines.errors import DataError

S = TypeVar("S")


@dataclass(frozen=True)
class Trial(Generic[S]):
    """One tried setting with its metrics and the objective's value."""

    setting: S
    metrics: Mapping[str, Any]
    objective: float


@dataclass(frozen=True)
class TuneResult(Generic[S]):
    """The best setting, and every trial in the order tried."""

    best: S
    table: tuple[Trial[S], ...]


def tune(
    candidates: Sequence[S],
    evaluate: Callable[[S], dict[str, Any]],
    objective: Callable[[Mapping[str, Any]], float],
) -> TuneResult[S]:
    """Evaluate every candidate; the highest objective wins, the earliest of equals.

    Put the shipped setting first: then it is only left for one that is better, never for an equal one.

    Args:
        candidates: settings to try.
        evaluate: metrics of a setting; should reuse whatever settings share (maps, say).
        objective: higher is better.

    Returns:
        The winner and all trials.

    Raises:
        ValueError: no candidates, or an objective that is nan.
    """
    if not candidates:
        raise ValueError("candidates must hold at least one setting, but is empty")
    table = []
    for setting in candidates:
        metrics = evaluate(setting)
        table.append(Trial(setting, metrics, objective(metrics)))
        if np.isnan(table[-1].objective):
            raise ValueError(f"the objective must be a number, but is nan for {setting}")
    best = max(table, key=lambda trial: trial.objective)  # max keeps the first of equals
    return TuneResult(best.setting, tuple(table))


def objective_mean_hmean(metrics: Mapping[str, Any]) -> float:
    """Mean over the size buckets with regions of the mean hmean over all IoU thresholds.

    Buckets weigh alike, so that a few large scans count as much as many small ones.

    Args:
        metrics: of `TextScorer.compute`.

    Returns:
        0 to 1.

    Raises:
        DataError: no bucket has a region that counts.
    """
    with_regions = [bucket for bucket in metrics["by_bucket"].values() if bucket["num_regions"]]
    if not with_regions:
        raise DataError(
            f"tuning needs images with text, but none of the {metrics['num_images']} images has a text region "
            "that is not ignored; tune on a split that has some"
        )
    hmeans = [[value for name, value in bucket.items() if name.startswith("hmean_")] for bucket in with_regions]
    return float(np.mean(hmeans))
