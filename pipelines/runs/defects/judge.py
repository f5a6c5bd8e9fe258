"""What a detector is worth on val; its confidence threshold is chosen there and then."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.config import DefectConfig, ViewSection
from pipelines.defect_detection.task import DefectDetection
from pipelines.engine.blend import Blend
from pipelines.records import Record
from pipelines.runs.defects.evaluation import evaluate_records
from pipelines.runs.reporter import Reporter
from pipelines.runs.wiring import Verdict

DefectVerdict = Verdict[ViewSection]


class DefectJudge:
    """A `Judge` without anything to tune: AP looks at all thresholds."""

    def __init__(
        self,
        config: DefectConfig,
        task: DefectDetection,
        class_names: Sequence[str],
        val_records: Sequence[Record],
        reporter: Reporter,
    ):
        self._config, self._task, self._reporter = config, task, reporter
        self._class_names, self._val_records = class_names, val_records

    def as_shipped(self) -> DefectVerdict:
        """The starting weights; those with a new class convolution know nothing yet."""
        return self._verdict("baseline")

    def baseline(self, shipped: DefectVerdict) -> DefectVerdict:
        return shipped

    def trained(self, blend: Blend, title: str) -> DefectVerdict:
        verdicts = []
        for share in self._config.evaluate.blend:
            with blend.applied(share):
                verdicts.append(self._verdict(f"{title}, {share:.0%} of the way" if share < 1 else title, share))
        return max(verdicts, key=self.preference)

    def preference(self, verdict: DefectVerdict) -> float:
        """Sorts verdicts by `evaluate.objective`."""
        return verdict.objective

    def _verdict(self, title: str, blend: float = 1.0) -> DefectVerdict:
        evaluate = self._config.evaluate
        metrics = evaluate_records(
            self._task,
            self._config.data.root,
            self._val_records,
            self._class_names,
            evaluate.wanted_miss_rate,
            self._reporter,
            title,
        )
        return Verdict(metrics, float(metrics[evaluate.objective] or 0.0), evaluate.view, blend)
