"""The average of the weights: its arithmetic by hand, and that applying it leaves no trace."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from pipelines.engine.ema import ExponentialMovingAverage


def parameter(*values: float, dtype: str = "float64") -> paddle.Tensor:
    return paddle.to_tensor(list(values), dtype=dtype, stop_gradient=False)


def set_to(target: paddle.Tensor, *values: float) -> None:
    with paddle.no_grad():
        paddle.assign(paddle.to_tensor(list(values), dtype=target.dtype), target)


def averages(ema: ExponentialMovingAverage, target: paddle.Tensor) -> list[float]:
    with ema.applied():
        found: list[float] = target.numpy().tolist()
    return found


def test_warmed_up_average_by_hand() -> None:
    weight = parameter(1.0)
    ema = ExponentialMovingAverage([weight], 0.999)
    set_to(weight, 12.0)
    ema.update()
    # decay 2/11: 1 * 2/11 + 12 * 9/11 = 10
    assert averages(ema, weight) == pytest.approx([10.0])
    set_to(weight, 2.0)
    ema.update()
    # decay 3/12: 10 / 4 + 2 * 3/4 = 4
    assert averages(ema, weight) == pytest.approx([4.0])


def test_decay_never_exceeds_the_one_asked_for() -> None:
    weight = parameter(0.0)
    ema = ExponentialMovingAverage([weight], 0.5)
    ema.num_updates = 1000
    set_to(weight, 8.0)
    ema.update()
    assert averages(ema, weight) == pytest.approx([4.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_after_applying_the_weights_are_bit_for_bit_what_they_were(dtype: str) -> None:
    weight = parameter(0.1, 1 / 3, -7e-30, dtype=dtype)
    ema = ExponentialMovingAverage([weight], 0.9)
    set_to(weight, 0.3, 2 / 3, 1e30)
    ema.update()
    before = weight.numpy().tobytes()
    with ema.applied():
        assert weight.numpy().tobytes() != before
        assert weight.dtype == getattr(paddle, dtype)
    assert weight.numpy().tobytes() == before


def test_weights_come_back_when_the_evaluation_fails() -> None:
    weight = parameter(1.0)
    ema = ExponentialMovingAverage([weight], 0.9)
    set_to(weight, 5.0)
    with pytest.raises(RuntimeError), ema.applied():
        raise RuntimeError("evaluation failed")
    assert weight.numpy().tolist() == [5.0]


def test_a_weight_that_rests_has_itself_as_average_without_a_rounding_error() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    weight = parameter(*values, dtype="float32")
    ema = ExponentialMovingAverage([weight], 0.9)
    for _ in range(50):
        ema.update()
    before = weight.numpy().tobytes()
    with ema.applied():
        assert weight.numpy().tobytes() == before


def test_a_restored_average_goes_on_bit_for_bit() -> None:
    weight = parameter(1.0, 2.0)
    ema = ExponentialMovingAverage([weight], 0.9)
    set_to(weight, 3.0, 7.0)
    ema.update()
    other = ExponentialMovingAverage([weight], 0.9)
    other.restore(ema.state())
    set_to(weight, -1.0, 0.5)
    ema.update()
    other.update()
    assert averages(other, weight) == averages(ema, weight)
    assert other.num_updates == ema.num_updates == 2


def test_a_decay_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1, but got 1"):
        ExponentialMovingAverage([parameter(1.0)], 1.0)
