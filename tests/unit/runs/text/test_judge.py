"""The setting is chosen on training images for each blend; the blend that is nowhere below the baseline wins.

Run: pytest tests/unit/runs/text/test_judge.py
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pipelines.config import PostProcessSection, TuneSection
from pipelines.evaluation.tuning import Trial, TuneResult
from pipelines.runs.text import judge as module
from pipelines.runs.text.judge import TextJudge as Judge
from tests.unit.runs.stand_ins import Weights

SHIPPED = PostProcessSection()


class Scores:
    """Stands in for both evaluations: `on_train` says what (share, setting) is worth there, `on_val` what a
    share is; every call is kept."""

    def __init__(
        self,
        weights: Weights,
        on_train: dict[tuple[float, PostProcessSection], float],
        on_val: dict[float, tuple[float, float, float]] | None = None,
    ):
        self.weights, self.on_train, self.on_val = weights, on_train, on_val or {}
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
        hmeans = self.on_val.get(self.weights.share, (0.5, 0.5, 0.5))
        names = ("hmean_50", "hmean_70", "hmean_80")
        return {"by_bucket": {"all": {"num_regions": 1, **dict(zip(names, hmeans, strict=True))}}}


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


@pytest.mark.parametrize(
    ("half_way", "all_the_way", "preferred"),
    [
        # the baseline is .90 / .80 / .50
        ((0.90, 0.82, 0.60), (0.89, 0.90, 0.90), 0.5),  # all the way is better on the whole, but lower in a cell
        ((0.90, 0.82, 0.60), (0.90, 0.90, 0.90), 1.0),
        ((0.89, 0.82, 0.60), (0.88, 0.90, 0.90), 1.0),  # both are lower somewhere: the better on the whole
        ((0.90, 0.80, 0.40), (0.85, 0.90, 0.90), 1.0),  # half way does not beat the baseline at all
        ((0.8996, 0.82, 0.60), (0.89, 0.90, 0.90), 0.5),  # equal at the three digits that tables show
    ],
)
def test_the_preferred_share_is_nowhere_below_the_baseline_if_it_can_be(
    half_way, all_the_way, preferred, make_config, recorder, monkeypatch
):
    trained = Weights()
    on_train = {(share, SHIPPED): 0.5 for share in (0.0, 0.5, 1.0)}
    scores = Scores(trained, on_train, {0.0: (0.90, 0.80, 0.50), 0.5: half_way, 1.0: all_the_way})
    judge = judge_of(make_config(evaluate={"tune": {}, "blend": [0.5, 1.0]}), scores, recorder, monkeypatch)
    with trained.applied(0.0):
        judge.baseline(judge.as_shipped())
    verdict = judge.trained(trained, "evaluation")
    assert verdict.blend == preferred
    assert trained.share == 1.0


def test_every_share_is_scored_at_the_setting_tuned_for_it(weights, make_config, recorder, monkeypatch):
    tight = with_(unclip_ratio=1.3)
    on_train = {(0.5, tight): 0.9, (0.5, SHIPPED): 0.7, (1.0, tight): 0.6, (1.0, SHIPPED): 0.8}
    scores = Scores(weights, on_train, {0.5: (0.6, 0.6, 0.6)})
    config = make_config(evaluate={"tune": {"unclip_ratios": [1.3, 1.5]}, "blend": [0.5, 1.0]})
    judge = judge_of(config, scores, recorder, monkeypatch)
    judge.baseline(judge.as_shipped())
    verdict = judge.trained(weights, "evaluation")
    assert scores.scored_on_val[1:] == [(0.5, 1.3), (1.0, 1.5)]
    assert [trial["objective"] for trial in verdict.tuning] == [0.9, 0.7]
    entry = verdict.entry(7)
    assert (entry["update"], entry["blend"], entry["setting"]["unclip_ratio"]) == (7, 0.5, 1.3)
