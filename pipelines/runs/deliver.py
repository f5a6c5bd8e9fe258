"""`export` and `evaluate`: a model leaves the project, and proves itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipelines.config import Config
from pipelines.dataset import read_image
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.engine.checkpoint import write_text
from pipelines.errors import DataError
from pipelines.export import check_in_paddleocr, compare_predictions, export_text_detector
from pipelines.runs.assemble import build_task, setting_of
from pipelines.runs.evaluation import TABLE_COLUMNS, evaluate_records, metrics_row, spread_over_buckets
from pipelines.runs.models import best_model, exported_setting, is_run
from pipelines.runs.reporter import Reporter
from pipelines.runs.splits import split_records
from pipelines.text_detection.forms import fuse
from pipelines.text_detection.task import TextDetection

_CHECKED_IMAGES = 20
_POST_PROCESS = ("binary_threshold", "box_threshold", "unclip_ratio", "max_candidates", "box_type")


def export(run: Path, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Write the run's best model for paddleocr, then run val images through paddleocr and compare.

    Raises:
        UsageError: `run` is no run folder, or `out` is somebody else's.
        DataError: paddleocr finds other boxes than the network.
    """
    best = best_model(run, reporter)
    config, task, parts = best.config, best.task, setting_of(best.setting)
    export_text_detector(
        fuse(task.network) if config.model.form == "branch" else task.network,
        out,
        resize=parts.resize.to_inference_yml(),
        post_process={name: getattr(parts.post_process, name) for name in _POST_PROCESS},
        meta={"run": run.name, "started_from": config.model.weights, "update": best.description["update"]},
        model_name=config.export.model_name,
    )
    reporter.note(f"exported to {out}: inference.json, inference.pdiparams, inference.yml")
    return _check(config, task, out, reporter)


def evaluate(config: Config, model: Path | None, split: str, reporter: Reporter) -> dict[str, Any]:
    """Metrics on a split of a run's best model, of other weights, or (None) of the configured ones.

    A run and an exported folder bring their own setting; weights are scored at `evaluate.setting`.
    """
    records = split_records(config.data, split, reporter)
    if model is not None and is_run(model):
        task = best_model(model, reporter).task
    else:
        setting = (exported_setting(model) if model else None) or config.evaluate.setting
        task = build_task(config, setting_of(setting), reporter, weights=str(model) if model else None)
    metrics = evaluate_records(task, config.data.root, records, config.evaluate.bucket_edges_px, reporter)
    reporter.table(f"{model or config.model.weights} on {split}", TABLE_COLUMNS, metrics_row("", metrics))
    return metrics


def _check(config: Config, task: TextDetection, out: Path, reporter: Reporter) -> dict[str, Any]:
    """The same boxes from the network and from the folder in paddleocr, or a DataError."""
    records = spread_over_buckets(
        split_records(config.data, "val", reporter), _CHECKED_IMAGES, config.evaluate.bucket_edges_px
    )
    images = [read_image(config.data.root / record.path) for record in records]
    with evaluation_mode(task.network):
        ours = task.predict(images)
    report = compare_predictions(ours, check_in_paddleocr(out, images))
    reporter.note(report.render())
    result = report.to_json()
    write_text(out / "parity.json", json.dumps(result, indent=1))
    if not report.ok:
        raise DataError(
            f"{out}: the exported model does not find the same boxes in paddleocr; see {out / 'parity.json'}"
        )
    return result
