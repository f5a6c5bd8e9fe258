"""What accumulate does besides adding: methods and refusals, replayed randomness, failures in the middle."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest

from pipelines.engine.accumulate import accumulate, resolve_method
from pipelines.engine.equivalence import accumulated_gradient, compare, whole_batch_gradient
from pipelines.engine.gradient_buffer import GradientBuffer
from pipelines.engine.totals import derivative
from pipelines.errors import UsageError
from pipelines.records import MicroBatch
from tests.factories import LOSSES, ToyLoss, ToyNetwork, ToyTask, split, toy_samples, toy_task


def window() -> list[MicroBatch]:
    return split(toy_samples(6), (2, 3, 1))


def buffer_of(task: ToyTask) -> GradientBuffer:
    return GradientBuffer(task.network.parameters())


class Shift(paddle.nn.Layer):
    """One weight, added to every pixel: the gradient of a sum over pixels is their number."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(0.0))

    def forward(self, images: paddle.Tensor) -> paddle.Tensor:
        return images.mean(axis=1, keepdim=True) * 0.0 + self.shift


def counted_mean(logits: paddle.Tensor, mask: paddle.Tensor) -> dict[str, paddle.Tensor]:
    return {"sum": logits.sum(), "pixels": paddle.ones_like(mask).sum()}


def pixel_count(mask: paddle.Tensor) -> dict[str, paddle.Tensor]:
    return {"pixels": paddle.ones_like(mask).sum()}


@pytest.mark.parametrize("sizes", [(4,), (2, 2), (1, 3), (1, 1, 1, 1)])
@pytest.mark.parametrize("method", ["labels", "replay", "mean"])
def test_a_constant_gradient_of_one_stays_one_for_any_number_of_micro_batches(
    sizes: tuple[int, ...], method: str
) -> None:
    loss = ToyLoss("labels", counted_mean, lambda totals: {"loss": totals["sum"] / totals["pixels"]}, pixel_count)
    task = ToyTask(loss, Shift(), "float64")
    gradient, _ = accumulated_gradient(task, split(toy_samples(4), sizes), method)
    assert gradient["shift"].item() == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("exact_by", LOSSES)
def test_exact_takes_the_cheapest_exact_method_of_the_task(exact_by: str) -> None:
    task = toy_task(exact_by)
    assert resolve_method(task, "exact") == exact_by
    assert resolve_method(task, "replay") == "replay"
    assert resolve_method(task, "mean") == "mean"


def test_a_method_that_is_not_exact_for_the_loss_is_refused() -> None:
    with pytest.raises(UsageError, match="'labels' is not exact for this loss, which needs 'replay'; use 'exact'"):
        accumulate(toy_task("replay"), window(), "labels", GradientBuffer([]))


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="exact or one of labels, rescale, replay, mean, but got 'sum'"):
        resolve_method(toy_task("replay"), "sum")


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one micro-batch"):
        accumulate(toy_task("replay"), [], "exact", GradientBuffer([]))


def test_lambda_by_hand() -> None:
    """Dice 1 - 2 I / (A + P) at I = 3, A = 4, P = 6: dI = -2/10, dA = 6/100; eps is 1e-6."""
    totals = {name: paddle.to_tensor(value, dtype="float64") for name, value in
              {"overlap": 3.0, "area": 4.0, "positives": 6.0}.items()}  # fmt: skip
    weights = derivative(toy_task("replay"), totals)
    assert float(weights["overlap"]) == pytest.approx(-0.2, rel=1e-6)
    assert float(weights["area"]) == pytest.approx(0.06, rel=1e-6)


def test_totals_are_of_the_window_and_hold_no_graph() -> None:
    task = toy_task("replay")
    accumulated = accumulate(task, window(), "exact", buffer_of(task))
    assert float(accumulated.totals["positives"]) == sum(batch.targets["mask"].sum() for batch in window())
    assert all(total.stop_gradient for total in accumulated.totals.values())


def test_dropout_is_replayed_exactly() -> None:
    """The gradient is that of the very masks whose statistics gave lambda, and the random stream moves on once."""
    task = toy_task("replay", dropout=0.5)
    paddle.seed(3)
    replayed, accumulated = accumulated_gradient(task, window(), "replay")
    after_replay = paddle.rand([1]).item()
    assert float(accumulated.mismatch) == 0.0
    # the largest micro-batch, the second one, goes last
    first, second, third = window()
    paddle.seed(3)
    reference = whole_batch_gradient(task, [first, third, second])
    assert compare(replayed, reference).max_relative_error < 1e-9
    assert paddle.rand([1]).item() == after_replay
    paddle.seed(4)
    assert compare(whole_batch_gradient(task, window()), reference).relative_error > 1e-2


