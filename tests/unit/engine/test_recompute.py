"""Activations computed twice: the same gradient from less memory, and no trace on the layers."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from pipelines.engine.batch_norm import train_with_frozen_statistics
from pipelines.engine.memory import held_bytes, release_cached
from pipelines.engine.recompute import backward, recomputing
from tests.factories import ToyNetwork

Gradients = dict[str, np.ndarray]


def images(size: int = 64) -> paddle.Tensor:
    return paddle.to_tensor(np.random.default_rng(0).random((2, 3, size, size)))


def network(**options: float) -> ToyNetwork:
    paddle.seed(5)
    made = ToyNetwork(**options)
    train_with_frozen_statistics(made.to(dtype="float64"))
    return made


def gradients(made: ToyNetwork, layers: list[paddle.nn.Layer]) -> tuple[Gradients, int]:
    """Of the sum of squares of the output; and what the forward left for the backward, bytes."""
    paddle.seed(9)
    pixels, before = images(), held_bytes()
    with recomputing(layers):
        loss = made(pixels).square().sum()
    kept = held_bytes() - before
    backward(loss)
    found = {name: parameter.grad.numpy().copy() for name, parameter in made.named_parameters() if parameter.trainable}
    for parameter in made.parameters():
        parameter.clear_gradient(False)
    return found, kept


class Deep(paddle.nn.Layer):
    """Four blocks of convolution, frozen BatchNorm and dropout, like a backbone's."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = paddle.nn.LayerList([Block(3 if k == 0 else 8) for k in range(4)])

    def forward(self, values: paddle.Tensor) -> paddle.Tensor:
        for block in self.blocks:
            values = block(values)
        return values


class Block(paddle.nn.Layer):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = paddle.nn.Conv2D(channels, 8, 3, padding=1)
        self.norm = paddle.nn.BatchNorm2D(8)
        self.dropout = paddle.nn.Dropout(0.3)

    def forward(self, values: paddle.Tensor) -> paddle.Tensor:
        return self.dropout(paddle.tanh(self.norm(self.convolution(values))))


def deep() -> Deep:
    paddle.seed(5)
    made = Deep()
    train_with_frozen_statistics(made.to(dtype="float64"))
    return made


def test_the_gradient_is_the_same_with_dropout_and_frozen_statistics_and_less_is_kept() -> None:
    """The first block sees images that need no gradient, and its parameters get theirs all the same."""
    made = deep()
    plain, kept_plain = gradients(made, [])
    again, kept = gradients(made, list(made.blocks))
    assert again.keys() == plain.keys() and "blocks.0.convolution.weight" in plain
    for name, value in plain.items():
        np.testing.assert_array_equal(again[name], value, err_msg=name)
    # a block keeps its input alone: of about 5 maps of 8 channels, one
    assert kept < 0.35 * kept_plain


def test_without_a_graph_nothing_changes() -> None:
    made = network(dropout=0.5)
    with paddle.no_grad(), recomputing([made.first, made.last]):
        paddle.seed(1)
        inside = made(images())
    with paddle.no_grad():
        paddle.seed(1)
        np.testing.assert_array_equal(made(images()).numpy(), inside.numpy())


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_failure_leaves_the_layers_as_they_were_and_holds_nothing(where: str) -> None:
    made = deep()
    forward, before = Deep.forward, held_bytes()

    def fail(*arguments: object) -> None:
        raise MemoryError("no room")

    def attempt() -> None:
        with recomputing(list(made.blocks)):
            if where == "forward":
                made.blocks[2].convolution.register_forward_pre_hook(fail)
            output = made(images())
        made.blocks[2].convolution.register_forward_pre_hook(fail)
        backward(output.square().sum())

    with pytest.raises(MemoryError, match="no room"):
        attempt()
    assert Deep.forward is forward and not any("forward" in vars(block) for block in made.blocks)
    for parameter in made.parameters():
        parameter.clear_gradient(False)
    release_cached()
    assert held_bytes() - before < 1 << 12
