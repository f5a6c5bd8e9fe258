"""The buffer adds whole micro-batches, clears after itself, and tells what is not finite."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from pipelines.engine.gradient_buffer import GradientBuffer, all_finite


def parameter(size: int = 2) -> paddle.Tensor:
    return paddle.create_parameter([size], "float64", default_initializer=paddle.nn.initializer.Constant(1.0))


def backward(target: paddle.Tensor, *gradient: float) -> None:
    (target * paddle.to_tensor(list(gradient), dtype="float64")).sum().backward()


def released(buffer: GradientBuffer, target: paddle.Tensor, factor: float = 1.0) -> list[float]:
    buffer.release(factor)
    gradient: list[float] = target.grad.numpy().tolist()
    return gradient


def test_gradients_add_up_and_the_parameters_own_is_cleared_each_time() -> None:
    weight = parameter()
    buffer = GradientBuffer([weight])
    for gradient in ((1.0, 2.0), (10.0, 20.0), (100.0, 200.0)):
        backward(weight, *gradient)
        assert bool(buffer.take())
        assert weight.grad is None
    assert released(buffer, weight, 2.0) == [222.0, 444.0]


def test_norm_is_of_the_sum_over_all_parameters() -> None:
    first, second = parameter(), parameter()
    buffer = GradientBuffer([first, second])
    backward(first, 1.0, 2.0)
    buffer.take()
    backward(first, 0.0, 1.0)
    backward(second, 2.0, 4.0)
    buffer.take()
    # sums (1, 3) and (2, 4)
    assert float(buffer.global_norm()) == pytest.approx(np.sqrt(30.0))


def test_a_parameter_without_gradient_stays_without_one() -> None:
    used, unused = parameter(), parameter()
    buffer = GradientBuffer([used, unused])
    backward(used, 1.0, 1.0)
    buffer.take()
    buffer.release(1.0)
    assert unused.grad is None


def test_an_empty_buffer_has_norm_zero_and_releases_nothing() -> None:
    weight = parameter()
    buffer = GradientBuffer([weight])
    assert bool(buffer.take()) and float(buffer.global_norm()) == 0.0
    buffer.release(1.0)
    assert weight.grad is None


def test_discarded_gradients_leave_no_trace_in_the_sum() -> None:
    weight = parameter()
    buffer = GradientBuffer([weight])
    backward(weight, 1.0, 2.0)
    buffer.take()
    backward(weight, 5.0, 5.0)
    buffer.discard()
    backward(weight, 10.0, 20.0)
    buffer.take()
    assert released(buffer, weight) == [11.0, 22.0]


def test_reset_forgets_sum_and_leftovers() -> None:
    weight = parameter()
    buffer = GradientBuffer([weight])
    backward(weight, 1.0, 2.0)
    buffer.take()
    backward(weight, 3.0, 3.0)
    buffer.reset()
    backward(weight, 7.0, 8.0)
    buffer.take()
    assert released(buffer, weight) == [7.0, 8.0]


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_one_bad_number_is_noticed_in_its_micro_batch_and_in_the_norm(bad: float) -> None:
    weight = parameter()
    buffer = GradientBuffer([weight])
    flags = []
    for gradient in ((1.0, 2.0), (bad, 1.0), (3.0, 4.0)):
        backward(weight, *gradient)
        flags.append(bool(buffer.take()))
    assert flags == [True, False, True]
    assert not np.isfinite(float(buffer.global_norm()))


@pytest.mark.parametrize(
    ("values", "expected"), [([1.0, -1e300], True), ([np.inf, -np.inf], False), ([np.nan, 0.0], False), ([], True)]
)
def test_all_finite_sees_what_would_cancel(values: list[float], expected: bool) -> None:
    assert bool(all_finite([paddle.to_tensor([value], dtype="float64") for value in values])) is expected


def test_sums_over_processes_keep_apart_who_had_no_gradient_anywhere() -> None:
    """Two processes: the other one has no gradient for `first`, and neither has one for `nowhere`."""
    first, second, nowhere, frozen = (parameter() for _ in range(4))
    frozen.stop_gradient = True
    buffer = GradientBuffer([first, second, nowhere, frozen])
    backward(first, 1.0, 2.0)
    backward(second, 1.0, 1.0)
    buffer.take()

    def add_the_other(tensors: list[paddle.Tensor]) -> list[paddle.Tensor]:
        others = [[0.0, 0.0], [10.0, 20.0], [0.0, 0.0], [0.0, 1.0, 0.0]]
        return [ours + paddle.to_tensor(other, dtype=ours.dtype) for ours, other in zip(tensors, others, strict=True)]

    buffer.sum_over(add_the_other)
    buffer.release(1.0)
    assert first.grad.numpy().tolist() == [1.0, 2.0]
    assert second.grad.numpy().tolist() == [11.0, 21.0]
    assert nowhere.grad is None and frozen.grad is None
