"""What the page says of any run in words and numbers; what only one task can say comes as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.report.curves import Panel

Row = Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        rows: cells as shown.
        columns: heads; none: a list of facts, its first column the names.
        title: above it, or "".
        note: below it, or "".
        marks: "better", "worse" or "strong", by (row, column) of `rows`.
        is_folded: whether only the title shows until it is opened.
    """

    rows: Sequence[Row]
    columns: Row = ()
    title: str = ""
    note: str = ""
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)
    is_folded: bool = False


@dataclass(frozen=True)
class RunResult:
    """A finished (or stopped) run.

    Attributes:
        config: the configuration as run, sections of plain values.
        metrics: as in `metrics.json`: "shipped", "baseline", "best", "evaluations", perhaps "tuning"; every
            evaluation carries "objective", the number by which the best one is chosen.
        objective_name: of that number.
        log: one mapping an update, as in `log.jsonl`.
        peak_learning_rate: the learning rate after the warm-up.
        untuned_name: what the baseline is called where nothing was tuned.
        parity: as in `parity.json`, or None when the best model has not been exported.
    """

    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    objective_name: str
    log: Sequence[Mapping[str, Any]]
    peak_learning_rate: float
    untuned_name: str = "baseline"
    parity: Mapping[str, Any] | None = None

    @property
    def has_won(self) -> bool:
        """Whether training beat the baseline: the best model is then not the untouched weights."""
        return bool(self.metrics["best"]["update"] > 0)

    @property
    def was_tuned(self) -> bool:
        """Whether the baseline's setting is another than the shipped one."""
        return bool(self.metrics["baseline"]["setting"] != self.metrics["shipped"]["setting"])

    @property
    def baseline_name(self) -> str:
        return f"tuned {self.untuned_name}" if self.was_tuned else self.untuned_name

    @property
    def best_name(self) -> str:
        return f"best (update {self.metrics['best']['update']})" if self.has_won else "best (untouched weights)"


@dataclass(frozen=True)
class TaskContent:
    """What one task has to say of a run.

    Attributes:
        remarks: what else a reader of the verdict must know.
        result: the tables under the verdict.
        panels: metrics over the updates, and others of its choice.
        facts: name and value: its network, its data.
        data: what the dataset is made of.
        trials: settings that were tried, or None.
        pictures_key: when a box counts as right, for the legend of the pictures.
        program: that runs the exported model.
    """

    remarks: Sequence[str]
    result: Sequence[Table]
    panels: Sequence[Panel]
    facts: Sequence[Row]
    pictures_key: str
    program: str
    data: Sequence[Table] = ()
    trials: Table | None = None


_COUNTED = {
    "skipped": "{} sample(s) were left out because not even one image of their shape fits in memory.",
    "in_full": "{} micro-batch(es) overflowed in low precision and were done again in float32.",
    "failures": "Memory ran out {} time(s); what had failed was done again in smaller pieces, with the same gradient.",
}
"""What a run survived, by the key of its log."""


def verdict(result: RunResult) -> str:
    """One plain sentence about what training added to the (tuned) baseline."""
    baseline, best = result.metrics["baseline"], result.metrics["best"]
    if result.has_won:
        gain = best["objective"] - baseline["objective"]
        return (
            f"Training added {gain:+.3f} to the {result.objective_name} of the {result.baseline_name}"
            f" ({baseline['objective']:.3f} to {best['objective']:.3f}, best at update {best['update']})."
        )
    evaluations = result.metrics["evaluations"]
    if not evaluations:
        return "No model has been evaluated after training yet: the best model is the untouched weights."
    closest = max(evaluations, key=lambda evaluation: evaluation["objective"])
    setting = "at the tuned setting " if result.was_tuned else ""
    return (
        f"Training did not beat the {result.baseline_name}: the best model is the untouched weights {setting}"
        f"({result.objective_name} {baseline['objective']:.3f}; the closest evaluation reached"
        f" {closest['objective']:.3f} at update {closest['update']})."
    )


def remarks(result: RunResult) -> list[str]:
    """What tuning alone gave, and which updates gave nothing."""
    shipped, baseline = result.metrics["shipped"], result.metrics["baseline"]
    said = []
    if result.was_tuned:
        gain = baseline["objective"] - shipped["objective"]
        said.append(
            f"The setting alone, tuned on training images with the untouched weights, gave {gain:+.3f}"
            f" ({shipped['objective']:.3f} to {baseline['objective']:.3f}): no merit of the training."
        )
    for name, sentence in _COUNTED.items():
        count = sum(int(line.get(name, 0)) for line in result.log)
        said += [sentence.format(count)] if count else []
    return said


