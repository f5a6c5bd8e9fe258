"""`export` and `evaluate`: a model leaves the project, and proves itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipelines.config import Config
from pipelines.errors import DataError
from pipelines.folders import write_text
from pipelines.runs.models import best_model, is_run
from pipelines.runs.reporter import Reporter
from pipelines.runs.wiring import wiring_of


def export(run: Path, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Write the run's best model for Paddle's own runtimes, then run val images through them and compare.

    Raises:
        UsageError: `run` is no run folder, or `out` is somebody else's.
        DataError: the exported model finds other boxes than the network.
    """
    best = best_model(run, reporter)
    meta = {**best.wiring.description(), "run": run.name, "update": best.description["update"]}
    best.wiring.export(best.task, best.setting, out, meta, best.description["metrics"])
    reporter.note(f"exported to {out}: inference.json, inference.pdiparams, inference.yml")
    report = best.wiring.check_export(best.task, out)
    reporter.note(report.render())
    result: dict[str, Any] = report.to_json()
    write_text(out / "parity.json", json.dumps(result, indent=1))
    if not report.ok:
        raise DataError(f"{out}: the exported model does not find the same boxes; see {out / 'parity.json'}")
    return result


def evaluate(config: Config, model: Path | None, split: str, reporter: Reporter) -> dict[str, Any]:
    """Metrics on a split of a run's best model, of other weights, or (None) of the configured ones.

    A run and an exported folder bring their own setting; weights are scored at the configured one.
    """
    wiring = wiring_of(config, reporter)
    records = wiring.records(split)
    if model is not None and is_run(model):
        task = best_model(model, reporter).task
    else:
        if model is not None and (model / "inference.yml").is_file():
            setting = wiring.exported_setting(model)
        else:
            setting = wiring.configured_setting()
        task = wiring.build_task(setting, weights=str(model) if model else None)
    metrics = wiring.evaluate(task, records)
    reporter.table(f"{model or config.model.weights} on {split}", wiring.columns, wiring.rows("", metrics))
    wiring.tell_details(metrics)
    return metrics
