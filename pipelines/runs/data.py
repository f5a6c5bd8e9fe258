"""`prepare`, `check` and `doctor`: what comes before training."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.doctor import diagnose
from pipelines.prep import CheckReport, PrepareReport, check_dataset, prepare_defect, prepare_text, write_pages
from pipelines.prep.cluster import dask_executor
from pipelines.prep.findings import finding_kinds
from pipelines.prep.work_folder import work_folder_of
from pipelines.records import Fault
from pipelines.runs.reporter import Reporter

_LISTED_FAULTS = 25
_LISTED_PAIRS = 10
_TEXT_COUNTS = {"images": "images", "regions": "text regions", "ignored": "ignored", "text_free": "text-free images"}
_DEFECT_COUNTS = {"images": "images", "ok_images": "OK images", "defects": "defects", "ignored": "ignored"}


def prepare_text_dataset(
    source: Path, format: str, out: Path, reporter: Reporter, *, cluster: str | None = None, **options: Any
) -> dict[str, Any]:
    """`prep.prepare_text`, here or on a Dask cluster, told on the terminal; options as there."""
    with _kept_work_told(out, reporter), _executor(cluster, source, out, options) as where:
        return _told(prepare_text(source, format, out, **{**options, **where}), format, reporter)


def prepare_defect_dataset(
    source: Path, format: str, out: Path, reporter: Reporter, *, cluster: str | None = None, **options: Any
) -> dict[str, Any]:
    """`prep.prepare_defect`, here or on a Dask cluster, told on the terminal; options as there."""
    with _kept_work_told(out, reporter), _executor(cluster, source, out, options) as where:
        return _told(prepare_defect(source, format, out, **{**options, **where}), format, reporter)


@contextmanager
def _executor(cluster: str | None, source: Path, out: Path, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The options `executor` and `workers` of a cluster's address, none without one."""
    if cluster is None:
        yield {}
        return
    beside = next(folder for folder in Path(os.path.abspath(out)).parents if folder.exists())
    images = [options["images"]] if options.get("images") else []
    shared = [path for path in (source, beside, *images, *options.get("ok_folders", ())) if path.exists()]
    with dask_executor(cluster, shared) as (executor, num_jobs):
        yield {"executor": executor, "workers": num_jobs}


@contextmanager
def _kept_work_told(out: Path, reporter: Reporter) -> Iterator[None]:
    """Say where the work of a run that is stopped is kept."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        kept = work_folder_of(out)
        if kept.exists():
            reporter.warn(f"what was done is kept in {kept}: the same command goes on from there, or remove it")
        raise


def _told(report: PrepareReport, asked_format: str, reporter: Reporter) -> dict[str, Any]:
    content = report.to_json()
    if report.format != asked_format:
        reporter.note(f"recognised as {report.format}")
    if report.resumed:
        reporter.note(report.resumed)
    _tell_faults(report.faults, reporter)
    _tell_finding_kinds(report.faults, reporter)
    _tell_counts(content["counts"], reporter)
    reporter.note(f"dry run: {report.out} was not written" if report.dry_run else f"dataset written to {report.out}")
    return content


def render_pages(source: Path, out: Path, reporter: Reporter, **options: Any) -> dict[str, Any]:
    """`prep.write_pages`, told on the terminal; options as there."""
    report = write_pages(source, out, **options)
    _tell_faults(report.faults, reporter)
    told = f"{report.num_pages} pages of {report.num_files} file(s) in {out}; {report.num_with_text} have a text layer"
    reporter.note(told)
    if report.num_drafts:
        reporter.warn(f"{report.num_drafts} draft labels in {out}/Label.txt: look them over before training on them")
    reporter.note(f"label in PPOCRLabel (open {out}), then: wholebatch prepare text {out} --out DATASET")
    return asdict(report)


def check(root: Path, reporter: Reporter, sheet: Path | None = None, **options: Any) -> dict[str, Any]:
    """`prep.check_dataset`, told on the terminal, and as a contact sheet where `sheet` is given; options as there."""
    write = None if sheet is None else _sheet_writer(sheet)
    report = check_dataset(root, **options)
    content = report.to_json()
    _tell_faults(report.faults, reporter)
    _tell_counts(content["counts"], reporter)
    _tell_sizes(content["quantiles"], reporter)
    if report.too_small is not None:
        reporter.note(str(report.too_small))
    _tell_near_duplicates(content["near_duplicates"], reporter)
    if report.num_not_compared:
        left = f"{report.num_not_compared} pairs of train and val resemble each other and were too many to compare"
        reporter.warn(f"{left}: parts in one fixture, pages of one form?")
    if write is not None:
        number = write(root, report)
        reporter.note(f"contact sheet in {sheet}: {number} images are worth a look")
    reporter.note(f"{root} can be trained on" if report.ok else f"{root} can't be trained on: mend the errors above")
    return content


def _sheet_writer(sheet: Path) -> Callable[[Path, CheckReport], int]:
    """Refused before the work where something else is there; loads what draws only where something is to be drawn."""
    from pipelines.report import refuse_other_file
    from pipelines.runs.contact_sheet import write_contact_sheet

    refuse_other_file(sheet)
    return partial(write_contact_sheet, sheet)


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


def _tell_finding_kinds(faults: Sequence[Fault], reporter: Reporter) -> None:
    rows = [[kind.action, kind.reason, kind.count, kind.first] for kind in finding_kinds(faults)]
    if rows:
        reporter.table("Repaired and dropped", ("action", "what", "how often", "first"), rows)


def _tell_counts(counts: Mapping[str, Mapping[str, Any]], reporter: Reporter) -> None:
    is_text = all("text_free" in numbers for numbers in counts.values())
    columns = _TEXT_COUNTS if is_text else _DEFECT_COUNTS
    rows = [[split, *(numbers[name] for name in columns)] for split, numbers in counts.items()]
    reporter.table("Dataset", ("split", *columns.values()), rows)
    if not is_text:
        names = dict.fromkeys(name for numbers in counts.values() for name in numbers["per_class"])
        rows = [[name, *(numbers["per_class"].get(name, 0) for numbers in counts.values())] for name in names]
        reporter.table("Defects by class", ("class", *counts), rows)


def _tell_sizes(quantiles: Mapping[str, Mapping[str, Sequence[float]]], reporter: Reporter) -> None:
    rows = [
        [split, name.removesuffix("_px").replace("_", " "), *(f"{value:g}" for value in values)]
        for split, measured in quantiles.items()
        for name, values in measured.items()
    ]
    columns = ("split", "of", "smallest", "10 %", "median", "90 %", "largest")
    reporter.table("Sizes in pixels", columns, rows)


def _tell_near_duplicates(pairs: Sequence[Mapping[str, Any]], reporter: Reporter) -> None:
    if pairs:
        rows = [[pair["train"], pair["val"], f"{100 * pair['similarity']:.1f} %"] for pair in pairs[:_LISTED_PAIRS]]
        title = "Alike in train and val" + (f", first {_LISTED_PAIRS} of {len(pairs)}" * (len(pairs) > _LISTED_PAIRS))
        reporter.table(title, ("train", "val", "agrees"), rows)
