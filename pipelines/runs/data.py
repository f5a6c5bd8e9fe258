"""`prepare`, `check` and `doctor`: what comes before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.doctor import diagnose
from pipelines.prep import check_dataset, prepare_text
from pipelines.records import Fault
from pipelines.runs.reporter import Reporter

_LISTED_FAULTS = 25
_COUNTS = ("images", "regions", "ignored", "text_free")


def prepare_text_dataset(source: Path, format: str, out: Path, reporter: Reporter, **options: Any) -> dict[str, Any]:
    """`prep.prepare_text`, told on the terminal; options as there."""
    report = prepare_text(source, format, out, **options)
    content = report.to_json()
    _tell_faults(report.faults, reporter)
    _tell_counts(content["counts"], reporter)
    reporter.note(f"dry run: {out} was not written" if options.get("dry_run") else f"dataset written to {out}")
    return content


def check(root: Path, reporter: Reporter) -> dict[str, Any]:
    """`prep.check_dataset`, told on the terminal."""
    report = check_dataset(root)
    content = report.to_json()
    _tell_faults(report.faults, reporter)
    _tell_counts(content["counts"], reporter)
    reporter.note(f"{root} can be trained on" if report.ok else f"{root} can't be trained on: mend the errors above")
    return content


def examine_environment(reporter: Reporter) -> dict[str, Any]:
    """What `doctor` finds."""
    findings = diagnose()
    rows = [[finding.name, finding.value, finding.verdict, finding.advice] for finding in findings]
    reporter.table("Environment", ("what", "found", "verdict", "advice"), rows)
    names = ("name", "value", "verdict", "advice")
    return {
        "ok": all(finding.verdict != "bad" for finding in findings),
        "findings": [dict(zip(names, row, strict=True)) for row in rows],
    }


def _tell_faults(faults: Sequence[Fault], reporter: Reporter) -> None:
    for fault in faults[:_LISTED_FAULTS]:
        reporter.note(str(fault))
    if len(faults) > _LISTED_FAULTS:
        reporter.note(f"... and {len(faults) - _LISTED_FAULTS} more; --json FILE lists all")


def _tell_counts(counts: Mapping[str, Mapping[str, int]], reporter: Reporter) -> None:
    rows = [[split, *(numbers[name] for name in _COUNTS)] for split, numbers in counts.items()]
    reporter.table("Dataset", ("split", "images", "text regions", "ignored", "text-free images"), rows)
