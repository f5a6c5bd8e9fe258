"""The loop makes the asked number of updates, no more and no fewer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pipelines.engine.loop import run_updates
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.records import MicroBatch
from tests.factories import ToyTask, split, toy_samples, toy_task


@dataclass(frozen=True)
class Window:
    seed: int

    @property
    def micro_batches(self) -> list[MicroBatch]:
        return split(toy_samples(3, seed=self.seed), (2, 1))


def updater(task: ToyTask) -> Updater:
    groups = [ParameterGroup("all", task.network.parameters())]
    return Updater(task, groups, LearningRateSchedule(1e-2, 10))


def test_each_step_has_its_window_and_the_loop_ends_in_time() -> None:
    engine = updater(toy_task("labels"))
    steps = list(run_updates(engine, (Window(seed) for seed in range(100)), 4))
    assert [step.window.seed for step in steps] == [0, 1, 2, 3]
    assert [step.report.update for step in steps] == [1, 2, 3, 4]
    assert all(step.data_seconds >= 0 for step in steps)


def test_a_run_that_is_done_asks_for_no_window() -> None:
    assert list(run_updates(updater(toy_task("labels")), iter(()), 0)) == []


def test_windows_that_run_out_are_an_error_with_the_counts() -> None:
    with pytest.raises(ValueError, match="ran out after 2 of 5 updates"):
        list(run_updates(updater(toy_task("labels")), [Window(0), Window(1)], 5))
