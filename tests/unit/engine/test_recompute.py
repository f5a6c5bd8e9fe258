"""Recomputed layers give the same gradients from less memory, and leave nothing behind, also when they fail."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import paddle
import pytest
from paddle import nn

from pipelines.defect_detection.network import build_network as build_detector
from pipelines.engine.batch_norm import train_with_frozen_statistics
from pipelines.engine.memory import held_bytes, is_out_of_memory, release_cached
from pipelines.engine.recompute import recomputing
from pipelines.text_detection.network import build_network as build_text_network
from pipelines.text_detection.network import normalise
from tests.factories import ToyNetwork, toy_task, toy_window

Forward = Callable[[], paddle.Tensor]


def gradients(network: nn.Layer, forward: Forward, layers: Sequence[nn.Layer]) -> list[np.ndarray | None]:
    """Of every parameter, from the same random state each time."""
    paddle.seed(3)
    with recomputing(layers):
        forward().backward()
    found = [None if p.grad is None else p.grad.numpy().copy() for p in network.parameters()]
    for parameter in network.parameters():
        parameter.clear_gradient(False)
    return found


def largest_error(network: nn.Layer, forward: Forward, layers: Sequence[nn.Layer]) -> float:
    """Of any tensor's gradient, relative to its norm; the same tensors have one."""
    errors = []
    expected, found = gradients(network, forward, []), gradients(network, forward, layers)
    for plain, again in zip(expected, found, strict=True):
        assert (plain is None) == (again is None)
        if plain is not None and again is not None:
            errors.append(np.linalg.norm(plain - again) / max(float(np.linalg.norm(plain)), 1e-30))
    return float(max(errors))


def held_by_graph(forward: Forward, layers: Sequence[nn.Layer]) -> int:
    """Bytes that wait for the backward."""
    gc.collect()
    before = held_bytes()
    with recomputing(layers):
        loss = forward()
    gc.collect()
    held = held_bytes() - before
    del loss
    return held


def text_network(form: Any, dtype: str) -> tuple[nn.Layer, Forward]:
    paddle.seed(1)
    network = build_text_network("PP-OCRv4_mobile", form).to(dtype=dtype)
    train_with_frozen_statistics(network)
    images = np.random.default_rng(0).integers(0, 256, (1, 64, 64, 3), dtype=np.uint8)
    pixels = normalise(paddle.to_tensor(images), dtype)
    return network, lambda: paddle.add_n([single.square().mean() for single in network.forward_maps(pixels)])


def detector(name: str, dtype: str) -> tuple[nn.Layer, Forward]:
    paddle.seed(1)
    network = build_detector(name, ("scratch", "dent")).to(dtype=dtype)
    train_with_frozen_statistics(network)
    images = paddle.to_tensor(np.random.default_rng(0).integers(0, 256, (1, 64, 64, 3), dtype=np.uint8))

    def loss() -> paddle.Tensor:
        dense = network(images)
        return dense.scores.square().mean() + dense.distribution.square().mean()

    return network, loss


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["picodet_lcnet_x1_0", "picodet_s_esnet_legacy", "ppyoloe_plus_s"])
def test_a_detector_gets_the_same_gradients_and_keeps_a_third_of_the_activations(name: str, dtype: str) -> None:
    network, forward = detector(name, dtype)
    assert largest_error(network, forward, network.recomputable) < {"float32": 1e-4, "float64": 1e-12}[dtype]
    assert held_by_graph(forward, network.recomputable) < held_by_graph(forward, []) / 3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["fused", "branch"])
def test_a_text_network_gets_the_same_gradients_and_keeps_a_third_of_the_activations(form: str, dtype: str) -> None:
    network, forward = text_network(form, dtype)
    assert largest_error(network, forward, network.recomputable) < {"float32": 1e-3, "float64": 1e-12}[dtype]
    assert held_by_graph(forward, network.recomputable) < held_by_graph(forward, []) / 3


def toy(**settings: Any) -> tuple[ToyNetwork, Forward]:
    paddle.seed(7)
    network = ToyNetwork(**settings)
    images = paddle.to_tensor(np.random.default_rng(0).normal(0, 1, (2, 3, 32, 32)).astype("float32"))
    return network, lambda: network(images).square().mean()


def test_dropout_draws_the_mask_of_the_first_forward_and_the_stream_goes_on_as_without() -> None:
    network, forward = toy(dropout=0.5)
    after = []
    found = []
    for layers in ([], list(network.children())):
        found.append(gradients(network, forward, layers))
        after.append(paddle.rand([3]).numpy())
    for plain, again in zip(*found, strict=True):
        assert np.array_equal(plain, again)
    assert np.array_equal(*after)
    paddle.seed(4)  # control: another mask gives another gradient
    forward().backward()
    assert not np.array_equal(network.first.weight.grad.numpy(), found[0][0])


