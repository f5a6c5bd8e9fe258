"""The page itself: one HTML file with everything inside, no script, nothing to fetch."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from pipelines.errors import DataError
from pipelines.report import content
from pipelines.report.curves import hmean_curves, training_curves
from pipelines.report.pictures import IGNORED, MISSED, RIGHT, WRONG, ChangedImage, draw_findings, window_of_change
from pipelines.report.template import TEMPLATE


def write_report(
    file: Path, result: content.RunResult, changed: Sequence[ChangedImage] = (), *, pictures_note: str = ""
) -> Path:
    """Write the page of a run; an older one is replaced whole or not at all.

    Args:
        file: to write, UTF-8 HTML.
        result: what the run found.
        changed: images to show before and after, most interesting first.
        pictures_note: what the pictures compare, or why there are none.

    Returns:
        `file`.

    Raises:
        DataError: the file can't be written.
    """
    page = render(result, changed, pictures_note)
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(file)
    except OSError as fault:
        raise DataError(f"{file}: the report can't be written: {fault.strerror or fault}") from None
    return file


def render(result: content.RunResult, changed: Sequence[ChangedImage], pictures_note: str) -> str:
    """The page as HTML."""
    curves = [curve for curve in (hmean_curves(result), *training_curves(result.log)) if curve is not None]
    # a file name or a weights address comes from outside: everything is escaped
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE).render(
        name=result.config["run"]["name"],
        has_won=content.has_won(result),
        verdict=content.verdict(result),
        remarks=content.remarks(result),
        result_columns=content.result_columns(result),
        result_rows=content.result_rows(result),
        baseline_name=result.baseline_name,
        was_tuned=result.was_tuned,
        curves=[{"name": c.name, "is_wide": c.is_wide, "image": _embedded(c.svg, "svg+xml")} for c in curves],
        pictures=[_picture(each) for each in changed],
        pictures_note=pictures_note,
        colours={"right": RIGHT, "wrong": WRONG, "missed": MISSED, "ignored": IGNORED},
        facts=content.run_facts(result),
        cost=content.cost_rows(result.log),
        setting=content.setting_rows(result),
        tuning_names=content.tuning_names(result),
        tuning=content.tuning_rows(result),
        parity=content.parity_sentence(result.parity),
    )


def _picture(changed: ChangedImage) -> dict[str, str]:
    window = window_of_change(changed)
    left, top, right, bottom = window
    return {
        "name": changed.name,
        "window": f"{right - left} × {bottom - top} px from ({left}, {top})",
        "before": _embedded(draw_findings(changed, changed.before, window), "jpeg"),
        "after": _embedded(draw_findings(changed, changed.after, window), "jpeg"),
        "counts_before": changed.before.counts(),
        "counts_after": changed.after.counts(),
    }


def _embedded(image: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}"
