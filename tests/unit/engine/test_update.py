"""One update: its order, its counts, and what happens when a number is not finite."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import paddle
import pytest

from pipelines.engine.precision import Precision
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater, UpdateReport
from pipelines.errors import DataError, NonFiniteError, ReplayMismatchError, UsageError
from pipelines.records import MicroBatch
from tests.factories import LOSSES, ToyLoss, ToyNetwork, ToyTask, blank_samples, split, toy_samples, toy_task

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class Fp16WithoutCast(Precision):
    """fp16's loss scale and second tries, computing in full precision: a CPU has no fp16."""

    name: str = "fp16"
    casts: ClassVar[int] = 0

    @contextmanager
    def autocast(self) -> Iterator[None]:
        Fp16WithoutCast.casts += 1
        yield
        Fp16WithoutCast.casts -= 1


class Poison:
    """Makes the gradient of chosen forwards (counted from 0) inf or nan, while their statistics stay finite.

    `only_low`: not of those that are computed in full precision.
    """

    def __init__(self, task: ToyTask, value: float = float("nan"), *, forwards: Container[int], only_low: bool = False):
        self.forwards, self.calls, self._only_low = forwards, 0, only_low
        self._value = value
        task.network.register_forward_post_hook(self)

    def __call__(self, layer: paddle.nn.Layer, inputs: Any, output: paddle.Tensor) -> paddle.Tensor:
        is_poisoned = self.calls in self.forwards and (Fp16WithoutCast.casts > 0 or not self._only_low)
        self.calls += 1
        if is_poisoned and not output.stop_gradient:
            output.register_hook(lambda gradient: gradient * self._value)
        return output


def window(seed: int = 0) -> list[MicroBatch]:
    return split(toy_samples(6, seed=seed), (2, 3, 1))


def updater(task: ToyTask, num_updates: int = 10, learning_rate: float = 1e-2, **options: Any) -> Updater:
    group = ParameterGroup("all", task.network.parameters())
    return Updater(task, [group], LearningRateSchedule(learning_rate, num_updates), **options)


def weights(task: ToyTask) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in task.network.state_dict().items()}


def assert_unchanged(task: ToyTask, before: dict[str, np.ndarray]) -> None:
    assert all(np.array_equal(value, before[name]) for name, value in weights(task).items())


class Line(paddle.nn.Layer):
    """Two weights; the loss below is their sum, so each has the gradient 1."""

    def __init__(self) -> None:
        super().__init__()
        start = paddle.nn.initializer.Constant(1.0)
        self.first = self.create_parameter([1], default_initializer=start)
        self.second = self.create_parameter([1], default_initializer=start)

    def forward(self, images: paddle.Tensor) -> paddle.Tensor:
        return images.mean(axis=1, keepdim=True) * 0.0 + self.first + self.second


def line_task(slope: float = 1.0) -> ToyTask:
    loss = ToyLoss(
        "labels",
        lambda logits, mask: {"sum": slope * logits.sum(), "pixels": paddle.ones_like(mask).sum()},
        lambda totals: {"loss": totals["sum"] / totals["pixels"]},
        lambda mask: {"pixels": paddle.ones_like(mask).sum()},
    )
    return ToyTask(loss, Line(), "float64")


def adamw(weight: float, gradients: list[float], rates: list[float], decay: float) -> float:
    """AdamW by hand (Loshchilov and Hutter 2019, algorithm 2), bias-corrected."""
    first, second = 0.0, 0.0
    for step, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        weight -= rate * decay * weight
        first = BETA1 * first + (1 - BETA1) * gradient
        second = BETA2 * second + (1 - BETA2) * gradient**2
        # paddle, like the reference code, adds epsilon to the uncorrected root, scaled alike
        root = np.sqrt(second / (1 - BETA2**step))
        weight -= rate * (first / (1 - BETA1**step)) / (root + EPSILON)
    return weight


def test_three_updates_by_hand_with_schedule_and_decay() -> None:
    task = line_task()
    engine = updater(task, num_updates=15, learning_rate=0.1, weight_decay=0.5)
    reports = [engine.run(window()) for _ in range(3)]
    schedule = LearningRateSchedule(0.1, 15)
    rates = [schedule.at(update) for update in range(3)]
    assert [report.learning_rate for report in reports] == rates
    assert [report.update for report in reports] == [1, 2, 3]
    assert task.network.first.item() == pytest.approx(adamw(1.0, [1.0] * 3, rates, 0.5), rel=1e-9)