@pytest.mark.filterwarnings("ignore:When training")
def test_running_statistics_in_train_mode_move_once() -> None:
    moved = []
    for is_recomputed in (False, True):
        network, forward = toy(has_batch_norm=True)
        gradients(network, forward, list(network.children()) if is_recomputed else [])
        moved.append(network.norm._mean.numpy())
    assert np.array_equal(*moved)
    assert moved[0].any()
    assert network.norm._momentum == 0.9


class Nested(nn.Layer):
    """Lists and dicts in and out, one tensor out twice."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, maps: list[paddle.Tensor], *, scale: float, named: dict[str, paddle.Tensor]) -> Any:
        first = self.linear(maps[0]) * scale
        return [first, first], {"sum": first + maps[1] * named["factor"], "scale": scale}


def test_nested_tensors_and_other_values_pass_and_tensors_in_lists_get_their_gradient() -> None:
    paddle.seed(0)
    layer = Nested()
    ones = paddle.ones([2, 4])

    def run(layers: list[nn.Layer]) -> list[np.ndarray]:
        leaves = [paddle.full([2, 4], value, "float32") for value in (1.0, 2.0, 3.0)]
        for leaf in leaves:
            leaf.stop_gradient = False
        with recomputing(layers):
            (left, right), named = layer([leaves[0], leaves[1]], scale=2.0, named={"factor": leaves[2]})
        assert named["scale"] == 2.0
        (left * ones + right.square() + named["sum"]).sum().backward()
        return [leaf.grad.numpy() for leaf in leaves] + [p.grad.numpy().copy() for p in layer.parameters()]

    expected = run([])
    layer.clear_gradients()
    for plain, again in zip(expected, run([layer]), strict=True):
        np.testing.assert_array_equal(plain, again)
    np.testing.assert_array_equal(expected[1], np.full((2, 4), 3.0))  # d sum / d maps[1] = factor


class Stubborn(nn.Layer):
    """Runs out of memory in its `fails_at`th forward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.num_forwards, self.fails_at = 0, 0

    def forward(self, values: paddle.Tensor) -> paddle.Tensor:
        self.num_forwards += 1
        hidden = self.linear(values)
        if self.num_forwards == self.fails_at:
            raise MemoryError("no")
        return paddle.tanh(hidden)


@pytest.mark.parametrize("fails_at", [1, 2])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_layer_that_fails_in_forward_or_backward_leaves_nothing_behind(which: int, fails_at: int) -> None:
    paddle.seed(0)
    network = nn.Sequential(Stubborn(), Stubborn(), Stubborn())
    values = paddle.ones([1000, 64])
    own_forwards = [layer.forward for layer in network]
    before = gradients(network, lambda: network(values).sum(), [])
    network[which].fails_at = network[which].num_forwards + fails_at
    gc.collect()
    held = held_bytes()
    _fail(network, values)
    assert [layer.forward for layer in network] == own_forwards
    assert held_bytes() - held < 1000  # an activation is 256000 bytes
    after = gradients(network, lambda: network(values).sum(), list(network))
    assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


def _fail(network: nn.Sequential, values: paddle.Tensor) -> None:
    is_known = False
    try:
        with recomputing(list(network)):
            network(values).sum().backward()
    except (MemoryError, OSError) as error:
        is_known = is_out_of_memory(error)
    assert is_known
    for parameter in network.parameters():
        parameter.clear_gradient(False)
    release_cached()


def test_without_a_graph_nothing_is_kept_and_the_outputs_are_the_same() -> None:
    network, forward = toy()
    with paddle.no_grad():
        plain = forward()
        with recomputing(list(network.children())):
            again = forward()
    assert float(plain) == float(again)
    assert again.stop_gradient


def test_the_second_forward_has_the_autocast_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Autocast does nothing on a CPU, so what is asked of it stands for what it does."""
    tracer = paddle.base.framework._dygraph_tracer()
    layer, asked = nn.Linear(4, 4), []
    with recomputing([layer]):
        plain = layer(paddle.ones([2, 4]))
        monkeypatch.setattr(tracer, "_amp_level", paddle.base.core.AmpLevel.O1)
        monkeypatch.setattr(tracer, "_amp_dtype", "float16")
        low = layer(paddle.ones([2, 4]))
        monkeypatch.undo()
    monkeypatch.setattr(paddle.amp, "auto_cast", lambda **setting: asked.append(setting) or nullcontext())
    plain.sum().backward()
    low.sum().backward()
    assert asked[0] == {"enable": False}
    assert (asked[1]["level"], asked[1]["dtype"]) == ("O1", "float16")


def test_the_statistics_of_a_task_are_those_without() -> None:
    task = toy_task("replay")
    micro_batch = toy_window("short last window")[0]
    plain = task.statistics(micro_batch)
    with recomputing(task.recomputable):
        again = task.statistics(micro_batch)
    assert {name: float(value) for name, value in plain.items()} == {n: float(v) for n, v in again.items()}
