"""A run whose allocator really fails, at random places; started by test_scarce_memory.py, never on its own.

Usage: scarce_memory.py METHOD DTYPE NUM_FAILURES [helpless]; prints one JSON line. "helpless" recovers from nothing.
Large tensors must come straight from the kernel: MALLOC_MMAP_THRESHOLD_ keeps freed memory from hiding the limit.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import paddle

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pipelines.engine import retry
from pipelines.engine.memory import held_bytes
from pipelines.engine.recovery import evenly_split
from pipelines.engine.retry import with_second_try
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.records import MicroBatch
from tests.address_space import leave_all_room, leave_room
from tests.factories import ToyTask, split, toy_samples, toy_task

NUM_UPDATES = 20
SHAPES = ((64, 96), (96, 64), (64, 64))
PLACES = ("forward", "backward", "optimizer", "evaluation")
LAYERS_BETWEEN = 8
"""At least: one image alone is tried twice, so no two failures may hit the same one."""


@contextmanager
def starved() -> Iterator[Callable[[], None]]:
    """Inside, what is yielded takes all room for new mappings away; afterwards there is room again."""
    try:
        yield partial(leave_room, 0)
    finally:
        leave_all_room()


class Scarcity:
    """Starves forwards, backwards and optimizer steps of a task, `num_failures` in all."""

    def __init__(self, task: ToyTask, updater: Updater, num_failures: int):
        self.places: list[str] = []
        self._rng, self._num_failures = np.random.default_rng(1), num_failures
        self._layer_calls, self._next_at, self._next_place = 0, 5, "forward"
        self._starve: Callable[[], None] = lambda: None
        self.is_evaluating = False
        for layer in task.network.children():
            layer.register_forward_pre_hook(self._before_layer)
            layer.register_forward_post_hook(self._after_layer)
        task.statistics = self._guarded(task.statistics)  # type: ignore[method-assign]
        paddle.Tensor.backward = self._guarded(paddle.Tensor.backward)
        updater.optimizer._append_optimize_op = self._in_step(updater.optimizer._append_optimize_op)
        updater.optimizer.step = self._guarded(updater.optimizer.step)

    def evaluate(self, task: ToyTask, micro_batches: list[MicroBatch]) -> list[float]:
        """A number an image, by the rule of every evaluation: one at a time, a second try where memory ran out."""
        self.is_evaluating = True
        found = [with_second_try(partial(_mean_output, task, micro_batch), "an image") for micro_batch in micro_batches]
        self.is_evaluating = False
        return found

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any) -> Any:
            with starved() as self._starve:
                return function(*arguments)

        return guarded

    def _is_due(self, place: str) -> bool:
        is_early = len(self.places) == self._num_failures or self._layer_calls < self._next_at
        if is_early or place != self._next_place or self._rng.random() < 0.5:
            return False
        self.places.append(place)
        self._next_place = str(self._rng.choice(PLACES, p=(0.4, 0.4, 0.1, 0.1)))
        self._next_at = self._layer_calls + LAYERS_BETWEEN + int(self._rng.integers(16))
        return True

    def _before_layer(self, layer: paddle.nn.Layer, inputs: Any) -> None:
        self._layer_calls += 1
        if self._is_due("evaluation" if self.is_evaluating else "forward"):
            self._starve()

    def _after_layer(self, layer: paddle.nn.Layer, inputs: Any, output: paddle.Tensor) -> None:
        if not output.stop_gradient and self._is_due("backward"):
            output.register_hook(lambda gradient: self._starve())

    def _in_step(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def one_parameter(*arguments: Any) -> Any:
            if self._is_due("optimizer"):
                self._starve()
                paddle.empty([1 << 22])
            return function(*arguments)

        return one_parameter


def _mean_output(task: ToyTask, micro_batch: MicroBatch) -> float:
    with paddle.no_grad():
        return float(sum(value.sum() for value in task.statistics(micro_batch).values()))


def window(seed: int) -> list[MicroBatch]:
    """32 samples in micro-batches of 8, 2 and 6, of three shapes."""
    sizes = ((8, 2), (6, 6), (8, 2))
    return [
        micro_batch
        for k, (shape, of_shape) in enumerate(zip(SHAPES, sizes, strict=True))
        for micro_batch in split(toy_samples(sum(of_shape), size_hw=shape, seed=3 * seed + k), of_shape)
    ]


def train(
    exact_by: str, dtype: str, num_failures: int, cut: int | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Weights after 20 updates, and what happened; `cut` makes micro-batches of so many samples at most."""
    task = toy_task(exact_by, dtype=dtype)
    groups = [ParameterGroup("all", task.network.parameters())]
    updater = Updater(task, groups, LearningRateSchedule(1e-2, NUM_UPDATES), clip_norm=0.5)
    scarcity = Scarcity(task, updater, num_failures)
    reports, evaluations, held = [], [], 0
    for update in range(NUM_UPDATES):
        pieces = [piece for whole in window(update) for piece in evenly_split(whole, cut or len(whole))]
        reports.append(updater.run(pieces))
        held = held or held_bytes()  # after the first update the moments are there
        ones = [piece for whole in window(100) for piece in evenly_split(whole, 1)]
        evaluations.append(scarcity.evaluate(task, ones[:8]))
    facts = {
        "samples": sorted({report.samples for report in reports}),
        "failures": sum(report.failures for report in reports),
        "places": {place: scarcity.places.count(place) for place in PLACES},
        "smallest": min(shape[0] for report in reports for shape in report.shapes),
        "held": held_bytes() / held,
        "evaluations": evaluations,
    }
    return {name: value.numpy().astype(np.float64) for name, value in task.network.state_dict().items()}, facts


def difference(weights: dict[str, np.ndarray], reference: dict[str, np.ndarray]) -> float:
    """Of the tensor that is farthest off, relative to its norm."""
    return max(float(np.linalg.norm(weights[n] - value) / np.linalg.norm(value)) for n, value in reference.items())


def main() -> None:
    exact_by, dtype, num_failures = sys.argv[1], sys.argv[2], int(sys.argv[3])
    paddle.set_device("cpu")
    if "helpless" in sys.argv:
        retry.is_out_of_memory = lambda error: False
    plain = paddle.Tensor.backward
    undisturbed, calm = train(exact_by, dtype, 0)
    paddle.Tensor.backward = plain
    in_ones, _ = train(exact_by, dtype, 0, cut=1)
    paddle.Tensor.backward = plain
    disturbed, facts = train(exact_by, dtype, num_failures)
    facts["evaluated"] = float(np.abs(np.array(facts.pop("evaluations")) / np.array(calm["evaluations"]) - 1).max())
    facts["error"], facts["spread"] = difference(disturbed, undisturbed), difference(in_ones, undisturbed)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
