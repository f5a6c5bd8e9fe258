"""The run's log: one JSON line an update, and the same numbers as VisualDL scalars."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.engine.update import UpdateReport


class RunLog:
    """Appends to `run/log.jsonl`, flushed line by line so that a kill loses nothing, and to `run/visualdl`."""

    def __init__(self, run_folder: Path):
        # heavy to import, so not before a run really starts
        from visualdl import LogWriter

        self._scalars = LogWriter(logdir=str(run_folder / "visualdl"))
        self._file = (run_folder / "log.jsonl").open("a", encoding="utf-8")

    def write(
        self, report: UpdateReport, *, epoch: int, data_seconds: float, counts: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """Record one update with what its samples showed (`counts`); returns the line as a dict."""
        line: dict[str, Any] = {
            "update": report.update,
            "epoch": epoch,
            "samples": report.samples,
            **(counts or {}),
            "micro_batches": report.micro_batches,
            "shapes": [list(shape) for shape in report.shapes],
            **{name: round(value, 6) for name, value in report.parts.items()},
            "lr": report.learning_rate,
            "grad_norm": report.gradient_norm,
            "loss_scale": report.loss_scale,
            "skipped": report.skipped,
            "in_full": report.in_full,
            "failures": report.failures,
            "seconds": round(report.seconds, 4),
            "data_seconds": round(data_seconds, 4),
            "peak_bytes": report.peak_bytes,
        }
        self._file.write(json.dumps(line, allow_nan=False) + "\n")
        self._file.flush()
        for name in (*report.parts, "lr", "grad_norm"):
            self._scalars.add_scalar(tag=f"train/{name}", step=report.update, value=line[name])
        return line

    def metrics(self, update: int, metrics: Mapping[str, Any]) -> None:
        """Add an evaluation's numbers to the scalars."""
        for name, value in metrics.items():
            if isinstance(value, float):
                self._scalars.add_scalar(tag=f"evaluation/{name}", step=update, value=value)

    def close(self) -> None:
        self._file.close()
        self._scalars.close()
