"""What the report of a text detection run says that another task's would not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipelines.evaluation.tuning import objective_mean_hmean
from pipelines.records import Record, TextPrediction
from pipelines.report import ChangedImage, Findings, Line, Panel, RunResult, Table, TaskContent
from pipelines.report.content import difference, mark_of, number
from pipelines.runs.text.evaluation import HMEANS, lower_cells, spread_over_buckets
from pipelines.runs.text.pictures import SHOWN_IOU, changed_image, findings

_STAGES = ("shipped", "baseline", "best")
_TRIALS_SHOWN = 12


class TextPage:
    """The `TaskPage` of text detection."""

    objective_name = "mean hmean"
    untuned_name = "baseline"

    def __init__(self, edges_px: Sequence[int]):
        self._edges_px = edges_px

    def objective(self, metrics: Mapping[str, Any]) -> float:
        return objective_mean_hmean(metrics)

    def content(self, result: RunResult) -> TaskContent:
        trials = trials_table(result)
        return TaskContent(
            remarks=remarks(result),
            result=[result_table(result)],
            panels=panels(result),
            facts=facts(result),
            pictures_key=f"fits a label at IoU .{SHOWN_IOU * 10:.0f}",
            program="paddleocr",
            trials=trials,
        )

    def worth_drawing(self, records: Sequence[Record], most: int) -> list[Record]:
        return spread_over_buckets(records, most, self._edges_px)

    def findings(self, record: Record, prediction: TextPrediction, metrics: Mapping[str, Any]) -> Findings:
        return findings(prediction, record.annotation)

    def changed_image(self, record: Record, image: np.ndarray, before: Findings, after: Findings) -> ChangedImage:
        return changed_image(record, image, before, after)


def remarks(result: RunResult) -> list[str]:
    """Every size bucket and IoU at which the best model is below the baseline, at the three digits shown."""
    best, baseline = result.metrics["best"], result.metrics["baseline"]
    lower = lower_cells(best, baseline) if result.has_won else []
    said = [
        f"{bucket}, {iou_of(name)} ({baseline['by_bucket'][bucket][name]:.3f} to {best['by_bucket'][bucket][name]:.3f})"
        for bucket, name in lower
    ]
    return [f"Lower than the {result.baseline_name}: {'; '.join(said)}."] if said else []


def result_table(result: RunResult) -> Table:
    """One row a size bucket and IoU, all images last when there is more than one bucket."""
    stages = [result.metrics[name] for name in _STAGES]
    parts = [(bucket, [stage["by_bucket"][bucket] for stage in stages]) for bucket in stages[0]["by_bucket"]]
    if len(parts) != 1:
        parts.append(("all sizes", stages))
    rows: list[list[str]] = []
    marks: dict[tuple[int, int], str] = {}
    for bucket, values in parts:
        for name in HMEANS:
            _, baseline, best = (stage[name] for stage in values)
            change = difference(best, baseline)
            marks[len(rows), 6] = mark_of(change)
            rows.append(_result_row(bucket if name == HMEANS[0] else "", values, name, number(change, "+.3f")))
    of_baseline = f"best − {result.baseline_name}"
    heads = ["longest side", "images", "hmean at", "as shipped", result.baseline_name, result.best_name, of_baseline]
    note = (
        "hmean is the harmonic mean of precision and recall of boxes that overlap a label by more than the IoU; ignore"
        " regions cost and earn nothing. The mean hmean, by which the best model is chosen, is the mean over sizes and"
        " IoUs."
    )
    if result.was_tuned:
        note += " The tuned baseline is the untouched weights at the setting below."
    return Table(rows, [*heads, "its precision", "its recall"], note=note, marks=marks)


def _result_row(bucket: str, stages: Sequence[Mapping[str, Any]], name: str, change: str) -> list[str]:
    best = stages[-1]
    percent = name.removeprefix("hmean_")
    return [
        bucket,
        f"{best['num_images']}" if bucket else "",
        iou_of(name),
        *(number(stage[name]) for stage in stages),
        change,
        number(best[f"precision_{percent}"]),
        number(best[f"recall_{percent}"]),
    ]


def panels(result: RunResult) -> list[Panel]:
    """hmean of every evaluation, a panel a size bucket."""
    evaluations = result.metrics["evaluations"]
    shipped, baseline = (result.metrics[name]["by_bucket"] for name in ("shipped", "baseline"))
    return [
        Panel(
            f"hmean on val, {bucket}",
            [evaluation["update"] for evaluation in evaluations],
            [
                Line(
                    iou_of(name),
                    [evaluation["by_bucket"][bucket][name] for evaluation in evaluations],
                    baseline[bucket][name],
                    shipped[bucket][name] if result.was_tuned else None,
                )
                for name in HMEANS
            ],
        )
        for bucket in baseline
    ]


def facts(result: RunResult) -> list[list[str]]:
    """Network and dataset."""
    model, evaluated = result.config["model"], result.metrics["shipped"]
    detached = "" if model["threshold_gradient_to_trunk"] else "; the threshold branch gives the trunk no gradient"
    amounts = (
        f"{evaluated['num_images']} images, {evaluated['num_regions']} text regions,"
        f" {evaluated['num_ignored_regions']} ignore regions"
    )
    capped = max(result.metrics[stage].get("capped_images", 0) for stage in ("shipped", "best"))
    if capped:
        amounts += f"; {capped} images smaller than in deployment, for lack of memory"
    return [
        ["network", f"{model['network']}, {model['form']} form, from {model['weights']}{detached}"],
        ["dataset", f"{result.config['data']['root']}; val: {amounts}"],
    ]


def trials_table(result: RunResult) -> Table | None:
    """The settings that were tried, best first; what they share is left out. None without any."""
    trials = sorted(result.metrics.get("tuning", []), key=lambda trial: trial["objective"], reverse=True)
    if not trials:
        return None
    settings = [trial["setting"] for trial in trials]
    varied = [name for name in settings[0] if len({setting[name] for setting in settings}) > 1]
    rows = [[*(f"{t['setting'][name]}" for name in varied), f"{t['objective']:.3f}"] for t in trials[:_TRIALS_SHOWN]]
    title = "Settings tried on training images with the untouched weights, best first"
    return Table(rows, [*varied, "mean hmean"], title, is_folded=True)


def iou_of(name: str) -> str:
    """The IoU of "hmean_70", in words."""
    return f"IoU .{name.removeprefix('hmean_').rstrip('0')}"
