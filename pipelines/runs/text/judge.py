"""What a model is worth on val, at a setting tuned for its weights on training images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.config import PostProcessSection, TextConfig
from pipelines.engine.blend import Blend
from pipelines.evaluation.tuning import TuneResult, objective_mean_hmean
from pipelines.records import Record
from pipelines.runs.reporter import Reporter
from pipelines.runs.text.evaluation import evaluate_records, lower_cells, tune_setting
from pipelines.runs.text.maps import FittingMaps
from pipelines.runs.text.parts import setting_of
from pipelines.runs.wiring import Verdict
from pipelines.text_detection.task import TextDetection

TextVerdict = Verdict[PostProcessSection]


class TextJudge:
    """A `Judge` that tunes the setting on training images, with the same images and candidates every time."""

    def __init__(
        self,
        config: TextConfig,
        task: TextDetection,
        train_records: Sequence[Record],
        val_records: Sequence[Record],
        reporter: Reporter,
    ):
        self._config, self._task, self._reporter = config, task, reporter
        self._train_records, self._val_records = train_records, val_records
        self._maps = FittingMaps(task, reporter)  # one for the run: what did not fit once is not tried every time
        self._limit_side: int | None = None
        self._baseline: TextVerdict

    def as_shipped(self) -> TextVerdict:
        """At the configured setting."""
        setting = self._config.evaluate.setting
        return _verdict(self._on_val(setting, "baseline as shipped"), setting)

    def baseline(self, shipped: TextVerdict) -> TextVerdict:
        """The same weights at the setting tuned for them; its limit side holds for the rest of the run."""
        self._baseline = shipped
        if self._config.evaluate.tune is not None:
            result = self._tuned()
            self._limit_side = result.best.limit_side
            metrics = shipped.metrics if result.best == shipped.setting else self._on_val(result.best, "baseline tuned")
            self._baseline = _verdict(metrics, result.best, tuning=_trials(result))
        return self._baseline

    def trained(self, blend: Blend, title: str) -> TextVerdict:
        """Of the configured blends with the starting weights, each at its own setting, the preferred one."""
        verdicts = []
        for share in self._config.evaluate.blend:
            with blend.applied(share):
                result = self._tuned() if self._config.evaluate.tune is not None else None
                setting = result.best if result else self._config.evaluate.setting
                metrics = self._on_val(setting, f"{title}, {share:.0%} of the way")
            verdicts.append(_verdict(metrics, setting, share, _trials(result) if result else ()))
        return max(verdicts, key=self.preference)

    def preference(self, verdict: TextVerdict) -> tuple[bool, bool, float]:
        """Sorts verdicts: better than the baseline on the whole, then nowhere below it, then by how much."""
        is_better = verdict.objective > self._baseline.objective
        return is_better, not lower_cells(verdict.metrics, self._baseline.metrics), verdict.objective

    def _tuned(self) -> TuneResult[PostProcessSection]:
        evaluate = self._config.evaluate
        assert evaluate.tune is not None  # the callers check
        shipped, options = evaluate.setting, evaluate.tune
        if self._limit_side is not None:
            shipped = shipped.model_copy(update={"limit_side": self._limit_side})
            options = options.model_copy(update={"limit_sides": [self._limit_side]})
        root, edges = self._config.data.root, evaluate.bucket_edges_px
        return tune_setting(self._task, root, self._train_records, shipped, options, edges, self._reporter, self._maps)

    def _on_val(self, setting: PostProcessSection, title: str) -> dict[str, Any]:
        config = self._config
        self._task.setting = setting_of(setting)
        root, edges = config.data.root, config.evaluate.bucket_edges_px
        return evaluate_records(self._task, root, self._val_records, edges, self._reporter, title, self._maps)


def _verdict(
    metrics: Mapping[str, Any], setting: PostProcessSection, blend: float = 1.0, tuning: tuple[dict[str, Any], ...] = ()
) -> TextVerdict:
    return Verdict(metrics, objective_mean_hmean(metrics), setting, blend, tuning)


def _trials(result: TuneResult[PostProcessSection]) -> tuple[dict[str, Any], ...]:
    return tuple({"setting": trial.setting.model_dump(), "objective": trial.objective} for trial in result.table)
