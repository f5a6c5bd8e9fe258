"""What is chosen on training images is what is scored on val: setting, limit side, share of the trained weights.

Run: pytest tests/unit/runs/test_judge.py
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from pipelines.config import PostProcessSection, TuneSection
from pipelines.evaluation.tuning import Trial, TuneResult
from pipelines.runs import judge as module
from pipelines.runs.judge import Judge

SHIPPED = PostProcessSection()


class Weights:
    """Stands in for `Blend` and network at once: remembers which share is applied."""

    def __init__(self) -> None:
        self.share = 1.0

    @contextmanager
    def applied(self, share: float) -> Iterator[None]:
        self.share, before = share, self.share
        yield
        self.share = before


class Scores:
    """Stands in for both evaluations: `on_train` says what (share, setting) is worth there, and every call is kept."""

    def __init__(self, weights: Weights, on_train: dict[tuple[float, PostProcessSection], float]):
        self.weights, self.on_train = weights, on_train
        self.tuned_with: list[TuneSection] = []
        self.scored_on_val: list[tuple[float, float]] = []

    def tune(self, task: Any, root: Any, records: Any, shipped: Any, options: TuneSection, *_: Any) -> Any:
        self.tuned_with.append(options)
        trials = [
            Trial(setting, {}, worth)
            for (share, setting), worth in self.on_train.items()
            if share == self.weights.share
        ]
        return TuneResult(max(trials, key=lambda trial: trial.objective).setting, tuple(trials))

    def evaluate(self, task: Any, *_: Any) -> dict[str, Any]:
        self.scored_on_val.append((self.weights.share, task.setting.post_process.unclip_ratio))
        return {"by_bucket": {"all": {"num_regions": 1, "hmean_50": 0.5}}}


@pytest.fixture
def weights() -> Weights:
    return Weights()


def judge_of(config: Any, scores: Scores, recorder: Any, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setattr(module, "tune_setting", scores.tune)
    monkeypatch.setattr(module, "evaluate_records", scores.evaluate)
    task: Any = SimpleNamespace(setting=None)
    return Judge(config, task, [], [], recorder)


def with_(**changes: Any) -> PostProcessSection:
    return SHIPPED.model_copy(update=changes)


def test_a_baseline_that_tuning_leaves_as_shipped_is_not_scored_again(weights, make_config, recorder, monkeypatch):
    scores = Scores(weights, {(1.0, SHIPPED): 0.9, (1.0, with_(unclip_ratio=1.2)): 0.8})
    judge = judge_of(make_config(evaluate={"tune": {}}), scores, recorder, monkeypatch)
    shipped = judge.as_shipped()
    assert judge.baseline(shipped).setting == SHIPPED
    assert scores.scored_on_val == [(1.0, 1.5)]


def test_without_tuning_everything_is_scored_at_the_configured_setting(weights, make_config, recorder, monkeypatch):
    scores = Scores(weights, {})
    config = make_config(evaluate={"setting": {"unclip_ratio": 1.3}})
    judge = judge_of(config, scores, recorder, monkeypatch)
    shipped = judge.as_shipped()
    assert judge.baseline(shipped) is shipped
    assert judge.trained(weights, "evaluation").setting.unclip_ratio == 1.3
    assert scores.tuned_with == [] and scores.scored_on_val == [(1.0, 1.3), (1.0, 1.3)]


def test_the_limit_side_of_the_baseline_holds_for_the_rest_of_the_run(weights, make_config, recorder, monkeypatch):
    # training sees text at that scale: another one would be tuned for weights that never saw it
    scores = Scores(weights, {(1.0, SHIPPED): 0.5, (1.0, with_(limit_side=1600)): 0.9})
    config = make_config(evaluate={"tune": {"limit_sides": [960, 1600]}})
    judge = judge_of(config, scores, recorder, monkeypatch)
    judge.baseline(judge.as_shipped())
    judge.trained(weights, "evaluation")
    assert [options.limit_sides for options in scores.tuned_with] == [[960, 1600], [1600]]


def test_the_share_of_trained_weights_is_chosen_on_training_images_and_scored_as_such(
    weights, make_config, recorder, monkeypatch
):
    scores = Scores(
        weights,
        {
            (0.5, with_(unclip_ratio=1.3)): 0.9,
            (0.5, SHIPPED): 0.7,
            (1.0, with_(unclip_ratio=1.3)): 0.6,
            (1.0, SHIPPED): 0.8,
        },
    )
    config = make_config(evaluate={"tune": {"unclip_ratios": [1.3, 1.5]}, "blend": [0.5, 1.0]})
    verdict = judge_of(config, scores, recorder, monkeypatch).trained(weights, "evaluation")
    assert (verdict.blend, verdict.setting.unclip_ratio) == (0.5, 1.3)
    assert scores.scored_on_val == [(0.5, 1.3)]
    assert weights.share == 1.0
    assert [trial["objective"] for trial in verdict.tuning] == [0.9, 0.7]
    entry = verdict.entry(7)
    assert (entry["update"], entry["blend"], entry["setting"]["unclip_ratio"]) == (7, 0.5, 1.3)
