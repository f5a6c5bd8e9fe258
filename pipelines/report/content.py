"""What the page says in words and numbers: the verdict, the tables and the arithmetic, from plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HMEANS = ("hmean_50", "hmean_70", "hmean_80")
Row = list[str]


@dataclass(frozen=True)
class RunResult:
    """A finished (or stopped) run.

    Attributes:
        config: the configuration as run, sections of plain values.
        metrics: as in `metrics.json`: "shipped", "baseline", "best", "evaluations", perhaps "tuning"; every
            evaluation carries "mean_hmean", the number by which the best one is chosen.
        log: one mapping an update, as in `log.jsonl`.
        peak_learning_rate: the learning rate after the warm-up.
        parity: as in `parity.json`, or None when the best model has not been exported.
    """

    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    log: Sequence[Mapping[str, Any]]
    peak_learning_rate: float
    parity: Mapping[str, Any] | None = None

    @property
    def was_tuned(self) -> bool:
        """Whether the baseline's setting is another than the shipped one."""
        return bool(self.metrics["baseline"]["setting"] != self.metrics["shipped"]["setting"])

    @property
    def baseline_name(self) -> str:
        return "tuned baseline" if self.was_tuned else "baseline"


def has_won(result: RunResult) -> bool:
    """Whether training beat the baseline: the best model is then not the untouched weights."""
    return bool(result.metrics["best"]["update"] > 0)


def verdict(result: RunResult) -> str:
    """One plain sentence about what training added to the (tuned) baseline."""
    baseline, best = result.metrics["baseline"], result.metrics["best"]
    if has_won(result):
        gain = best["mean_hmean"] - baseline["mean_hmean"]
        return (
            f"Training added {gain:+.3f} to the mean hmean of the {result.baseline_name}"
            f" ({baseline['mean_hmean']:.3f} to {best['mean_hmean']:.3f}, best at update {best['update']})."
        )
    evaluations = result.metrics["evaluations"]
    if not evaluations:
        return "No model has been evaluated after training yet: the best model is the untouched weights."
    closest = max(evaluations, key=lambda evaluation: evaluation["mean_hmean"])
    setting = "at the tuned setting " if result.was_tuned else ""
    return (
        f"Training did not beat the {result.baseline_name}: the best model is the untouched weights {setting}"
        f"(mean hmean {baseline['mean_hmean']:.3f}; the closest evaluation reached {closest['mean_hmean']:.3f} at"
        f" update {closest['update']})."
    )


def remarks(result: RunResult) -> list[str]:
    """What else a reader of the verdict must know: what tuning alone gave, and where the best is lower."""
    shipped, baseline = result.metrics["shipped"], result.metrics["baseline"]
    said = []
    if result.was_tuned:
        gain = baseline["mean_hmean"] - shipped["mean_hmean"]
        said.append(
            f"The setting alone, tuned on training images with the untouched weights, gave {gain:+.3f}"
            f" ({shipped['mean_hmean']:.3f} to {baseline['mean_hmean']:.3f}): no merit of the training."
        )
    if has_won(result) and (lower := lower_cells(result)):
        said.append(f"Lower than the {result.baseline_name}: {'; '.join(lower)}.")
    skipped = sum(bool(line["skipped"]) for line in result.log)
    if skipped:
        said.append(f"{skipped} update(s) were skipped because gradients were not finite.")
    return said


def lower_cells(result: RunResult) -> list[str]:
    """Every size bucket and IoU at which the best model is below the baseline, at the three digits shown."""
    baseline, best = (result.metrics[name]["by_bucket"] for name in ("baseline", "best"))
    return [
        f"{bucket}, {_iou_of(name)} ({baseline[bucket][name]:.3f} to {best[bucket][name]:.3f})"
        for bucket in baseline
        for name in HMEANS
        if _difference(best[bucket][name], baseline[bucket][name], digits=3) < 0
    ]


def result_columns(result: RunResult) -> Row:
    """Heads of `result_rows`."""
    best = f"best (update {result.metrics['best']['update']})" if has_won(result) else "best (untouched weights)"
    names = ["longest side", "images", "hmean at", "as shipped"]
    return [*names, result.baseline_name, best, f"best − {result.baseline_name}", "its precision", "its recall"]


def result_rows(result: RunResult) -> list[Row]:
    """One row a size bucket and IoU, all images last when there is more than one bucket."""
    stages = [result.metrics[name] for name in ("shipped", "baseline", "best")]
    parts = [(bucket, [stage["by_bucket"][bucket] for stage in stages]) for bucket in stages[0]["by_bucket"]]
    if len(parts) != 1:
        parts.append(("all sizes", stages))
    return [
        _result_row(bucket if name == HMEANS[0] else "", values, name) for bucket, values in parts for name in HMEANS
    ]


def _result_row(bucket: str, stages: Sequence[Mapping[str, Any]], name: str) -> Row:
    shipped, baseline, best = stages
    percent = name.removeprefix("hmean_")
    difference = None if None in (best[name], baseline[name]) else best[name] - baseline[name]
    return [
        bucket,
        f"{best['num_images']}" if bucket else "",
        _iou_of(name),
        *(number(stage[name]) for stage in (shipped, baseline, best)),
        number(difference, "+.3f"),
        number(best[f"precision_{percent}"]),
        number(best[f"recall_{percent}"]),
    ]


