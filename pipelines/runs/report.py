"""`report`: a run folder becomes one page that can be mailed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.config import PostProcessSection, TextConfig, load_config
from pipelines.dataset import load_split, read_image
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.engine.schedule import scaled_learning_rate
from pipelines.errors import UsageError, WholebatchError
from pipelines.evaluation.overlap import as_geometries, intersection_areas, iou_matrix
from pipelines.evaluation.text import IGNORED_SHARE, match_greedily
from pipelines.evaluation.tuning import objective_mean_hmean
from pipelines.records import Record, TextAnnotation, TextPrediction
from pipelines.report import ChangedImage, Findings, RunResult, write_report
from pipelines.runs.reporter import Quiet, Reporter
from pipelines.runs.text.evaluation import spread_over_buckets
from pipelines.runs.text.parts import build_task, setting_of

_TRIED_IMAGES = 8  # two forward passes each: a report must not cost another evaluation
_SHOWN_IMAGES = 4
_SHOWN_IOU = 0.7


def report(run: Path, reporter: Reporter) -> Path:
    """Write RUN/report.html from what the run left, and from a few val images predicted before and after.

    Without the dataset or the first weights the page is written all the same and says why it has no pictures.

    Raises:
        UsageError: `run` is no run folder.
    """
    if not isinstance(load_config(run / "config.yml"), TextConfig):
        return run  # the page of a defect run comes with the report part
    config, result = read_run(run)
    changed, note = _pictures(run, config, result, reporter)
    file = write_report(run / "report.html", result, changed, pictures_note=note)
    reporter.note(f"report: {file}")
    return file


def changed_images(run: Path, config: TextConfig, result: RunResult, reporter: Reporter) -> list[ChangedImage]:
    """A few val images of every size as two models see them, those where most labels changed their fate."""
    edges = config.evaluate.bucket_edges_px
    records = spread_over_buckets(load_split(config.data.root, "val"), _TRIED_IMAGES, edges)
    has_won = result.metrics["best"]["update"] > 0
    before, after = ("baseline", "best") if has_won else ("shipped", "baseline")
    best_weights = str(run / "best" / "weights.pdparams") if has_won else None
    with reporter.progress(2 * len(records), "pictures of the report") as bar:

        def predict(stage: str, weights: str | None) -> list[TextPrediction]:
            setting = PostProcessSection.model_validate(result.metrics[stage]["setting"])
            task = build_task(config, setting_of(setting), Quiet(), weights=weights)
            found = []
            with evaluation_mode(task.network):
                for record in records:
                    found += task.predict([read_image(config.data.root / record.path)])
                    bar.advance()
            return found

        pairs = list(zip(records, predict(before, None), predict(after, best_weights), strict=True))
    return _most_changed(config.data.root, pairs)


def _most_changed(root: Path, pairs: Sequence[tuple[Record, TextPrediction, TextPrediction]]) -> list[ChangedImage]:
    compared = [
        (record, findings(before, record.annotation), findings(after, record.annotation))
        for record, before, after in pairs
    ]
    changes = [int((before.is_found != after.is_found).sum()) for _, before, after in compared]
    order = sorted(range(len(compared)), key=lambda i: changes[i], reverse=True)
    # scans are large: only those that are shown are read again
    return [
        ChangedImage(record.path, read_image(root / record.path), record.annotation, before, after)
        for record, before, after in (compared[i] for i in order[:_SHOWN_IMAGES] if changes[i])
    ]


def findings(prediction: TextPrediction, annotation: TextAnnotation, iou: float = _SHOWN_IOU) -> Findings:
    """Which boxes fit which labels, by the rules of the scorer."""
    is_ignored_region = np.array([region.is_ignored for region in annotation.regions], dtype=bool)
    regions = as_geometries([region.points_px for region in annotation.regions])
    boxes = as_geometries(prediction.polygons_px)
    areas, shared = np.array([box.area for box in boxes]), intersection_areas(regions, boxes)
    is_ignored = (shared[is_ignored_region] > IGNORED_SHARE * areas).any(axis=0)
    overlap = iou_matrix(shared, np.array([region.area for region in regions]), areas)[~is_ignored_region]
    overlap[:, is_ignored] = 0
    is_found, is_right = np.zeros(len(overlap), bool), np.zeros(len(boxes), bool)
    for region, box in match_greedily(overlap, iou):
        is_found[region] = is_right[box] = True
    return Findings(prediction, is_right, is_ignored, is_found)


def _pictures(run: Path, config: TextConfig, result: RunResult, reporter: Reporter) -> tuple[list[ChangedImage], str]:
    """What to show, and a note on what it is or why there is nothing."""
    compared = _what_is_compared(result)
    if not compared:
        return [], "No pictures: the best model is the untouched weights at the shipped setting."
    try:
        changed = changed_images(run, config, result, reporter)
    except WholebatchError as fault:
        reporter.warn(f"the report has no pictures: {fault}")
        return [], f"No pictures: {fault}"
    if not changed:
        return [], f"No pictures: not one label changed its fate in the {_TRIED_IMAGES} val images that were tried."
    return changed, compared


def read_run(run: Path) -> tuple[TextConfig, RunResult]:
    """Configuration and result of a run folder.

    Raises:
        UsageError: it has no metrics.json.
    """
    metrics_file = run / "metrics.json"
    if not metrics_file.is_file():
        raise UsageError(f"{run} is no run folder: it has no metrics.json; train leaves one under runs/NAME")
    config = load_config(run / "config.yml")
    metrics = json.loads(metrics_file.read_text(encoding="utf-8"))
    for entry in (metrics["shipped"], metrics["baseline"], metrics["best"], *metrics["evaluations"]):
        entry["mean_hmean"] = objective_mean_hmean(entry)
    rate, train = config.train.learning_rate, config.train
    return config, RunResult(
        config.model_dump(mode="json"),
        metrics,
        _log_lines(run / "log.jsonl"),
        scaled_learning_rate(rate.base, rate.base_batch, train.effective_batch, rate.rule),
        _parity(run),
    )


def _log_lines(file: Path) -> list[dict[str, Any]]:
    """The log's whole lines; a run that was killed can leave half a last one."""
    if not file.is_file():
        return []
    text = file.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _parity(run: Path) -> dict[str, Any] | None:
    """The latest check of the exported model: `export` leaves it in the run folder or in a model folder below."""
    files = sorted((*run.glob("parity.json"), *run.glob("*/parity.json")), key=lambda file: file.stat().st_mtime)
    return dict(json.loads(files[-1].read_text(encoding="utf-8"))) if files else None


def _what_is_compared(result: RunResult) -> str:
    """What before and after are; "" when they are the same thing."""
    if result.metrics["best"]["update"] > 0:
        return (
            f"Before is the {result.baseline_name}, after the best model, each at its own setting below: the val images"
            f" whose labels changed their fate most, of up to {_TRIED_IMAGES} that were tried."
        )
    if result.was_tuned:
        return (
            "Training did not beat the tuned baseline, so both sides are the untouched weights: before at the shipped"
            " setting, after at the tuned one."
        )
    return ""
