"""The seed decides a run; how it is cut into micro-batches and who makes the samples does not.

Run: pytest tests/end_to_end/test_repeatability.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.runs.reporter import Quiet
from pipelines.runs.train import train
from tests.end_to_end.tiny_run import tiny_config

pytestmark = pytest.mark.slow

TIMES = ("seconds", "data_seconds", "peak_bytes")
LOSSES = ("loss", "loss_shrink", "loss_threshold", "loss_binary", "grad_norm")


def run_of(folder: Path, name: str, *overrides: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The log, without what a clock or an allocator says, and the metrics of a run."""
    run = train(tiny_config(folder, name, "evaluate.tune=null", *overrides), Quiet())
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        for key in TIMES:
            del line[key]
    return lines, json.loads((run / "metrics.json").read_text(encoding="utf-8"))


def furthest(log: list[dict[str, Any]], other: list[dict[str, Any]]) -> float:
    """The largest relative difference of any loss or gradient norm of any update."""
    pairs = [(line[key], expected[key]) for line, expected in zip(log, other, strict=True) for key in LOSSES]
    return max(abs(a - b) / abs(b) for a, b in pairs)


@pytest.fixture(scope="module")
def first(workplace: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    return run_of(workplace, "first")


def test_the_same_seed_gives_the_same_log_and_metrics_to_the_last_bit(workplace, first):
    assert run_of(workplace, "again") == first


def test_another_seed_gives_another_log(workplace, first):
    log, _ = run_of(workplace, "other seed", "run.seed=2")
    assert log != first[0]


def test_the_same_losses_whatever_the_micro_batch(workplace, first):
    for size in (1, 4):
        log, _ = run_of(workplace, f"micro-batch {size}", f"train.micro_batch={size}")
        assert {line["micro_batches"] for line in log}.isdisjoint(line["micro_batches"] for line in first[0])
        assert furthest(log, first[0]) < 1e-4, size


def test_mean_of_means_does_depend_on_the_micro_batch(workplace):
    # the control: were the numbers alike under every accumulation, the test above would prove nothing
    by_two, _ = run_of(workplace, "mean 2", "train.accumulation=mean")
    by_four, _ = run_of(workplace, "mean 4", "train.accumulation=mean", "train.micro_batch=4")
    assert furthest(by_two, by_four) > 1e-2


def test_the_same_losses_whoever_makes_the_samples(workplace, first):
    assert run_of(workplace, "a worker", "batching.workers=1")[0] == first[0]
