"""Evaluate a task on a split, and choose its setting on training images."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.config import PostProcessSection, TuneSection
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.engine.memory import release_cached
from pipelines.evaluation.text import TextScorer
from pipelines.evaluation.tuning import TuneResult, objective_mean_hmean, tune
from pipelines.records import Record
from pipelines.runs.choice import spread_evenly
from pipelines.runs.reporter import Reporter
from pipelines.runs.text.buckets import bucket_of
from pipelines.runs.text.maps import FittingMaps
from pipelines.runs.text.parts import setting_of
from pipelines.text_detection.task import Setting, TextDetection

HMEANS = ("hmean_50", "hmean_70", "hmean_80")


def evaluate_records(
    task: TextDetection,
    root: Path,
    records: Sequence[Record],
    edges_px: Sequence[int],
    reporter: Reporter,
    title: str = "evaluation",
    maps: FittingMaps | None = None,
) -> dict[str, Any]:
    """Metrics of `task` at its setting, image by image, each at its own size.

    `maps` knows from earlier evaluations what does not fit the memory; "capped_images" says how many were affected.
    """
    [metrics] = _evaluate(task, root, records, [task.setting], edges_px, reporter, title, maps)
    return metrics


def tune_setting(
    task: TextDetection,
    root: Path,
    records: Sequence[Record],
    shipped: PostProcessSection,
    options: TuneSection,
    edges_px: Sequence[int],
    reporter: Reporter,
    maps: FittingMaps | None = None,
) -> TuneResult[PostProcessSection]:
    """Grid search over limit side and post-processing on (training) records; the network runs once a limit side."""
    chosen = spread_over_buckets(records, options.max_images, edges_px)
    candidates = setting_candidates(shipped, options)
    metrics: dict[PostProcessSection, dict[str, Any]] = {}
    for side in dict.fromkeys(candidate.limit_side for candidate in candidates):
        alike = [candidate for candidate in candidates if candidate.limit_side == side]
        settings = [setting_of(candidate) for candidate in alike]
        title = f"tuning on {len(chosen)} training images, limit side {side}"
        found = _evaluate(task, root, chosen, settings, edges_px, reporter, title, maps)
        metrics.update(zip(alike, found, strict=True))
    return tune(candidates, metrics.__getitem__, objective_mean_hmean)


def _evaluate(
    task: TextDetection,
    root: Path,
    records: Sequence[Record],
    settings: Sequence[Setting],
    edges_px: Sequence[int],
    reporter: Reporter,
    title: str,
    maps: FittingMaps | None,
) -> list[dict[str, Any]]:
    """Metrics at settings of one resize rule. One map is held at a time, however many images and settings there are."""
    maps = maps or FittingMaps(task, reporter)
    scorers = [TextScorer() for _ in settings]
    num_capped = 0
    with evaluation_mode(task.network), reporter.progress(len(records), title) as bar:
        for record in records:
            probability, is_capped = maps(root / record.path, record.size_hw, settings[0].resize)
            num_capped += is_capped
            for setting, scorer in zip(settings, scorers, strict=True):
                prediction = setting.post_process(probability, record.size_hw)
                scorer.update(prediction, record.annotation, record.size_hw, bucket_of(record, edges_px))
            bar.advance()
    release_cached()
    if num_capped:
        reporter.warn(f"{title}: {num_capped} of {len(records)} images smaller than in deployment, for lack of memory")
    return [{**scorer.compute(), "capped_images": num_capped} for scorer in scorers]


def setting_candidates(shipped: PostProcessSection, options: TuneSection) -> list[PostProcessSection]:
    """The shipped setting, then the grid, ordered so that one limit side's settings follow each other."""
    grid = itertools.product(
        options.limit_sides or [shipped.limit_side],
        options.binary_thresholds or [shipped.binary_threshold],
        options.box_thresholds or [shipped.box_threshold],
        options.unclip_ratios or [shipped.unclip_ratio],
    )
    names = ("limit_side", "binary_threshold", "box_threshold", "unclip_ratio")
    settings = [shipped.model_copy(update=dict(zip(names, values, strict=True))) for values in grid]
    settings.sort(key=lambda setting: setting.limit_side != shipped.limit_side)
    return [shipped, *(setting for setting in settings if setting != shipped)]


def spread_over_buckets(records: Sequence[Record], most: int, edges_px: Sequence[int]) -> list[Record]:
    """At most `most` records with text, each size bucket with an equal share (`spread_evenly`)."""
    buckets: dict[str, list[Record]] = {}
    for record in records:
        if any(not region.is_ignored for region in record.annotation.regions):
            buckets.setdefault(bucket_of(record, edges_px), []).append(record)
    return spread_evenly(list(buckets.values()), most)


def cells(metrics: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """hmean by (bucket, "hmean_50" …), undefined ones left out."""
    return {
        (bucket, name): values[name]
        for bucket, values in metrics["by_bucket"].items()
        for name in HMEANS
        if values[name] is not None
    }


def lower_cells(metrics: Mapping[str, Any], baseline: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Which (bucket, hmean) are below the baseline's, at the three digits that tables show."""
    before = cells(baseline)
    return [cell for cell, value in cells(metrics).items() if round(value, 3) < round(before[cell], 3)]


def metrics_row(label: str, metrics: Mapping[str, Any]) -> list[list[object]]:
    """Table rows of one evaluation: one a bucket, then all images."""
    parts = {**metrics["by_bucket"], "all": metrics} if len(metrics["by_bucket"]) > 1 else {"all": metrics}
    return [
        [label if i == 0 else "", bucket, values["num_images"], *(_number(values[name]) for name in HMEANS)]
        for i, (bucket, values) in enumerate(parts.items())
    ]


TABLE_COLUMNS = ("model", "longest side", "images", "hmean .5", "hmean .7", "hmean .8")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
