"""What the report of a defect detection run says that another task's would not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipelines.config import DefectConfig
from pipelines.dataset import defect_classes
from pipelines.records import DefectPrediction, Record
from pipelines.report import ChangedImage, Findings, RunResult, TaskContent
from pipelines.runs.choice import spread_evenly
from pipelines.runs.defects import page_tables
from pipelines.runs.defects.captions import captions_of
from pipelines.runs.defects.pictures import changed_image, findings

_OBJECTIVES = {"ap_50": "AP50", "map": "mAP"}


class DefectPage:
    """The `TaskPage` of defect detection."""

    untuned_name = "starting weights"

    def __init__(self, config: DefectConfig):
        self._config = config
        self.objective_name = _OBJECTIVES[config.evaluate.objective]

    def objective(self, metrics: Mapping[str, Any]) -> float:
        return float(metrics[self._config.evaluate.objective] or 0.0)

    def content(self, result: RunResult) -> TaskContent:
        best = result.metrics["best"]
        note = captions_of(tuple(best["per_class"])).note
        return TaskContent(
            remarks=page_tables.remarks(result),
            result=[
                page_tables.result_table(result),
                page_tables.class_table(result),
                page_tables.confusion_table(best),
                page_tables.threshold_table(best),
            ],
            panels=page_tables.panels(result),
            facts=page_tables.facts(result),
            pictures_key="fits a label of its class at IoU .5" + (f" ({note})" if note else ""),
            program="paddlex",
            data=page_tables.data_tables(self._config, list(best["per_class"])),
        )

    def worth_drawing(self, records: Sequence[Record], most: int) -> list[Record]:
        """Of every class some, and OK images."""
        buckets: dict[int, list[Record]] = {}
        for record in records:
            class_ids = record.annotation.class_ids[~record.annotation.is_ignored]
            buckets.setdefault(int(class_ids[0]) if len(class_ids) else -1, []).append(record)
        return spread_evenly(list(buckets.values()), most)

    def findings(self, record: Record, prediction: DefectPrediction, metrics: Mapping[str, Any]) -> Findings:
        return findings(
            prediction, record.annotation, metrics["threshold"], captions_of(tuple(metrics["per_class"])).names
        )

    def changed_image(self, record: Record, image: np.ndarray, before: Findings, after: Findings) -> ChangedImage:
        captions = captions_of(defect_classes(self._config.data.root))
        return changed_image(record, image, before, after, captions)
