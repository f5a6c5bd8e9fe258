"""Interpolation with the starting weights: by hand, and undone bit for bit.

Run: pytest tests/unit/engine/test_blend.py
"""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from pipelines.engine.blend import Blend


@pytest.fixture
def parameter() -> paddle.Tensor:
    parameter = paddle.create_parameter([2], "float32")
    parameter.set_value(np.array([1.0, -2.0], np.float32))
    return parameter


@pytest.mark.parametrize(("share", "expected"), [(0.25, [2.0, -1.0]), (0.5, [3.0, 0.0]), (1.0, [5.0, 2.0])])
def test_a_share_of_the_way_is_taken(parameter: paddle.Tensor, share: float, expected: list[float]) -> None:
    blend = Blend([parameter])
    parameter.set_value(np.array([5.0, 2.0], np.float32))
    with blend.applied(share):
        np.testing.assert_allclose(parameter.numpy(), expected)


def test_the_trained_weights_come_back_bit_for_bit_even_after_an_error(parameter: paddle.Tensor) -> None:
    blend = Blend([parameter])
    trained = np.array([0.1, 0.3], np.float32)
    parameter.set_value(trained)
    with pytest.raises(RuntimeError, match="inside"), blend.applied(0.3):
        raise RuntimeError("inside")
    np.testing.assert_array_equal(parameter.numpy(), trained)
