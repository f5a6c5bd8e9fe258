"""The verdict says plainly who won, and every number of the tables follows from the run's own.

pytest tests/unit/report/test_content.py
"""

from __future__ import annotations

from dataclasses import replace

from pipelines.report import RunResult, content
from tests.unit.report.conftest import SHIPPED, log_line, metrics


def facts(result: RunResult) -> dict[str, str]:
    return {name: value for name, value in content.run_facts(result)}


def test_a_run_that_won_says_by_how_much_over_the_tuned_baseline(won: RunResult) -> None:
    # Baseline (.8 + .7)/2 - .1 = .65, best (.85 + .75)/2 - .1 = .7.
    assert content.verdict(won) == (
        "Training added +0.050 to the mean hmean of the tuned baseline (0.650 to 0.700, best at update 40)."
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
    # Shipped (.7 + .5)/2 - .1 = .5.
    assert any("gave +0.150 (0.500 to 0.650): no merit of the training" in remark for remark in content.remarks(won))


def test_without_tuning_nothing_is_called_tuned(won: RunResult) -> None:
    same = {**won.metrics, "baseline": {**won.metrics["baseline"], "setting": SHIPPED}}
    untuned = replace(won, metrics=same)
    assert "tuned" not in content.verdict(untuned) + " ".join(content.remarks(untuned))


def test_a_size_that_got_worse_is_named_although_the_mean_rose(won: RunResult) -> None:
    mixed = replace(won, metrics={**won.metrics, "best": metrics(0.95, 0.69, update=40)})
    assert content.lower_cells(mixed) == [
        "4000 px and more, IoU .5 (0.700 to 0.690)",
        "4000 px and more, IoU .7 (0.600 to 0.590)",
        "4000 px and more, IoU .8 (0.500 to 0.490)",
    ]
    assert any("Lower than the tuned baseline" in remark for remark in content.remarks(mixed))
    assert content.lower_cells(won) == []


def test_skipped_updates_are_told(won: RunResult) -> None:
    skipped = replace(won, log=[log_line(1), log_line(1, skipped=True, loss=None, grad_norm=None)])
    assert any("1 update(s) were skipped" in remark for remark in content.remarks(skipped))


def test_the_table_has_a_row_for_every_size_and_iou_and_then_all_sizes(won: RunResult) -> None:
    rows = content.result_rows(won)
    assert [row[0] for row in rows if row[0]] == ["under 4000 px", "4000 px and more", "all sizes"]
    assert len(rows) == 9
    assert all(len(row) == len(content.result_columns(won)) for row in rows)
    assert rows[3] == ["4000 px and more", "4", "IoU .5", "0.500", "0.700", "0.750", "+0.050", "0.750", "0.750"]
    assert rows[4] == ["", "", "IoU .7", "0.400", "0.600", "0.650", "+0.050", "0.650", "0.650"]


def test_a_single_size_needs_no_second_row_for_all(won: RunResult) -> None:
    def only_small(entry: dict) -> dict:
        return {**entry, "by_bucket": {"under 4000 px": entry["by_bucket"]["under 4000 px"]}}

    stages = {name: only_small(won.metrics[name]) for name in ("shipped", "baseline", "best")}
    assert len(content.result_rows(replace(won, metrics={**won.metrics, **stages}))) == 3


def test_undefined_hmean_is_a_dash_and_counts_neither_way(won: RunResult) -> None:
    stages = {name: metrics(0.7, None, SHIPPED, update=40) for name in ("shipped", "baseline", "best")}
    undefined = replace(won, metrics={**won.metrics, **stages})
    assert content.result_rows(undefined)[3][3:] == ["–"] * 6
    assert content.lower_cells(undefined) == []


def test_the_effective_batch_is_told_with_its_arithmetic(won: RunResult) -> None:
    assert facts(won)["effective batch"] == (
        "32 = micro-batch 2 × 16 accumulation steps; an update took 16 micro-batches, of 1 shapes in all"
    )
    ragged = replace(won, log=[log_line(1, micro_batches=18, shapes=[[2, 320, 320], [1, 640, 480]]), log_line(2)])
    assert "16 to 18 micro-batches, of 2 shapes in all" in facts(ragged)["effective batch"]


def test_a_detached_threshold_branch_is_told(won: RunResult) -> None:
    detached = replace(
        won, config={**won.config, "model": {**won.config["model"], "threshold_gradient_to_trunk": False}}
    )
    assert "no gradient" in facts(detached)["network"]
    assert "no gradient" not in facts(won)["network"]


def test_the_learning_rate_is_told_with_its_arithmetic(won: RunResult) -> None:
    assert facts(won)["learning rate"].startswith("0.0005 × 32/16 (linear rule) = 0.001 after warm-up")


def test_time_and_memory_are_sums_over_the_log(won: RunResult) -> None:
    # Three updates of 32 images in 15 s and 1 s of waiting: 96 / 48 = 2 images a second, 1/16 waiting, 1.5 GiB.
    cost = dict(content.cost_rows(won.log))
    assert cost["images per second"] == "2.00"
    assert cost["seconds per update"] == "16.0"
    assert cost["training time, evaluations apart"] == "0 min 48 s"
    assert cost["share of it waiting for data"] == "6%"
    assert cost["peak of tensor memory, evaluations included"] == "1.50 GiB"
    assert content.cost_rows([]) == []


def test_trials_are_listed_best_first_with_what_differs_alone(won: RunResult) -> None:
    assert content.tuning_names(won) == ["limit_side", "unclip_ratio"]
    assert content.tuning_rows(won) == [["1600", "1.2", "0.650"], ["1600", "1.5", "0.600"], ["960", "1.5", "0.500"]]


def test_an_export_that_differs_is_not_called_the_same(won: RunResult) -> None:
    parity = {"num_ours": 10, "num_theirs": 9, "num_equal": 5, "share": 0.5, "min_iou": 0.99, "min_share": 0.98}
    assert "does NOT find the same boxes" in content.parity_sentence({**parity, "ok": False})
    assert "finds the same boxes" in content.parity_sentence({**parity, "ok": True})
    assert "Not exported yet" in content.parity_sentence(won.parity)