def test_a_layer_that_changes_between_forwards_shows_in_the_mismatch() -> None:
    task = toy_task("replay")
    task.network.register_forward_post_hook(lambda layer, inputs, output: output + np.random.normal())
    accumulated = accumulate(task, window(), "replay", buffer_of(task))
    assert float(accumulated.mismatch) > 1e-3


@pytest.mark.parametrize("claimed", ["labels", "rescale"])
def test_a_loss_that_is_not_of_the_claimed_form_shows_in_the_mismatch(claimed: str) -> None:
    """Dice under a claim it can't keep; every loss that keeps its claim is at rounding."""
    dice = LOSSES["replay"]
    divisor = "positives" if claimed == "rescale" else ""
    liar = ToyTask(
        ToyLoss(claimed, dice.statistics, dice.combine, lambda mask: {"positives": mask.sum()}, divisor),  # type: ignore[arg-type]
        ToyNetwork(),
        "float64",
    )
    assert float(accumulate(liar, window(), "exact", buffer_of(liar)).mismatch) > 1e-2
    honest = toy_task(claimed)
    assert float(accumulate(honest, window(), "exact", buffer_of(honest)).mismatch) < 1e-12


def test_a_backward_that_fails_leaves_nothing_half_added(monkeypatch: pytest.MonkeyPatch) -> None:
    task = toy_task("labels")
    buffer = buffer_of(task)
    original, calls = paddle.Tensor.backward, []

    def fail_half_way(tensor: paddle.Tensor, *arguments: Any) -> None:
        original(tensor, *arguments)
        calls.append(tensor)
        if len(calls) == 2:
            raise KeyboardInterrupt("with gradients half written")

    monkeypatch.setattr(paddle.Tensor, "backward", fail_half_way)
    with pytest.raises(KeyboardInterrupt):
        accumulate(task, window(), "exact", buffer)
    assert all(parameter.grad is None for parameter in task.network.parameters())
    monkeypatch.undo()
    # what is in the sum is the first micro-batch, whole
    buffer.release(1.0)
    found = {name: p.grad.numpy().copy() for name, p in task.network.named_parameters()}
    first_only = buffer_of(task)
    weights = accumulate(task, window(), "exact", first_only).pieces[0].weights
    first_only.reset()
    statistics = task.statistics(window()[0])
    paddle.add_n([weights[name] * value for name, value in statistics.items() if not value.stop_gradient]).backward()
    for name, parameter in task.network.named_parameters():
        np.testing.assert_allclose(found[name], parameter.grad.numpy(), rtol=1e-12, err_msg=name)


def test_a_frozen_network_is_no_error() -> None:
    task = toy_task("replay")
    for parameter in task.network.parameters():
        parameter.stop_gradient = True
    buffer = buffer_of(task)
    accumulate(task, window(), "exact", buffer)
    assert float(buffer.global_norm()) == 0.0


@pytest.mark.parametrize("exact_by", LOSSES)
def test_everything_stays_float64_when_the_network_is(exact_by: str) -> None:
    task = toy_task(exact_by)
    buffer = buffer_of(task)
    accumulated = accumulate(task, window(), "exact", buffer)
    assert {total.dtype for total in accumulated.totals.values()} == {paddle.float64}
    assert {weight.dtype for weight in accumulated.pieces[0].weights.values()} == {paddle.float64}
    assert buffer.global_norm().dtype == paddle.float64


def test_a_loss_scale_multiplies_the_gradient_and_nothing_else() -> None:
    task = toy_task("replay")
    plain, scaled = buffer_of(task), buffer_of(task)
    totals = accumulate(task, window(), "exact", plain).totals
    scaled_totals = accumulate(task, window(), "exact", scaled, loss_scale=1024.0).totals
    assert float(scaled.global_norm()) == pytest.approx(1024.0 * float(plain.global_norm()), rel=1e-12)
    assert {name: float(value) for name, value in totals.items()} == {
        name: float(value) for name, value in scaled_totals.items()
    }
