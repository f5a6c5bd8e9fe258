"""An accumulated gradient equals the whole batch's, for each way to be exact, however the window is cut.

Run: python -m pytest tests/equivalence/test_toy_tasks.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pipelines.engine.equivalence import Difference, accumulated_gradient, compare, image_weights, whole_batch_gradient
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.records import MicroBatch
from tests.factories import LAYOUTS, LOSSES, ToyTask, blank_samples, split, toy_samples, toy_task, toy_window

FLOAT64_BOUND, FLOAT32_BOUND, CONTROL_BOUND = 1e-9, 1e-4, 1e-2
WEIGHTS_BOUND = 1e-7


def difference(
    task: ToyTask, window: Sequence[MicroBatch], method: str = "exact", against: Sequence[MicroBatch] | None = None
) -> Difference:
    """The gradient of `window` by `method` against the whole batch's of `against` (by default the same window)."""
    return compare(accumulated_gradient(task, window, method)[0], whole_batch_gradient(task, against or window))


@pytest.mark.parametrize(("dtype", "bound"), [("float64", FLOAT64_BOUND), ("float32", FLOAT32_BOUND)])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("exact_by", LOSSES)
def test_accumulated_gradient_is_the_gradient_of_one_real_batch(
    exact_by: str, layout: str, dtype: str, bound: float
) -> None:
    task = toy_task(exact_by, dtype=dtype)
    one_batch = [MicroBatch.of(toy_samples(sum(LAYOUTS[layout])))]
    assert difference(task, toy_window(layout), against=one_batch).max_relative_error < bound


@pytest.mark.parametrize("exact_by", ["labels", "rescale"])
def test_replay_is_exact_for_every_loss(exact_by: str) -> None:
    assert difference(toy_task(exact_by), toy_window("ragged"), "replay").max_relative_error < FLOAT64_BOUND


@pytest.mark.parametrize("exact_by", LOSSES)
def test_shapes_may_differ_within_a_window(exact_by: str) -> None:
    shapes = [(12, 16), (8, 8), (20, 6), (5, 31)]
    window = [batch for i, shape in enumerate(shapes) for batch in split(toy_samples(5, size_hw=shape, seed=i), (2, 3))]
    assert difference(toy_task(exact_by), window).max_relative_error < FLOAT64_BOUND


@pytest.mark.parametrize("exact_by", LOSSES)
def test_a_window_of_blank_images_is_exact_and_finite(exact_by: str) -> None:
    task, samples = toy_task(exact_by), blank_samples(8)
    found = difference(task, split(samples, (2,) * 4), against=[MicroBatch.of(samples)])
    assert found.max_relative_error < FLOAT64_BOUND


@pytest.mark.parametrize("exact_by", LOSSES)
def test_blank_images_among_others_keep_their_weight_of_one(exact_by: str) -> None:
    task = toy_task(exact_by)
    window = split([*toy_samples(4), *blank_samples(12)], (2,) * 8)
    assert difference(task, window).max_relative_error < FLOAT64_BOUND
    np.testing.assert_allclose(image_weights(task, window, "exact"), 1.0, atol=1e-9)
    assert np.abs(np.array(image_weights(task, window, "mean")) - 1.0).max() > CONTROL_BOUND


@pytest.mark.parametrize("exact_by", LOSSES)
def test_a_window_of_one_image_is_exact_by_every_method(exact_by: str) -> None:
    task, window = toy_task(exact_by), split(toy_samples(1), (1,))
    for method in ("exact", "replay", "mean"):
        assert difference(task, window, method).max_relative_error < FLOAT64_BOUND


CONTROLS: dict[str, Callable[[list[MicroBatch]], list[MicroBatch]]] = {
    "a dropped micro-batch": lambda window: window[:-1],
    "a doubled micro-batch": lambda window: [*window, window[0]],
}


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("exact_by", LOSSES)
def test_control_a_wrong_window_is_told_from_the_right_one(exact_by: str, control: str) -> None:
    window = toy_window("16x2")
    assert difference(toy_task(exact_by), CONTROLS[control](window), against=window).relative_error > CONTROL_BOUND


@pytest.mark.parametrize("exact_by", LOSSES)
def test_control_the_mean_of_means_is_not_the_whole_batch(exact_by: str) -> None:
    assert difference(toy_task(exact_by), toy_window("16x2"), "mean").relative_error > CONTROL_BOUND


def weights_after(exact_by: str, windows: list[list[MicroBatch]], method: str) -> dict[str, np.ndarray]:
    """The network's weights after an update a window."""
    task = toy_task(exact_by)
    groups = [ParameterGroup("all", task.network.parameters())]
    schedule = LearningRateSchedule(1e-2, len(windows), warmup_updates=2)
    updater = Updater(task, groups, schedule, method=method, weight_decay=0.01, clip_norm=0.5)
    for window in windows:
        updater.run(window)
    return {name: value.numpy().copy() for name, value in task.network.state_dict().items()}


@pytest.mark.parametrize("exact_by", LOSSES)
def test_weights_after_20_updates_are_those_of_training_on_whole_batches(exact_by: str) -> None:
    batches = [toy_samples(8, seed=seed) for seed in range(20)]
    reference = weights_after(exact_by, [[MicroBatch.of(batch)] for batch in batches], "exact")
    accumulated = weights_after(exact_by, [split(batch, (2, 3, 1, 2)) for batch in batches], "exact")
    by_mean = weights_after(exact_by, [split(batch, (2, 3, 1, 2)) for batch in batches], "mean")
    assert compare(accumulated, reference).max_relative_error < WEIGHTS_BOUND
    assert compare(by_mean, reference).max_relative_error > CONTROL_BOUND
