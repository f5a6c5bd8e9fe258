"""A text detection run, wired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from pipelines.batching.loader import WindowLoader
from pipelines.config import PostProcessSection, TextConfig
from pipelines.dataset import load_split, read_image
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.evaluation.tuning import objective_mean_hmean
from pipelines.export import ParityReport, check_in_paddleocr, compare_predictions, export_text_detector, read_settings
from pipelines.records import MicroBatch, Record
from pipelines.runs.reporter import Reporter
from pipelines.runs.splits import have_drawn
from pipelines.runs.text.evaluation import (
    HMEANS,
    TABLE_COLUMNS,
    evaluate_records,
    lower_cells,
    metrics_row,
    spread_over_buckets,
)
from pipelines.runs.text.judge import TextJudge, TextVerdict
from pipelines.runs.text.loading import window_loader
from pipelines.runs.text.page import TextPage
from pipelines.runs.text.parts import build_task, setting_of, training_records
from pipelines.runs.text.pictures import TextPresentation
from pipelines.runs.wiring import Row, Samples
from pipelines.text_detection.forms import fuse
from pipelines.text_detection.network import parameter_groups
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.task import TextDetection

_CHECKED_IMAGES = 20
_POST_PROCESS = ("binary_threshold", "box_threshold", "unclip_ratio", "max_candidates", "box_type")


class TextWiring:
    """The `Wiring` of text detection."""

    columns: tuple[str, ...] = TABLE_COLUMNS
    baseline_name = "tuned baseline"

    def __init__(self, config: TextConfig, reporter: Reporter):
        self.config = config
        self.page = TextPage(config.evaluate.bucket_edges_px)
        self._reporter = reporter

    def records(self, split: str) -> list[Record]:
        data = self.config.data
        if data.synthetic is not None:
            have_drawn(data.root, data.synthetic, self._reporter)
        return load_split(data.root, split)

    def samples(self, records: Sequence[Record]) -> Samples:
        return Samples(training_records(self.config, records))

    def configured_setting(self) -> PostProcessSection:
        return self.config.evaluate.setting

    def setting_from(self, values: Mapping[str, Any]) -> PostProcessSection:
        return PostProcessSection.model_validate(values)

    def build_task(self, setting: PostProcessSection, weights: str | None = None) -> TextDetection:
        return build_task(self.config, setting_of(setting), self._reporter, weights)

    def parameter_groups(self, task: TextDetection) -> dict[str, list[paddle.Tensor]]:
        return parameter_groups(task.network)

    def window_loader(self, samples: Samples, setting: PostProcessSection) -> WindowLoader:
        return window_loader(self.config, samples.records, setting, self._reporter)

    def evaluation_shapes(self, records: Sequence[Record]) -> dict[tuple[int, int], int]:
        resize = setting_of(self.configured_setting()).resize
        return dict(Counter(resize.size_hw(record.size_hw) for record in records))

    def look(self, task: TextDetection, size_hw: tuple[int, int]) -> None:
        as_it_is = ResizeRule(limit_side=max(size_hw))
        task.probability_map(np.zeros((*size_hw, 3), np.uint8), as_it_is)

    def counts(self, window: Sequence[MicroBatch]) -> dict[str, int]:
        return {}

    def image_groups(self, window: Sequence[MicroBatch]) -> dict[str, np.ndarray]:
        return {}

    def judge(self, task: TextDetection, train_records: Sequence[Record], val_records: Sequence[Record]) -> TextJudge:
        return TextJudge(self.config, task, train_records, val_records, self._reporter)

    def evaluate(self, task: TextDetection, records: Sequence[Record]) -> dict[str, Any]:
        edges = self.config.evaluate.bucket_edges_px
        return evaluate_records(task, self.config.data.root, records, edges, self._reporter)

    def rows(self, label: str, metrics: Mapping[str, Any]) -> list[Row]:
        return list(metrics_row(label, metrics))

    def tell_details(self, metrics: Mapping[str, Any]) -> None:
        """The table says it all."""

    def summary(self, verdict: TextVerdict) -> str:
        hmeans = " / ".join("-" if (value := verdict.metrics[name]) is None else f"{value:.3f}" for name in HMEANS)
        return f"hmean .5 / .7 / .8 = {hmeans} on val, {self.describe(verdict.setting)}, {verdict.blend:.0%} of the way"

    def describe(self, setting: PostProcessSection) -> str:
        return (
            f"limit side {setting.limit_side}, binary threshold {setting.binary_threshold:g},"
            f" box threshold {setting.box_threshold:g}, unclip ratio {setting.unclip_ratio:g}"
        )

    def conclusion(self, baseline: Mapping[str, Any], best: Mapping[str, Any]) -> tuple[str, str]:
        gain = objective_mean_hmean(best) - objective_mean_hmean(baseline)
        lower = [f"{name} {bucket}" for bucket, name in lower_cells(best, baseline)]
        return (
            f"training added {gain:+.3f} to the mean hmean of the {self.baseline_name}",
            f"lower than the {self.baseline_name}: {', '.join(lower)}" if lower else "",
        )

    def description(self) -> dict[str, Any]:
        model = self.config.model
        return {"network": model.network, "form": model.form, "started_from": model.weights}

    def exported_setting(self, folder: Path) -> PostProcessSection:
        return PostProcessSection.model_validate(read_settings(folder))

    def export(
        self,
        task: TextDetection,
        setting: PostProcessSection,
        out: Path,
        meta: Mapping[str, Any],
        metrics: Mapping[str, Any],
    ) -> None:
        parts = setting_of(setting)
        export_text_detector(
            fuse(task.network) if self.config.model.form == "branch" else task.network,
            out,
            resize=parts.resize.to_inference_yml(),
            post_process={name: getattr(parts.post_process, name) for name in _POST_PROCESS},
            meta=meta,
            model_name=self.config.export.model_name,
        )

    def check_export(self, task: TextDetection, out: Path) -> ParityReport:
        edges = self.config.evaluate.bucket_edges_px
        records = spread_over_buckets(self.records("val"), _CHECKED_IMAGES, edges)
        images = [read_image(self.config.data.root / record.path) for record in records]
        with evaluation_mode(task.network):
            ours = task.predict(images)
        return compare_predictions(ours, check_in_paddleocr(out, images))

    def presentation(self, description: Mapping[str, Any], confidence: float | None) -> TextPresentation:
        return TextPresentation(confidence)
