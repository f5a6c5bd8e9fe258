"""`report`: a run folder becomes one page that can be mailed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.config import load_config
from pipelines.dataset import read_image
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.engine.retry import with_second_try
from pipelines.engine.schedule import scaled_learning_rate
from pipelines.errors import UsageError, WholebatchError
from pipelines.report import ChangedImage, Findings, RunResult, write_report
from pipelines.report.pictures import amount_of_change
from pipelines.runs.reporter import Quiet, Reporter
from pipelines.runs.wiring import Wiring, wiring_of
from pipelines.task import Task

_TRIED_IMAGES = 8  # two forward passes each: a report must not cost another evaluation
_SHOWN_IMAGES = 4


def report(run: Path, reporter: Reporter) -> Path:
    """Write RUN/report.html from what the run left, and from a few val images predicted before and after.

    Without the dataset or the first weights the page is written all the same and says why it has no pictures.

    Raises:
        UsageError: `run` is no run folder.
    """
    wiring, result = read_run(run)
    changed, note = _pictures(run, wiring, result, reporter)
    content = wiring.page.content(result)
    file = write_report(run / "report.html", result, content, changed, pictures_note=note)
    reporter.note(f"report: {file}")
    return file


def changed_images(run: Path, wiring: Wiring, result: RunResult, reporter: Reporter) -> list[ChangedImage]:
    """A few val images of every kind as two models see them, those where most labels changed their fate."""
    records = wiring.page.worth_drawing(wiring.records("val"), _TRIED_IMAGES)
    root = wiring.config.data.root
    before, after = ("baseline", "best") if result.has_won else ("shipped", "baseline")
    best_weights = str(run / "best" / "weights.pdparams") if result.has_won else None
    with reporter.progress(2 * len(records), "pictures of the report") as bar:

        def find(stage: str, weights: str | None) -> list[Findings]:
            metrics = result.metrics[stage]
            task = wiring.build_task(wiring.setting_from(metrics["setting"]), weights=weights)
            found = []
            with evaluation_mode(task.network):
                for record in records:
                    (prediction,) = _predicted(task, root / record.path)
                    found.append(wiring.page.findings(record, prediction, metrics))
                    bar.advance()
            return found

        compared = list(zip(records, find(before, None), find(after, best_weights), strict=True))
    changes = [amount_of_change(one, other) for _, one, other in compared]
    order = sorted(range(len(compared)), key=lambda i: changes[i], reverse=True)
    # scans are large: only those that are shown are read again
    return [
        wiring.page.changed_image(record, read_image(root / record.path), one, other)
        for record, one, other in (compared[i] for i in order[:_SHOWN_IMAGES] if any(changes[i]))
    ]


def _predicted(task: Task, file: Path) -> Sequence[Any]:
    told = f"{file}: drawing what the model finds needs more memory than there is"
    return with_second_try(lambda: task.predict([read_image(file)]), told)


def read_run(run: Path) -> tuple[Wiring, RunResult]:
    """The parts and the result of a run folder.

    Raises:
        UsageError: it has no metrics.json.
    """
    metrics_file = run / "metrics.json"
    if not metrics_file.is_file():
        raise UsageError(f"{run} is no run folder: it has no metrics.json; train leaves one under runs/NAME")
    wiring = wiring_of(load_config(run / "config.yml"), Quiet())
    metrics = json.loads(metrics_file.read_text(encoding="utf-8"))
    for entry in (metrics["shipped"], metrics["baseline"], metrics["best"], *metrics["evaluations"]):
        entry["objective"] = wiring.page.objective(entry)
    rate, train = wiring.config.train.learning_rate, wiring.config.train
    return wiring, RunResult(
        wiring.config.model_dump(mode="json"),
        metrics,
        wiring.page.objective_name,
        _log_lines(run / "log.jsonl"),
        scaled_learning_rate(rate.base, rate.base_batch, train.effective_batch, rate.rule),
        wiring.page.untuned_name,
        _parity(run),
    )


def _pictures(run: Path, wiring: Wiring, result: RunResult, reporter: Reporter) -> tuple[list[ChangedImage], str]:
    """What to show, and a note on what it is or why there is nothing."""
    compared = _what_is_compared(result)
    if not compared:
        return [], "No pictures: the best model is the untouched weights at the shipped setting."
    try:
        changed = changed_images(run, wiring, result, reporter)
    except WholebatchError as fault:
        reporter.warn(f"the report has no pictures: {fault}")
        return [], f"No pictures: {fault}"
    if not changed:
        return [], f"No pictures: no finding changed in the {_TRIED_IMAGES} val images that were tried."
    return changed, compared


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
    if result.has_won:
        return (
            f"Before is the {result.baseline_name}, after the best model, each at its own setting below: the val images"
            f" whose labels changed their fate most, of up to {_TRIED_IMAGES} that were tried."
        )
    if result.was_tuned:
        return (
            f"Training did not beat the {result.baseline_name}, so both sides are the untouched weights: before at the"
            " shipped setting, after at the tuned one."
        )
    return ""
