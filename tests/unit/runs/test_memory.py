"""A run's memory: planned, rehearsed, refused and corrected, with an updater that takes what a formula says.

Run: pytest tests/unit/runs/test_memory.py
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipelines.engine.recovery import Recovery
from pipelines.errors import OutOfMemoryError
from pipelines.records import MicroBatch
from pipelines.runs.memory import RunMemory, budget_of
from tests.factories import toy_task

MIB = 2**20
RESTING = 10 * MIB
PER_PIXEL = 100  # bytes, of one image; 40 with recomputed activations


class FakeUpdater:
    """Takes 1 MiB and so many bytes a pixel and image."""

    def __init__(self) -> None:
        self.recovery = Recovery(toy_task("labels"))
        self.has_resting_groups = False
        self.rehearsed: list[tuple[int, int, int]] = []

    def rehearse(self, window: list[MicroBatch], recovery: Recovery | None = None) -> int:
        (micro_batch,) = window
        self.rehearsed.append((len(micro_batch), *micro_batch.shape_hw))
        per_pixel = 0.4 * PER_PIXEL if recovery is not None and recovery._recompute == "always" else PER_PIXEL
        return round(MIB + per_pixel * micro_batch.images[..., 0].size)

    def resting_bytes(self) -> int:
        return RESTING


class FakeLoader:
    def __init__(self, *shapes: tuple[int, int]):
        self._shapes = shapes
        self.size_of: Any = lambda size_hw: 2

    def shape_shares(self) -> dict[tuple[int, int], float]:
        return dict.fromkeys(self._shapes, 1 / len(self._shapes))

    def largest_micro_batch(self, size_hw: tuple[int, int]) -> int:
        return self.size_of(size_hw)

    def blank(self, number: int, size_hw: tuple[int, int]) -> MicroBatch:
        return MicroBatch(np.zeros((number, *size_hw, 3), np.uint8), {}, ("blank",) * number)


def run_memory(recorder: Any, loader: FakeLoader, **train: Any) -> tuple[RunMemory, FakeUpdater]:
    options = {"micro_batch": "auto", "memory": 100 * MIB, "recompute": "auto", "on_oom": "stop", "effective_batch": 8}
    config, updater = SimpleNamespace(train=SimpleNamespace(**{**options, **train})), FakeUpdater()
    return RunMemory(config, toy_task("labels"), updater, loader, recorder), updater  # type: ignore[arg-type]


def report(update: int, peak_mib: float, *shapes: tuple[int, int, int], failures: int = 0) -> Any:
    return SimpleNamespace(update=update, shapes=shapes, peak_bytes=round(peak_mib * MIB), failures=failures)


def test_every_shape_gets_what_fits_and_the_largest_is_rehearsed(recorder):
    loader = FakeLoader((256, 256), (640, 640))
    _, updater = run_memory(recorder, loader)
    # 86 MiB for micro-batches of 6.25 MiB an image and of 39.06
    assert loader.size_of((256, 256)) == 8 and loader.size_of((640, 640)) == 2
    assert updater.rehearsed[-1] == (2, 640, 640)
    assert any("micro-batches of 8 up to 256 x 256 px; of 2 up to 640 x 640 px" in note for note in recorder.notes)


def test_one_shape_needs_no_rehearsal_and_a_fixed_micro_batch_no_plan(recorder):
    _, updater = run_memory(recorder, FakeLoader((256, 256)), micro_batch=2)
    assert updater.rehearsed == [] and recorder.notes == []
    _, updater = run_memory(recorder, FakeLoader((256, 256), (64, 64)), micro_batch=2)
    assert updater.rehearsed == [(2, 256, 256)]


def test_what_fits_only_recomputed_is_recomputed_from_the_start(recorder):
    loader = FakeLoader((1024, 1024), (64, 64))
    _, updater = run_memory(recorder, loader)
    assert loader.size_of((1024, 1024)) == 2
    assert updater.recovery.plans_recompute((1024, 1024)) and not updater.recovery.plans_recompute((64, 64))
    assert any("of 2 up to 1024 x 1024 px, recomputed" in note for note in recorder.notes)


def test_a_shape_that_never_fits_is_refused_with_the_side_that_does_or_told_if_it_may_be_left_out(recorder):
    with pytest.raises(
        OutOfMemoryError, match=r"2048 x 2048 px needs .* a square of 1472 x 1472 px fits\. Use smaller"
    ):
        run_memory(recorder, FakeLoader((2048, 2048), (64, 64)))
    run_memory(recorder, FakeLoader((2048, 2048), (64, 64)), on_oom="skip")
    assert "left out and counted" in recorder.warnings[-1]


def test_a_peak_that_is_off_plans_anew_and_one_that_says_nothing_does_not(recorder):
    loader = FakeLoader((256, 256), (640, 640))
    memory, updater = run_memory(recorder, loader)
    shapes = (2, 640, 640)
    memory.after(report(1, 50, shapes))  # no moments yet
    memory.after(report(2, 150, shapes, failures=1))  # not in one piece
    updater.has_resting_groups = True
    memory.after(report(3, 30, shapes))
    updater.has_resting_groups = False
    memory.after(report(4, 92, shapes))  # 89.1 planned
    assert loader.size_of((640, 640)) == 2 and not any("planned anew" in note for note in recorder.notes)
    memory.after(report(5, 120, shapes))
    assert loader.size_of((640, 640)) == 1
    assert "update 5 took 120 MiB where 89 MiB were planned: planned anew" in recorder.notes[-1]


def test_a_named_budget_is_taken_as_it_is_on_a_cpu_and_without_one_most_of_what_is_free(monkeypatch):
    def config(memory: int | None) -> Any:
        return SimpleNamespace(train=SimpleNamespace(memory=memory))

    monkeypatch.setattr("pipelines.runs.memory.usable_memory_bytes", lambda: 1000 * MIB)
    assert budget_of(config(64 * MIB)).tensor_bytes == 64 * MIB
    assert budget_of(config(None)).tensor_bytes == 700 * MIB and "70%" in budget_of(config(None)).origin