def test_a_groups_factor_multiplies_its_learning_rate_and_only_its() -> None:
    task = line_task()
    groups = [ParameterGroup("slow", [task.network.first], 0.1), ParameterGroup("fast", [task.network.second])]
    Updater(task, groups, LearningRateSchedule(0.1, 10)).run(window())
    assert 1.0 - task.network.first.item() == pytest.approx(0.01, rel=1e-6)
    assert 1.0 - task.network.second.item() == pytest.approx(0.1, rel=1e-6)


def test_weight_decay_follows_the_groups_learning_rate() -> None:
    task = line_task(slope=0.0)
    groups = [ParameterGroup("slow", [task.network.first], 0.1), ParameterGroup("fast", [task.network.second])]
    Updater(task, groups, LearningRateSchedule(0.1, 10), weight_decay=0.5).run(window())
    assert task.network.first.item() == pytest.approx(1 - 0.01 * 0.5, rel=1e-12)
    assert task.network.second.item() == pytest.approx(1 - 0.1 * 0.5, rel=1e-12)


def test_a_frozen_group_rests_for_its_updates_without_decay_and_then_learns() -> None:
    task = line_task()
    groups = [
        ParameterGroup("trunk", [task.network.first], frozen_updates=2),
        ParameterGroup("branch", [task.network.second]),
    ]
    engine = Updater(task, groups, LearningRateSchedule(0.1, 20), weight_decay=0.5, ema_decay=0.9)
    trunk, branch = [], []
    for _ in range(4):
        engine.run(window())
        trunk.append(task.network.first.item())
        branch.append(task.network.second.item())
    assert trunk[:2] == [1.0, 1.0] and 1.0 > trunk[2] > trunk[3]
    assert sorted(branch, reverse=True) == branch and branch[0] < 1.0


def test_a_parameter_in_two_groups_is_refused() -> None:
    task = line_task()
    groups = [ParameterGroup("one", task.network.parameters()), ParameterGroup("two", [task.network.first])]
    with pytest.raises(ValueError, match=r"more than one of the groups \['one', 'two'\]"):
        Updater(task, groups, LearningRateSchedule(0.1, 10))


def gradient_after(clip_norm: float | None, slope: float, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float]:
    """Gradient of one weight as the optimizer sees it, and the reported norm; both weights have gradient `slope`."""
    task = line_task(slope)
    engine = updater(task, clip_norm=clip_norm)
    seen: list[float] = []
    monkeypatch.setattr(engine.optimizer, "step", lambda: seen.append(task.network.first.grad.item()))
    report = engine.run(window())
    return seen[0], report.gradient_norm


