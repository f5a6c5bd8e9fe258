"""A defect detection run, wired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from pipelines.batching.loader import WindowLoader
from pipelines.batching.mix import EpochMix
from pipelines.batching.order import Position
from pipelines.config import DefectConfig, ViewSection
from pipelines.dataset import defect_classes, load_defect_split
from pipelines.defect_detection.network import parameter_groups
from pipelines.defect_detection.targets import DEFECT
from pipelines.defect_detection.task import DefectDetection
from pipelines.export import export_defect_detector, read_defect_settings
from pipelines.records import MicroBatch, Record
from pipelines.runs.defects.evaluation import evaluate_records
from pipelines.runs.defects.judge import DefectJudge, DefectVerdict
from pipelines.runs.defects.page import DefectPage
from pipelines.runs.defects.parity import check_export
from pipelines.runs.defects.parts import build_task, classes_beside, setting_of, training_samples, window_loader
from pipelines.runs.defects.pictures import DefectPresentation
from pipelines.runs.defects.tables import COLUMNS, metrics_row, tell_details
from pipelines.runs.reporter import Reporter
from pipelines.runs.splits import have_drawn
from pipelines.runs.wiring import Row, Samples


class DefectWiring:
    """The `Wiring` of defect detection."""

    columns: tuple[str, ...] = COLUMNS
    baseline_name = "starting weights"

    def __init__(self, config: DefectConfig, reporter: Reporter):
        self.config = config
        self.page = DefectPage(config)
        self._reporter = reporter

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Class names of the dataset, in the order of their ids."""
        self._draw()
        return defect_classes(self.config.data.root)

    def records(self, split: str) -> list[Record]:
        self._draw()
        return load_defect_split(self.config.data.root, split)

    def samples(self, records: Sequence[Record]) -> Samples:
        return training_samples(self.config, records, self.classes, self._reporter)

    def configured_setting(self) -> ViewSection:
        return self.config.evaluate.view

    def setting_from(self, values: Mapping[str, Any]) -> ViewSection:
        return ViewSection.model_validate(values)

    def build_task(self, setting: ViewSection, weights: str | None = None) -> DefectDetection:
        own = classes_beside(weights) if weights else None
        return build_task(self.config, setting_of(setting), own or self.classes, self._reporter, weights)

    def parameter_groups(self, task: DefectDetection) -> dict[str, list[paddle.Tensor]]:
        return parameter_groups(task.network)

    def window_loader(self, samples: Samples, setting: ViewSection) -> WindowLoader:
        loader = window_loader(self.config, samples, setting, self.classes, self._reporter)
        assert isinstance(samples.mix, EpochMix)  # `samples` made it
        first = samples.mix.composition(loader.record_indices(Position()))
        self._reporter.note(f"the first window: {first.describe(self.classes)}")
        return loader

    def evaluation_shapes(self, records: Sequence[Record]) -> dict[tuple[int, int], int]:
        view = setting_of(self.configured_setting())
        return dict(Counter(shape for record in records for shape in view.view_shapes(record.size_hw)))

    def look(self, task: DefectDetection, size_hw: tuple[int, int]) -> None:
        task.setting.finder(task.network)(np.zeros((*size_hw, 3), np.uint8))

    def counts(self, window: Sequence[MicroBatch]) -> dict[str, int]:
        num_defects = np.concatenate(_num_defects(window))
        return {"ok_samples": int((num_defects == 0).sum()), "defects": int(num_defects.sum())}

    def image_groups(self, window: Sequence[MicroBatch]) -> dict[str, np.ndarray]:
        num_defects = _num_defects(window)
        is_clean = [np.full(len(counts), not counts.any()) for counts in num_defects]
        return {
            "defects": np.concatenate(num_defects),
            "background beside defects": np.concatenate(is_clean) == 0,
            "background of clean micro-batches": np.concatenate(is_clean),
        }

    def judge(
        self, task: DefectDetection, train_records: Sequence[Record], val_records: Sequence[Record]
    ) -> DefectJudge:
        return DefectJudge(self.config, task, self.classes, val_records, self._reporter)

    def evaluate(self, task: DefectDetection, records: Sequence[Record]) -> dict[str, Any]:
        wanted = self.config.evaluate.wanted_miss_rate
        return evaluate_records(task, self.config.data.root, records, self.classes, wanted, self._reporter)

    def rows(self, label: str, metrics: Mapping[str, Any]) -> list[Row]:
        return [metrics_row(label, metrics)]

    def tell_details(self, metrics: Mapping[str, Any]) -> None:
        tell_details(metrics, self._reporter)

    def summary(self, verdict: DefectVerdict) -> str:
        numbers = dict(zip(COLUMNS, metrics_row("", verdict.metrics), strict=True))
        said = ", ".join(f"{name} {numbers[name]}" for name in ("AP50", "mAP", "missed images", "false alarms"))
        return f"{said} on val, {verdict.blend:.0%} of the way"

    def describe(self, setting: ViewSection) -> str:
        scale = f"longest side {setting.longest_side}" if setting.longest_side else f"scale {setting.scale:g}"
        return f"{scale}, tiles of {setting.tile} with {setting.overlap} in common, NMS IoU {setting.nms_iou:g}"

    def conclusion(self, baseline: Mapping[str, Any], best: Mapping[str, Any]) -> tuple[str, str]:
        before, after = (metrics["ap_50"] or 0.0 for metrics in (baseline, best))
        lower = [
            name
            for name, after_training in best["per_class"].items()
            if (after_training["ap_50"] or 0.0) < (baseline["per_class"][name]["ap_50"] or 0.0)
        ]
        warning = f"AP50 lower than with the starting weights: {', '.join(lower)}" if lower else ""
        return f"training took AP50 from {before:.3f} to {after:.3f}", warning

    def description(self) -> dict[str, Any]:
        model = self.config.model
        return {"network": model.network, "classes": list(self.classes), "started_from": model.weights}

    def exported_setting(self, folder: Path) -> ViewSection:
        return ViewSection.model_validate(read_defect_settings(folder))

    def export(
        self,
        task: DefectDetection,
        setting: ViewSection,
        out: Path,
        meta: Mapping[str, Any],
        metrics: Mapping[str, Any],
    ) -> None:
        export_defect_detector(
            task.network,
            out,
            setting=setting_of(setting),
            class_names=task.network.class_names,
            meta=meta,
            model_name=self.config.export.model_name,
            threshold=metrics["threshold"],
        )

    def check_export(self, task: DefectDetection, out: Path) -> Any:
        return check_export(task, out, self.config.data.root, self.records("val"), self._reporter)

    def presentation(self, description: Mapping[str, Any], confidence: float | None) -> DefectPresentation:
        threshold = description["metrics"]["threshold"] if confidence is None else confidence
        return DefectPresentation(tuple(description["classes"]), threshold)

    def _draw(self) -> None:
        data = self.config.data
        if data.synthetic is not None:
            have_drawn(data.root, data.synthetic, self._reporter)


def _num_defects(window: Sequence[MicroBatch]) -> list[np.ndarray]:
    """Defects of every image, an array a micro-batch."""
    return [(micro_batch.targets["kinds"] == DEFECT).sum(axis=1) for micro_batch in window]
