"""The verdict says plainly who won, and every number of the tables follows from the run's own.

Run: pytest tests/unit/report/test_content.py
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.report import RunResult, content
from tests.unit.report.run_values import SHIPPED, TUNED, log_line


def facts(result: RunResult) -> dict[str, str]:
    return {name: value for name, value in content.run_table(result, [["network", "some network"]]).rows}


def test_a_run_that_won_says_by_how_much_over_the_tuned_baseline(won: RunResult) -> None:
    assert content.verdict(won) == (
        "Training added +0.050 to the mean score of the tuned baseline (0.650 to 0.700, best at update 40)."
    )


def test_a_run_that_lost_says_so_and_how_close_it_came(lost: RunResult) -> None:
    said = content.verdict(lost)
    assert said.startswith("Training did not beat the tuned baseline: the best model is the untouched weights")
    assert "at the tuned setting" in said
    assert "0.630 at update 40" in said


def test_a_run_stopped_before_its_first_evaluation_claims_nothing(lost: RunResult) -> None:
    stopped = replace(lost, metrics={**lost.metrics, "evaluations": []})
    assert content.verdict(stopped).startswith("No model has been evaluated after training yet")


def test_what_tuning_gave_is_told_apart_from_what_training_gave(won: RunResult) -> None:
    assert any("gave +0.150 (0.500 to 0.650): no merit of the training" in remark for remark in content.remarks(won))


def test_without_tuning_nothing_is_called_tuned(won: RunResult) -> None:
    same = {**won.metrics, "baseline": {**won.metrics["baseline"], "setting": SHIPPED}}
    untuned = replace(won, metrics=same)
    assert "tuned" not in content.verdict(untuned) + " ".join(content.remarks(untuned))


def test_what_a_run_survived_is_told_with_its_counts_and_nothing_where_it_was_nothing(won: RunResult) -> None:
    told = content.remarks(replace(won, log=[log_line(1, skipped=2), log_line(2, skipped=1, in_full=4, failures=5)]))
    assert [sentence.split(" were ")[0] for sentence in told[-3:-1]] == [
        "3 sample(s)",
        "4 micro-batch(es) overflowed in low precision and",
    ]
    assert told[-1].startswith("Memory ran out 5 time(s)")
    assert not any("time(s)" in sentence for sentence in content.remarks(won))


def test_the_effective_batch_is_told_with_its_arithmetic(won: RunResult) -> None:
    assert facts(won)["effective batch"] == (
        "32 = micro-batch 2 × 16 accumulation steps; an update took 16 micro-batches, of 1 shapes in all"
    )
    ragged = replace(won, log=[log_line(1, micro_batches=18, shapes=[[2, 320, 320], [1, 640, 480]]), log_line(2)])
    assert "16 to 18 micro-batches, of 2 shapes in all" in facts(ragged)["effective batch"]


def test_the_learning_rate_is_told_with_its_arithmetic(won: RunResult) -> None:
    assert facts(won)["learning rate"].startswith("0.0005 × 32/16 (linear rule) = 0.001 after warm-up")


def test_time_and_memory_are_sums_over_the_log(won: RunResult) -> None:
    # Three updates of 32 images in 15 s and 1 s of waiting: 96 / 48 = 2 images a second, 1/16 waiting, 1.5 GiB.
    cost = dict(content.cost_table(won.log).rows)
    assert cost["images per second"] == "2.00"
    assert cost["seconds per update"] == "16.0"
    assert cost["training time, evaluations apart"] == "0 min 48 s"
    assert cost["share of it waiting for data"] == "6%"
    assert cost["peak of tensor memory, evaluations included"] == "1.50 GiB"
    assert content.cost_table([]).rows == []


def test_an_export_that_differs_is_not_called_the_same(won: RunResult) -> None:
    parity = {"num_ours": 10, "num_theirs": 9, "num_equal": 5, "share": 0.5, "min_iou": 0.99, "min_share": 0.98}
    assert "does NOT find the same boxes" in content.parity_sentence({**parity, "ok": False}, "paddlex")
    assert "finds the same boxes in paddlex" in content.parity_sentence({**parity, "ok": True}, "paddlex")
    assert "Not exported yet" in content.parity_sentence(won.parity, "paddlex")


def test_the_tasks_own_facts_come_first(won: RunResult) -> None:
    assert content.run_table(won, [["network", "some network"]]).rows[0] == ["network", "some network"]


def test_settings_that_differ_stand_beside_each_other_and_equal_ones_once(won: RunResult) -> None:
    table = content.setting_table(won)
    assert list(table.columns) == ["", "as shipped", "tuned baseline", "best model"]
    assert list(table.rows[0]) == ["limit side", "960", "1600", "1600"]
    stages = {name: {**won.metrics[name], "setting": TUNED} for name in ("shipped", "baseline", "best")}
    same = content.setting_table(replace(won, metrics={**won.metrics, **stages}))
    assert list(same.columns) == ["", "setting"]
    assert list(same.rows[0]) == ["limit side", "1600"]


def test_a_setting_that_is_not_used_is_a_dash(won: RunResult) -> None:
    setting = {"longest_side": None, "scale": 0.5}
    stages = {name: {**won.metrics[name], "setting": setting} for name in ("shipped", "baseline", "best")}
    table = content.setting_table(replace(won, metrics={**won.metrics, **stages}))
    assert [list(row) for row in table.rows] == [["longest side", "–"], ["scale", "0.5"]]


@pytest.mark.parametrize(
    ("value", "other", "change", "mark", "mark_of_rate"),
    [
        (0.85, 0.8, 0.05, "better", "worse"),
        (0.8, 0.85, -0.05, "worse", "better"),
        (0.8004, 0.7996, 0.0, "", ""),  # both are shown as 0.800
        (None, 0.8, None, "", ""),
    ],
)
def test_a_difference_is_that_of_the_numbers_shown(value, other, change, mark, mark_of_rate) -> None:
    found = content.difference(value, other)
    assert found == change
    assert (content.mark_of(found), content.mark_of(found, lower_is_better=True)) == (mark, mark_of_rate)