@pytest.mark.parametrize(
    ("clip_norm", "slope", "expected"),
    [(None, 3.0, 3.0), (100.0, 3.0, 3.0), (1.0, 3.0, 1 / np.sqrt(2)), (1.0, -3.0, -1 / np.sqrt(2)), (1.0, 0.0, 0.0)],
)
def test_clipping_is_by_the_norm_over_all_weights_once_a_window(
    clip_norm: float | None, slope: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradient, norm = gradient_after(clip_norm, slope, monkeypatch)
    assert gradient == pytest.approx(expected, rel=1e-9)
    assert norm == pytest.approx(abs(slope) * np.sqrt(2), rel=1e-9)


@pytest.mark.parametrize("exact_by", LOSSES)
def test_the_loss_scale_is_undone_before_clipping_and_reporting(exact_by: str) -> None:
    plain, scaled = toy_task(exact_by), toy_task(exact_by)
    options = {"clip_norm": 0.01}
    report = updater(plain, **options).run(window())
    scaled_report = updater(scaled, precision=Fp16WithoutCast(), **options).run(window())
    assert scaled_report.loss_scale == 2.0**15
    assert scaled_report.gradient_norm == pytest.approx(report.gradient_norm, rel=1e-12)
    for name, value in weights(plain).items():
        np.testing.assert_allclose(weights(scaled)[name], value, rtol=1e-12)


def test_the_report_tells_of_the_whole_window() -> None:
    task = toy_task("replay")
    report = updater(task).run(window())
    assert (report.samples, report.micro_batches) == (6, 3)
    assert report.shapes == ((2, 12, 16), (3, 12, 16), (1, 12, 16))
    whole = toy_task("replay")
    expected = whole.combine(whole.statistics(MicroBatch.of(toy_samples(6))))["loss"].item()
    assert report.parts["loss"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
@pytest.mark.parametrize("exact_by", LOSSES)
def test_a_bad_gradient_in_full_precision_names_its_images_and_leaves_the_weights(exact_by: str, bad: float) -> None:
    task = toy_task(exact_by)
    engine = updater(task, ema_decay=0.9)
    # replay: the largest micro-batch, the second one, goes last in the first pass and keeps its graph
    Poison(task, bad, forwards={2} if exact_by == "replay" else {1})
    before = weights(task)
    with pytest.raises(NonFiniteError) as caught:
        engine.run(window())
    message = str(caught.value)
    assert "image_0_2.png, image_0_3.png, image_0_4.png;" in message
    assert "image_0_0.png" not in message and "image_0_5.png" not in message
    assert "update 1" in message and "Look at the labels of these images" in message
    assert_unchanged(task, before)
    assert engine.num_updates == 0 and engine.ema is not None and engine.ema.num_updates == 0


def test_a_bad_statistic_names_its_images_although_it_spoils_every_gradient() -> None:
    """With replay a nan in one micro-batch's sums makes lambda nan, and with it all gradients."""
    task = toy_task("replay")
    batches = window()
    mask = batches[1].targets["mask"].astype(np.float64)
    mask[0, 0, 0] = np.nan
    batches[1] = MicroBatch(batches[1].images, {"mask": mask}, batches[1].sources)
    with pytest.raises(NonFiniteError) as caught:
        updater(task).run(batches)
    assert "on image_0_2.png, image_0_3.png, image_0_4.png;" in str(caught.value)


def test_weights_that_are_broken_are_not_blamed_on_an_image() -> None:
    task = toy_task("replay")
    with paddle.no_grad():
        paddle.assign(paddle.full([1], float("nan"), dtype="float64"), task.network.last.bias)
    with pytest.raises(NonFiniteError, match=r"every micro-batch of the window.*weights or the learning rate"):
        updater(task).run(window())


def test_a_long_list_of_suspects_is_cut() -> None:
    task = toy_task("labels")
    Poison(task, forwards={1})
    with pytest.raises(NonFiniteError, match=r"image_0_11.png and 12 more;"):
        updater(task).run(split(toy_samples(26), (4, 20, 2)))


@pytest.mark.parametrize("exact_by", LOSSES)
def test_an_overflow_in_fp16_costs_one_micro_batch_redone_in_float32_and_halves_the_scale(exact_by: str) -> None:
    """One bad micro-batch of three: the update is the one that no overflow would have made."""
    task = toy_task(exact_by)
    engine = updater(task, precision=Fp16WithoutCast(), ema_decay=0.9)
    # replay: the largest goes forward third and backward first, then the first one, whose gradient is poisoned
    poison = Poison(task, float("inf"), forwards={3 if exact_by == "replay" else 1}, only_low=True)
    report = engine.run(window())
    assert (report.update, report.in_full, engine.num_updates) == (1, 1, 1)
    assert poison.calls == (6 if exact_by == "replay" else 4)
    assert (report.loss_scale, engine.loss_scale.value) == (2.0**15, 2.0**14)
    undisturbed = toy_task(exact_by)
    updater(undisturbed).run(window())
    for name, value in weights(undisturbed).items():
        np.testing.assert_allclose(weights(task)[name], value, rtol=1e-10, err_msg=name)


def test_statistics_that_overflow_in_fp16_are_measured_in_float32_before_they_weigh() -> None:
    """Without this lambda would be nan, and with it the gradient of every micro-batch."""
    task = toy_task("replay")

    def overflow(layer: paddle.nn.Layer, inputs: Any, output: paddle.Tensor) -> paddle.Tensor:
        is_first = float(inputs[0].sum()) == first_sum and Fp16WithoutCast.casts > 0
        return output * float("nan") if is_first else output

    first_sum = float((paddle.to_tensor(window()[0].images).astype("float64").transpose([0, 3, 1, 2]) / 255.0).sum())
    task.network.register_forward_post_hook(overflow)
    report = updater(task, precision=Fp16WithoutCast()).run(window())
    undisturbed = toy_task("replay")
    updater(undisturbed).run(window())
    assert report.in_full == 1
    for name, value in weights(undisturbed).items():
        np.testing.assert_allclose(weights(task)[name], value, rtol=1e-10, err_msg=name)


def test_what_overflows_in_float32_too_is_an_error_that_names_its_images() -> None:
    task = toy_task("labels")
    before = weights(task)
    Poison(task, forwards={0, 3})
    with pytest.raises(NonFiniteError, match=r"image_0_0.png, image_0_1.png;"):
        updater(task, precision=Fp16WithoutCast()).run(window())
    assert_unchanged(task, before)


def test_endless_overflow_stops_with_a_reason() -> None:
    task = toy_task("labels")
    engine = updater(task, precision=Fp16WithoutCast())
    Poison(task, forwards=range(10_000), only_low=True)
    for _ in range(24):
        assert engine.run(window()).in_full == 3
    assert engine.loss_scale.value == 1.0
    with pytest.raises(DataError, match="overflow even at loss scale 1, in 10 updates in a row"):
        engine.run(window())


def test_bf16_has_no_scale_and_is_redone_in_float32_all_the_same() -> None:
    task = toy_task("labels")
    Poison(task, forwards={0}, only_low=True)
    engine = updater(task, precision=Fp16WithoutCast(name="bf16"))
    assert engine.run(window()).in_full == 1 and engine.loss_scale.value == 1.0


@pytest.mark.filterwarnings("ignore:When training, we now always track")
def test_a_layer_that_changes_between_the_passes_is_an_error_that_says_why() -> None:
    task = toy_task("replay")
    task.network.register_forward_post_hook(lambda layer, inputs, output: output + np.random.normal())
    before = weights(task)
    with pytest.raises(ReplayMismatchError, match=r"two passes of replay differ by .* train.accumulation to mean"):
        updater(task).run(window())
    assert_unchanged(task, before)


def test_a_loss_that_is_not_of_the_claimed_form_is_refused_with_the_way_out() -> None:
    dice = LOSSES["replay"]
    liar = ToyTask(ToyLoss("rescale", dice.statistics, dice.combine, divisor="positives"), ToyNetwork(), "float64")
    with pytest.raises(UsageError, match=r"not of the form that 'rescale' needs.*set train.accumulation to replay"):
        updater(liar).run(window())
    assert updater(liar, method="replay").run(window()).update == 1


@pytest.mark.parametrize("exact_by", LOSSES)
def test_a_window_of_blank_images_is_an_update_like_any_other(exact_by: str) -> None:
    report = updater(toy_task(exact_by)).run(split(blank_samples(4), (2, 2)))
    assert np.isfinite([report.gradient_norm, *report.parts.values()]).all()


def test_the_schedule_counts_updates_whatever_the_number_of_micro_batches() -> None:
    def rates(sizes: tuple[int, ...]) -> list[float]:
        engine = updater(toy_task("labels"))
        return [engine.run(split(toy_samples(16, seed=i), sizes)).learning_rate for i in range(5)]

    assert rates((1,) * 16) == rates((16,)) == rates((8, 8))


def test_micro_batches_may_change_in_mid_run_and_the_training_does_not() -> None:
    """16 x 1, then 8 x 2, then one of 16: weights as with whole batches throughout."""
    changing, whole = toy_task("replay"), toy_task("replay")
    engine, reference = updater(changing), updater(whole)
    for seed, sizes in enumerate([(1,) * 16, (2,) * 8, (16,), (3, 5, 8)]):
        engine.run(split(toy_samples(16, seed=seed), sizes))
        reference.run(split(toy_samples(16, seed=seed), (16,)))
    for name, value in weights(whole).items():
        np.testing.assert_allclose(weights(changing)[name], value, rtol=1e-9, atol=1e-12)


def test_without_an_average_averaged_is_the_network_itself() -> None:
    task = toy_task("labels")
    engine = updater(task)
    engine.run(window())
    before = weights(task)
    with engine.averaged():
        assert_unchanged(task, before)


def test_an_update_is_one_host_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    """`numpy`, `item`, `tolist`, `bool` and `float` of a tensor each wait for the device."""
    task = toy_task("replay", dtype="float32")
    engine = updater(task, clip_norm=1.0, ema_decay=0.9)
    engine.run(window())
    transfers: list[str] = []
    for name in ("numpy", "item", "tolist", "__bool__", "__float__", "__int__"):
        original = getattr(paddle.Tensor, name)

        def counted(tensor: paddle.Tensor, *arguments: Any, name: str = name, original: Any = original) -> Any:
            transfers.append(name)
            return original(tensor, *arguments)

        monkeypatch.setattr(paddle.Tensor, name, counted)
    report: UpdateReport = engine.run(window())
    assert transfers == ["numpy"], report
