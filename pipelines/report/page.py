"""The page itself: one HTML file with everything inside, no script, nothing to fetch."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from pipelines.errors import DataError
from pipelines.report import content
from pipelines.report.curves import metric_curves, training_curves
from pipelines.report.pictures import IGNORED, MISSED, RIGHT, WRONG, ChangedImage, draw_findings, window_of_change
from pipelines.report.template import TEMPLATE


def write_report(
    file: Path,
    result: content.RunResult,
    of_task: content.TaskContent,
    changed: Sequence[ChangedImage] = (),
    *,
    pictures_note: str = "",
) -> Path:
    """Write the page of a run; an older one is replaced whole or not at all.

    Args:
        file: to write, UTF-8 HTML.
        result: what the run found.
        of_task: what the task says of it.
        changed: images to show before and after, most interesting first.
        pictures_note: what the pictures compare, or why there are none.

    Returns:
        `file`.

    Raises:
        DataError: the file can't be written.
    """
    return write_page(file, render(result, of_task, changed, pictures_note))


def write_page(file: Path, page: str) -> Path:
    """Write a page, replacing an older one whole or not at all.

    Raises:
        DataError: the file can't be written.
    """
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(file)
    except OSError as fault:
        raise DataError(f"{file}: can't be written: {fault.strerror or fault}") from None
    return file


def render(
    result: content.RunResult, of_task: content.TaskContent, changed: Sequence[ChangedImage], pictures_note: str
) -> str:
    """The page as HTML."""
    curves = [*metric_curves(of_task.panels), *training_curves(result.log)]
    return filled(
        TEMPLATE,
        name=result.config["run"]["name"],
        result=result,
        of_task=of_task,
        verdict=content.verdict(result),
        remarks=[*content.remarks(result), *of_task.remarks],
        curves=[{"name": curve.name, "image": embedded(curve.svg, "svg+xml")} for curve in curves],
        pictures=[_picture(each) for each in changed],
        pictures_note=pictures_note,
        colours={"right": RIGHT, "wrong": WRONG, "missed": MISSED, "ignored": IGNORED},
        run=content.run_table(result, of_task.facts),
        cost=content.cost_table(result.log),
        setting=content.setting_table(result),
        parity=content.parity_sentence(result.parity, of_task.program),
    )


def filled(template: str, **values: object) -> str:
    """A Jinja template with its values."""
    # a file name or a weights address comes from outside: everything is escaped
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(**values)


def _picture(changed: ChangedImage) -> dict[str, str]:
    window = window_of_change(changed)
    left, top, right, bottom = window
    return {
        "name": changed.name,
        "window": f"{right - left} × {bottom - top} px from ({left}, {top})",
        "before": embedded(draw_findings(changed, changed.before, window), "jpeg"),
        "after": embedded(draw_findings(changed, changed.after, window), "jpeg"),
        "counts_before": changed.before.counts(changed.noun),
        "counts_after": changed.after.counts(changed.noun),
    }


def embedded(image: bytes, kind: str) -> str:
    """As an address that holds the image itself, of "image/kind"."""
    return f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}"