def run_facts(result: RunResult) -> list[Row]:
    """The configuration in brief, with the arithmetic of what follows from it."""
    config, train = result.config, result.config["train"]
    model, rate = config["model"], train["learning_rate"]
    length = f"{train['updates']} updates" if train["updates"] else f"{train['epochs']} epochs"
    done = max((line["update"] for line in result.log if not line["skipped"]), default=0)
    evaluated = result.metrics["shipped"]
    detached = "" if model["threshold_gradient_to_trunk"] else "; the threshold branch gives the trunk no gradient"
    return [
        ["network", f"{model['network']}, {model['form']} form, from {model['weights']}{detached}"],
        ["dataset", f"{config['data']['root']}; val: {_amounts(evaluated)}"],
        ["effective batch", _batch_arithmetic(train, result.log)],
        ["accumulation", f"{train['accumulation']}, BatchNorm {train['batch_norm']}, {train['precision']} precision"],
        ["length", f"{length} configured, {done} done"],
        [
            "learning rate",
            f"{rate['base']:g} × {train['effective_batch']}/{rate['base_batch']} ({rate['rule']} rule) ="
            f" {result.peak_learning_rate:g} after warm-up ({rate['warmup_updates']} updates asked, a fifth of the run"
            f" at most){_named(', part by part × ', rate['factors'])}",
        ],
        ["frozen at first", _named("updates: ", train["frozen_updates"]) or "nothing"],
        ["EMA, clip norm, seed", f"{_or_none(train['ema'])}, {_or_none(train['clip_norm'])}, {config['run']['seed']}"],
    ]


def cost_rows(log: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Time and memory of the updates that the log holds."""
    computing = sum(line["seconds"] for line in log)
    waiting = sum(line["data_seconds"] for line in log)
    samples = sum(line["samples"] for line in log)
    total = computing + waiting
    if not total:
        return []
    return [
        ["images per second", f"{samples / total:.2f}"],
        ["seconds per update", f"{total / len(log):.1f}"],
        ["training time, evaluations apart", _duration(total)],
        ["share of it waiting for data", f"{waiting / total:.0%}"],
        ["peak of tensor memory, evaluations included", f"{max(line['peak_bytes'] for line in log) / 2**30:.2f} GiB"],
    ]


def setting_rows(result: RunResult) -> list[Row]:
    """Limit side and post-processing as shipped, as tuned for the untouched weights, and for the best model."""
    settings = [result.metrics[stage]["setting"] for stage in ("shipped", "baseline", "best")]
    return [[name.replace("_", " "), *(f"{setting[name]}" for setting in settings)] for name in settings[-1]]


def tuning_rows(result: RunResult, most: int = 12) -> list[Row]:
    """The settings that were tried, best first; what they share is left out."""
    trials = sorted(result.metrics.get("tuning", []), key=lambda trial: trial["objective"], reverse=True)
    varied = [name for name in tuning_names(result)]
    return [[*(f"{t['setting'][name]}" for name in varied), f"{t['objective']:.3f}"] for t in trials[:most]]


def tuning_names(result: RunResult) -> Row:
    """Which parts of the setting differ between the trials."""
    trials = [trial["setting"] for trial in result.metrics.get("tuning", [])]
    return [name for name in (trials[0] if trials else {}) if len({trial[name] for trial in trials}) > 1]


def parity_sentence(parity: Mapping[str, Any] | None) -> str:
    """What the check of the exported model in paddleocr showed."""
    if parity is None:
        return "Not exported yet: wholebatch export writes the model for paddleocr and checks its boxes."
    verdict = "finds the same boxes" if parity["ok"] else "does NOT find the same boxes"
    return (
        f"The exported model {verdict} in paddleocr: {parity['num_equal']} pairs with IoU of at least"
        f" {parity['min_iou']} of {parity['num_ours']} boxes here and {parity['num_theirs']} there"
        f" ({parity['share']:.1%}, at least {parity['min_share']:.0%} needed)."
    )


def number(value: float | None, form: str = ".3f") -> str:
    """A value for a table; undefined ones as a dash."""
    return "–" if value is None else format(value, form).replace("-", "−")


def _difference(value: float | None, other: float | None, digits: int = 15) -> float:
    return 0.0 if value is None or other is None else round(value, digits) - round(other, digits)


def _iou_of(name: str) -> str:
    return f"IoU .{name.removeprefix('hmean_').rstrip('0')}"


def _amounts(metrics: Mapping[str, Any]) -> str:
    return (
        f"{metrics['num_images']} images, {metrics['num_regions']} text regions,"
        f" {metrics['num_ignored_regions']} ignore regions"
    )


def _batch_arithmetic(train: Mapping[str, Any], log: Sequence[Mapping[str, Any]]) -> str:
    steps = -(-train["effective_batch"] // train["micro_batch"])
    said = f"{train['effective_batch']} = micro-batch {train['micro_batch']} × {steps} accumulation steps"
    if not log:
        return said
    num_micro_batches = [line["micro_batches"] for line in log]
    shapes = {tuple(shape[-2:]) for line in log for shape in line["shapes"]}
    fewest, most = min(num_micro_batches), max(num_micro_batches)
    counts = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{said}; an update took {counts} micro-batches, of {len(shapes)} shapes in all"


def _named(prefix: str, values: Mapping[str, Any]) -> str:
    return prefix + ", ".join(f"{name} {value:g}" for name, value in values.items()) if values else ""


def _or_none(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
