"""Activations computed twice instead of kept: a layer keeps its inputs, and its backward runs its forward once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import paddle
from paddle.distributed.fleet.recompute.recompute import RecomputeFunction

from pipelines.engine.memory import is_out_of_memory

_PRESERVE_RANDOM_STATE = True
_failures: list[str] = []


@contextmanager
def recomputing(layers: Sequence[paddle.nn.Layer]) -> Iterator[None]:
    """Inside, a forward of any of `layers` keeps nothing but its inputs; its gradient is the same.

    Random state and mixed precision are those of the first forward. Without a graph nothing changes. The backward, with
    `backward` of this module, may come after the block. A BatchNorm in train mode would move its running statistics
    twice: freeze them.

    Args:
        layers: none inside another, each from tensors to a tensor.
    """
    for layer in layers:
        layer.forward = _twice(layer.forward)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward  # the class's own shows again


def backward(loss: paddle.Tensor) -> None:
    """`loss.backward()`, for graphs with recomputed layers too.

    Raises:
        MemoryError: it ran out, in a recomputed layer or anywhere else; gradients written so far are of no use.
    """
    _failures.clear()
    loss.backward()
    if _failures:
        raise MemoryError(_failures.pop())


class _Recomputed(RecomputeFunction):
    """Paddle's recomputation, but no exception leaves a backward.

    Paddle's C++ wraps one and never frees it, and with it all tensors of the frames it passed (3.2.2: every failure
    held an image's activations for good). `backward` of this module raises it where nothing is lost. Paddle's other
    way to recompute, by saved-tensor hooks, crashes on a BatchNorm with frozen statistics.
    """

    @staticmethod
    def backward(ctx: Any, *gradients: paddle.Tensor) -> Any:
        try:
            return RecomputeFunction.backward(ctx, *gradients)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            _failures.append(str(error))
        # of the right shapes and without an allocation; no gradient of this backward will be used
        return tuple(tensor.detach() for tensor in ctx.saved_tensor())


def _twice(forward: Callable[..., Any]) -> Callable[..., Any]:
    def run(*inputs: paddle.Tensor) -> Any:
        if not paddle.is_grad_enabled():
            return forward(*inputs)
        no_offload: list[int] = []
        return _Recomputed.apply(
            forward, _PRESERVE_RANDOM_STATE, no_offload, _nothing, _nothing, *_differentiable(inputs)
        )

    return run


def _nothing() -> None:
    """Further state to put back."""


def _differentiable(inputs: tuple[paddle.Tensor, ...]) -> tuple[paddle.Tensor, ...]:
    """The inputs, at least one of which asks for a gradient: otherwise the layer's parameters would get none."""
    if not all(value.stop_gradient for value in inputs):
        return inputs
    return tuple(_asking(value) for value in inputs)


def _asking(value: paddle.Tensor) -> paddle.Tensor:
    asking = value.detach()
    asking.stop_gradient = not paddle.is_floating_point(value)
    return asking
