"""What a text run's page says: hmean by size and IoU, what got lower, which settings were tried.

Run: pytest tests/unit/runs/text/test_page.py
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.report import RunResult
from pipelines.runs.text import page
from tests.unit.report.run_values import CONFIG, SHIPPED, TUNED, log_line
from tests.unit.runs.text.text_metrics import metrics


@pytest.fixture
def won() -> RunResult:
    """Tuning gave .1 and .2, training .05 on both sizes, at update 40 of 60."""
    found = {
        "shipped": metrics(0.7, 0.5, SHIPPED),
        "baseline": metrics(0.8, 0.7, TUNED),
        "best": metrics(0.85, 0.75, TUNED, update=40),
        "evaluations": [metrics(0.75, 0.7, update=20), metrics(0.85, 0.75, update=40), metrics(0.82, 0.74, update=60)],
        "tuning": [
            {"setting": SHIPPED, "objective": 0.5},
            {"setting": TUNED, "objective": 0.65},
            {"setting": {**SHIPPED, "limit_side": 1600}, "objective": 0.6},
        ],
    }
    return RunResult(CONFIG, found, "mean hmean", [log_line(1)], peak_learning_rate=0.001)


def test_a_size_that_got_worse_is_named_although_the_mean_rose(won: RunResult) -> None:
    mixed = replace(won, metrics={**won.metrics, "best": metrics(0.95, 0.69, update=40)})
    assert page.remarks(mixed) == [
        "Lower than the tuned baseline: 4000 px and more, IoU .5 (0.700 to 0.690); 4000 px and more, IoU .7 (0.600 to"
        " 0.590); 4000 px and more, IoU .8 (0.500 to 0.490)."
    ]
    assert page.remarks(won) == []


def test_the_table_has_a_row_for_every_size_and_iou_and_then_all_sizes(won: RunResult) -> None:
    table = page.result_table(won)
    rows = table.rows
    assert [row[0] for row in rows if row[0]] == ["under 4000 px", "4000 px and more", "all sizes"]
    assert len(rows) == 9
    assert all(len(row) == len(table.columns) for row in rows)
    assert rows[3] == ["4000 px and more", "4", "IoU .5", "0.500", "0.700", "0.750", "+0.050", "0.750", "0.750"]
    assert rows[4] == ["", "", "IoU .7", "0.400", "0.600", "0.650", "+0.050", "0.650", "0.650"]
    assert {table.marks[row, list(table.columns).index("best − tuned baseline")] for row in range(9)} == {"better"}


def test_a_single_size_needs_no_second_row_for_all(won: RunResult) -> None:
    def only_small(entry: dict) -> dict:
        return {**entry, "by_bucket": {"under 4000 px": entry["by_bucket"]["under 4000 px"]}}

    stages = {name: only_small(won.metrics[name]) for name in ("shipped", "baseline", "best")}
    assert len(page.result_table(replace(won, metrics={**won.metrics, **stages})).rows) == 3


def test_undefined_hmean_is_a_dash_and_counts_neither_way(won: RunResult) -> None:
    stages = {name: metrics(0.7, None, SHIPPED, update=40) for name in ("shipped", "baseline", "best")}
    undefined = replace(won, metrics={**won.metrics, **stages})
    assert page.result_table(undefined).rows[3][3:] == ["–"] * 6
    assert page.remarks(undefined) == []


def test_a_detached_threshold_branch_is_told(won: RunResult) -> None:
    detached = replace(
        won, config={**won.config, "model": {**won.config["model"], "threshold_gradient_to_trunk": False}}
    )
    assert "no gradient" in dict(page.facts(detached))["network"]
    assert "no gradient" not in dict(page.facts(won))["network"]


def test_images_evaluated_smaller_for_lack_of_memory_are_told_beside_the_dataset(won: RunResult) -> None:
    assert "smaller" not in page.facts(won)[1][1]
    best = {**won.metrics["best"], "capped_images": 2}
    said = page.facts(replace(won, metrics={**won.metrics, "best": best}))[1][1]
    assert said.endswith("; 2 images smaller than in deployment, for lack of memory")


def test_trials_are_listed_best_first_with_what_differs_alone(won: RunResult) -> None:
    table = page.trials_table(won)
    assert table is not None
    assert list(table.columns) == ["limit_side", "unclip_ratio", "mean hmean"]
    assert table.rows == [["1600", "1.2", "0.650"], ["1600", "1.5", "0.600"], ["960", "1.5", "0.500"]]
    assert page.trials_table(replace(won, metrics={**won.metrics, "tuning": []})) is None


def test_hmean_has_a_panel_for_every_size_with_both_baselines(won: RunResult) -> None:
    small, large = page.panels(won)
    assert (small.title, large.title) == ("hmean on val, under 4000 px", "hmean on val, 4000 px and more")
    assert list(small.points) == [20, 40, 60]
    at_50 = large.lines[0]
    assert (at_50.label, list(at_50.values), at_50.baseline, at_50.shipped) == ("IoU .5", [0.7, 0.75, 0.74], 0.7, 0.5)
