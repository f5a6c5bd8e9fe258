"""Curves are whole SVG files, the same bytes every time, and live with what a log can hold.

pytest tests/unit/report/test_curves.py
"""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from pipelines.report import RunResult
from pipelines.report.curves import hmean_curves, training_curves
from tests.unit.report.conftest import log_line, metrics


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


def test_a_skipped_update_without_loss_leaves_the_others_drawn(won: RunResult) -> None:
    skipped = log_line(2, skipped=True, loss=None, loss_shrink=None, loss_threshold=None, grad_norm=None)
    assert training_curves([*won.log, skipped]) == training_curves(won.log)


def test_hmean_has_a_panel_for_every_size(won: RunResult) -> None:
    curve = hmean_curves(won)
    assert curve is not None
    assert curve.is_wide
    assert curve.svg.count(b'id="axes_') == 2


def test_hmean_before_the_first_evaluation_is_not_drawn(won: RunResult) -> None:
    assert hmean_curves(replace(won, metrics={**won.metrics, "evaluations": []})) is None


def test_an_undefined_hmean_is_not_drawn_but_the_rest_is(won: RunResult) -> None:
    assert (
        hmean_curves(replace(won, metrics={**won.metrics, "evaluations": [metrics(0.7, None, update=20)]})) is not None
    )
