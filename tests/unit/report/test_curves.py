"""Curves are whole SVG files, the same bytes every time, and live with what a log can hold.

Run: pytest tests/unit/report/test_curves.py
"""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from pipelines.report import RunResult, TaskContent
from pipelines.report.curves import metric_curves, training_curves
from tests.unit.report.run_values import log_line


def test_loss_parts_learning_rate_and_gradient_norm_have_a_curve_each(won: RunResult) -> None:
    curves = training_curves(won.log)
    assert [curve.name for curve in curves] == [
        "loss",
        "parts of the loss, before their weights",
        "learning rate",
        "gradient norm before clipping",
    ]
    assert all(ElementTree.fromstring(curve.svg).tag.endswith("svg") for curve in curves)


def test_the_same_run_gives_the_same_bytes_and_another_run_others(won: RunResult) -> None:
    assert training_curves(won.log) == training_curves(won.log)
    assert training_curves([log_line(1, loss=9.0), *won.log[1:]])[0] != training_curves(won.log)[0]


def test_an_empty_log_has_no_curves() -> None:
    assert training_curves([]) == []


def test_every_panel_with_points_is_a_figure_of_its_own(of_task: TaskContent) -> None:
    (panel,) = of_task.panels
    assert [curve.name for curve in metric_curves([panel, replace(panel, points=[]), panel])] == ["score on val"] * 2


def test_an_undefined_value_or_level_is_not_drawn_but_the_rest_is(of_task: TaskContent) -> None:
    (panel,) = of_task.panels
    (line,) = panel.lines
    undefined = replace(panel, lines=[replace(line, values=[None, None, None], baseline=None, shipped=None)])
    drawn, bare = metric_curves([panel, undefined])
    assert drawn.svg.count(b"<path") > bare.svg.count(b"<path")
