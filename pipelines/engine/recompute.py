"""Less memory for more time: chosen layers compute their activations again in the backward.

Activation checkpointing ([Chen et al. 2016](https://arxiv.org/abs/1604.06174)): such a layer keeps its inputs for the
backward and nothing else; when its gradient is asked for, its forward runs once more.

Paddle has its own, `paddle.distributed.fleet.utils.recompute`, in two kinds. In paddle 3.2.2 the one by hooks on what
the graph saves crashes the process in the backward of a BatchNorm. The re-entrant one gives no gradient to a layer
whose inputs need none or come in lists, moves a BatchNorm's running statistics twice, and when its backward fails (an
allocation!) keeps that layer's inputs and gradients for ever. So here is a smaller one that does not.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import paddle

from pipelines.engine.batch_norm import statistics_at_rest


@contextmanager
def recomputing(layers: Sequence[paddle.nn.Layer]) -> Iterator[None]:
    """Inside, the forward of each layer keeps only its inputs; the one backward may run inside or after.

    The second forward starts from paddle's random state and the autocast setting of the first and leaves the running
    statistics of BatchNorms alone. Without a graph nothing changes. However the block ends, each layer's own forward
    is back. What fails in a backward comes out as paddle hands it on, an OSError that holds the first error's text.

    Args:
        layers: none of them inside another. Inputs and outputs may be floating tensors or any nesting of them in
            lists, tuples and dicts, beside other values; inputs need not require a gradient (images do not).
    """
    before = [(layer, vars(layer).get("forward")) for layer in layers]
    for layer in layers:
        vars(layer)["forward"] = _recomputed(layer, layer.forward)
    try:
        yield
    finally:
        for layer, forward in before:
            if forward is None:
                del vars(layer)["forward"]
            else:
                vars(layer)["forward"] = forward


def _recomputed(layer: paddle.nn.Layer, forward: Callable[..., Any]) -> Callable[..., Any]:
    def run(*positional: Any, **named: Any) -> Any:
        if not paddle.is_grad_enabled():
            return forward(*positional, **named)
        tensors, arguments = _take_tensors([positional, named])
        call = _Call(layer, forward, arguments)
        # not inside PyLayer.forward: if that raises, paddle keeps its arguments for ever
        call.first(tensors)
        # the number asks for a gradient where no input does, so that the layer's parameters get theirs
        asks = paddle.zeros([])
        asks.stop_gradient = False
        return call.rebuilt(_Recompute.apply(call, asks, *tensors))

    return run


class _Call:
    """One call of a layer, to be run twice: with flat tensors in and flat tensors out, as paddle's PyLayer has them."""

    def __init__(self, layer: paddle.nn.Layer, forward: Callable[..., Any], arguments: Any):
        self._layer, self._forward, self._arguments = layer, forward, arguments
        self._random_state = paddle.get_rng_state()
        self._autocast = _autocast_as_now()
        self._nesting: Any = None
        self.inputs: list[paddle.Tensor] = []
        self.outputs: tuple[paddle.Tensor, ...] = ()

    def first(self, tensors: Sequence[paddle.Tensor]) -> None:
        """Compute the outputs without graph; the inputs are kept."""
        self.inputs = [_detached(tensor) for tensor in tensors]
        with paddle.no_grad():
            flat, self._nesting = _take_tensors([self._run(tensors)])
            # an output that is an input (an Identity's) would count as written over in place
            own = {id(tensor) for tensor in tensors}
            self.outputs = tuple(tensor.clone() if id(tensor) in own else tensor for tensor in flat)

    def again(self) -> tuple[list[paddle.Tensor], list[paddle.Tensor]]:
        """The inputs, given up, and the outputs with the graph in between."""
        inputs, self.inputs = self.inputs, []
        random_state = paddle.get_rng_state()
        paddle.set_rng_state(self._random_state)
        try:
            with paddle.enable_grad(), self._autocast(), statistics_at_rest(self._layer):
                return inputs, _take_tensors([self._run(inputs)])[0]
        finally:
            paddle.set_rng_state(random_state)

    def rebuilt(self, outputs: paddle.Tensor | Sequence[paddle.Tensor]) -> Any:
        """The layer's outputs in their own nesting."""
        return _put_tensors(self._nesting, [outputs] if paddle.is_tensor(outputs) else outputs)[0]

    def _run(self, tensors: Sequence[paddle.Tensor]) -> Any:
        positional, named = _put_tensors(self._arguments, tensors)
        return self._forward(*positional, **named)


class _Recompute(paddle.autograd.PyLayer):
    """The edge in the graph that stands for a whole layer."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *_: paddle.Tensor) -> tuple[paddle.Tensor, ...]:
        ctx.call = call
        outputs, call.outputs = call.outputs, ()
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: paddle.Tensor) -> tuple[paddle.Tensor | None, ...]:
        try:
            inputs, outputs = ctx.call.again()
            wanted = [k for k, output in enumerate(outputs) if not output.stop_gradient]
            if wanted:
                paddle.autograd.backward([outputs[k] for k in wanted], [gradients[k] for k in wanted])
            return (None, *(tensor.grad for tensor in inputs))
        except BaseException as error:
            # paddle frees neither the arguments nor the traceback of a backward that raises: leave them nothing to hold
            for gradient in gradients:
                gradient._clear_data()
            traceback.clear_frames(error.__traceback__)
            raise


@dataclass(frozen=True)
class _Place:
    """Where the tensor of this index was taken from; a tensor that appears twice is one tensor with two places."""

    index: int


def _take_tensors(nested: Any) -> tuple[list[paddle.Tensor], Any]:
    """The tensors of a nesting, each once, and the nesting with places instead of them."""
    flat = paddle.utils.flatten(nested)
    tensors = list({id(part): part for part in flat if paddle.is_tensor(part)}.values())
    index_of = {id(tensor): k for k, tensor in enumerate(tensors)}
    places = [_Place(index_of[id(part)]) if paddle.is_tensor(part) else part for part in flat]
    return tensors, paddle.utils.pack_sequence_as(nested, places)


def _put_tensors(nested: Any, tensors: Sequence[paddle.Tensor]) -> Any:
    """The nesting with these tensors in its places."""
    flat = paddle.utils.flatten(nested)
    filled = [tensors[part.index] if isinstance(part, _Place) else part for part in flat]
    return paddle.utils.pack_sequence_as(nested, filled)


def _detached(tensor: paddle.Tensor) -> paddle.Tensor:
    """The same memory as a leaf of a graph of its own."""
    leaf: paddle.Tensor = tensor.detach()
    leaf.stop_gradient = tensor.stop_gradient
    return leaf


def _autocast_as_now() -> Callable[[], AbstractContextManager[None]]:
    """What enters the present autocast setting again."""
    tracer = paddle.base.framework._dygraph_tracer()
    level, dtype = tracer._amp_level, tracer._amp_dtype
    if level == paddle.base.core.AmpLevel.O0:
        return lambda: paddle.amp.auto_cast(enable=False)
    white, black = tracer._get_amp_op_list()
    return lambda: paddle.amp.auto_cast(custom_white_list=white, custom_black_list=black, level=level.name, dtype=dtype)