def run_table(result: RunResult, facts: Sequence[Row]) -> Table:
    """The configuration in brief, with the arithmetic of what follows from it; the task's own facts first."""
    config, train = result.config, result.config["train"]
    rate = train["learning_rate"]
    length = f"{train['updates']} updates" if train["updates"] else f"{train['epochs']} epochs"
    done = max((line["update"] for line in result.log), default=0)
    return Table(
        [
            *facts,
            ["effective batch", _batch_arithmetic(train, result.log)],
            [
                "accumulation",
                f"{train['accumulation']}, BatchNorm {train['batch_norm']}, {train['precision']} precision",
            ],
            ["length", f"{length} configured, {done} done"],
            [
                "learning rate",
                f"{rate['base']:g} × {train['effective_batch']}/{rate['base_batch']} ({rate['rule']} rule) ="
                f" {result.peak_learning_rate:g} after warm-up ({rate['warmup_updates']} updates asked, a fifth of the"
                f" run at most){_named(', part by part × ', rate['factors'])}",
            ],
            ["frozen at first", _named("updates: ", train["frozen_updates"]) or "nothing"],
            [
                "EMA, clip norm, seed",
                f"{_or_none(train['ema'])}, {_or_none(train['clip_norm'])}, {config['run']['seed']}",
            ],
        ]
    )


def cost_table(log: Sequence[Mapping[str, Any]]) -> Table:
    """Time and memory of the updates that the log holds."""
    computing = sum(line["seconds"] for line in log)
    waiting = sum(line["data_seconds"] for line in log)
    samples = sum(line["samples"] for line in log)
    total = computing + waiting
    if not total:
        return Table([])
    return Table(
        [
            ["images per second", f"{samples / total:.2f}"],
            ["seconds per update", f"{total / len(log):.1f}"],
            ["training time, evaluations apart", _duration(total)],
            ["share of it waiting for data", f"{waiting / total:.0%}"],
            [
                "peak of tensor memory, evaluations included",
                f"{max(line['peak_bytes'] for line in log) / 2**30:.2f} GiB",
            ],
        ]
    )


def setting_table(result: RunResult) -> Table:
    """The setting as shipped, as tuned for the untouched weights, and for the best model; equal ones once."""
    stages = {"as shipped": "shipped", result.baseline_name: "baseline", "best model": "best"}
    settings = {name: result.metrics[stage]["setting"] for name, stage in stages.items()}
    last = settings["best model"]
    if all(setting == last for setting in settings.values()):
        settings = {"setting": last}
    rows = [[name.replace("_", " "), *(_shown(setting[name]) for setting in settings.values())] for name in last]
    return Table(rows, ["", *settings])


def parity_sentence(parity: Mapping[str, Any] | None, program: str) -> str:
    """What the check of the exported model in another program showed."""
    if parity is None:
        return f"Not exported yet: wholebatch export writes the model for {program} and checks its boxes."
    said = "finds the same boxes" if parity["ok"] else "does NOT find the same boxes"
    return (
        f"The exported model {said} in {program}: {parity['num_equal']} pairs with IoU of at least"
        f" {parity['min_iou']} of {parity['num_ours']} boxes here and {parity['num_theirs']} there"
        f" ({parity['share']:.1%}, at least {parity['min_share']:.0%} needed)."
    )


def number(value: float | None, form: str = ".3f") -> str:
    """A value for a table; undefined ones as a dash."""
    return "–" if value is None else format(value, form).replace("-", "−")


def difference(value: float | None, other: float | None, digits: int = 3) -> float | None:
    """Of two values as tables show them, so that what looks equal is; None where one is undefined."""
    return None if value is None or other is None else round(round(value, digits) - round(other, digits), digits)


def mark_of(change: float | None, *, lower_is_better: bool = False) -> str:
    """How to mark a difference: "better", "worse", or not at all where nothing changed."""
    return "" if not change else "worse" if (change > 0) == lower_is_better else "better"


def _batch_arithmetic(train: Mapping[str, Any], log: Sequence[Mapping[str, Any]]) -> str:
    said = f"{train['effective_batch']} = micro-batches as large as fit, by shape"
    if train["micro_batch"] != "auto":
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


def _shown(value: object) -> str:
    return "–" if value is None else f"{value}"


def _or_none(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
