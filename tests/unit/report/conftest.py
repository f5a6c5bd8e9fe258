"""A run's result made by hand: three evaluations, a log of three updates, and what some task says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipelines.report import ChangedImage, Findings, Line, Panel, RunResult, Table, TaskContent
from tests.unit.report.run_values import CONFIG, SHIPPED, TUNED, evaluated, log_line, square


@pytest.fixture
def won() -> RunResult:
    """Tuning gave .15, training .05, at update 40 of 60."""
    found = {
        "shipped": evaluated(0.5, SHIPPED),
        "baseline": evaluated(0.65, TUNED),
        "best": evaluated(0.7, TUNED, update=40),
        "evaluations": [evaluated(value, TUNED, update=update) for update, value in ((20, 0.6), (40, 0.7), (60, 0.68))],
    }
    return RunResult(CONFIG, found, "mean score", [log_line(update) for update in (1, 2, 3)], peak_learning_rate=0.001)


@pytest.fixture
def lost(won: RunResult) -> RunResult:
    """The same run, but no evaluation reaches the tuned baseline."""
    evaluations = [evaluated(0.55, TUNED, update=20), evaluated(0.63, TUNED, update=40)]
    best = {**won.metrics["baseline"], "update": 0}
    return replace(won, metrics={**won.metrics, "best": best, "evaluations": evaluations})


@pytest.fixture
def of_task() -> TaskContent:
    """A table with a mark of each kind, a panel and a fact."""
    marks = {(0, 1): "better", (1, 1): "worse"}
    return TaskContent(
        remarks=["Lower somewhere."],
        result=[Table([["small", "+0.100"], ["", "−0.100"], ["large", "+0.000"]], ["size", "change"], marks=marks)],
        panels=[Panel("score on val", [20, 40, 60], [Line("IoU .5", [0.6, None, 0.68], 0.65, 0.5)])],
        facts=[["network", "some network"]],
        pictures_key="fits a label at IoU .5",
        program="paddlex",
    )


@pytest.fixture
def changed_image() -> Callable[..., ChangedImage]:
    """A white page with labelled squares 40 px high: before, none is found; after, those of `found`."""

    def make(size_hw: tuple[int, int], corners: list[tuple[int, int]], found: list[bool]) -> ChangedImage:
        labels = [square(*corner) for corner in corners]
        after = np.array(found, dtype=bool)
        boxes = [label for label, is_found in zip(labels, found, strict=True) if is_found]
        nothing = np.zeros(0, bool)
        none = Findings([], nothing, nothing, np.zeros_like(after))
        right = Findings(boxes, np.ones(len(boxes), bool), np.zeros(len(boxes), bool), after)
        image = np.full((*size_hw, 3), 255, np.uint8)
        return ChangedImage("page.jpg", image, labels, [], none, right, span_px=1600.0 * bool(corners))

    return make
