"""Frozen BatchNorm statistics stay frozen, over evaluation and back; scale and shift stay trainable."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from pipelines.engine.batch_norm import evaluation_mode, train_with_frozen_statistics
from tests.factories import ToyNetwork

IMAGES = paddle.to_tensor(np.random.default_rng(0).normal(3.0, 2.0, (4, 3, 8, 8)).astype("float32"))


def network() -> ToyNetwork:
    paddle.seed(1)
    return ToyNetwork(has_batch_norm=True, dropout=0.5)


def train_once(layer: ToyNetwork) -> None:
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    layer(IMAGES).square().mean().backward()
    optimizer.step()
    optimizer.clear_grad()


def changed(layer: ToyNetwork) -> dict[str, bool]:
    """Whether a training step changes each of BatchNorm's four tensors."""
    names = ("weight", "bias", "_mean", "_variance")
    before = {name: getattr(layer.norm, name).numpy().copy() for name in names}
    train_once(layer)
    return {name: bool((getattr(layer.norm, name).numpy() != before[name]).any()) for name in names}


LEARNS_ONLY = {"weight": True, "bias": True, "_mean": False, "_variance": False}


def test_scale_and_shift_learn_while_mean_and_variance_rest() -> None:
    layer = network()
    assert train_with_frozen_statistics(layer) == 1
    assert changed(layer) == LEARNS_ONLY


def test_statistics_stay_frozen_over_evaluation_and_back() -> None:
    layer = network()
    train_with_frozen_statistics(layer)
    with evaluation_mode(layer):
        assert not any(part.training for part in layer.sublayers(include_self=True))
    assert layer.dropout.training and layer.training and not layer.norm.training
    assert changed(layer) == LEARNS_ONLY


def test_modes_come_back_when_the_evaluation_fails() -> None:
    layer = network()
    train_with_frozen_statistics(layer)
    with pytest.raises(RuntimeError), evaluation_mode(layer):
        raise RuntimeError("evaluation failed")
    assert layer.training and not layer.norm.training


@pytest.mark.filterwarnings("ignore:When training, we now always track")
def test_control_plain_train_mode_moves_the_statistics() -> None:
    layer = network()
    layer.train()
    assert changed(layer) == dict.fromkeys(LEARNS_ONLY, True)


def test_frozen_statistics_normalise_an_image_alone_as_in_a_batch() -> None:
    layer = network()
    train_with_frozen_statistics(layer)
    layer.dropout.eval()
    alone = paddle.concat([layer(IMAGES[i : i + 1]) for i in range(4)])
    np.testing.assert_allclose(alone.numpy(), layer(IMAGES).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [paddle.nn.BatchNorm2D, paddle.nn.SyncBatchNorm])
def test_every_kind_of_batch_norm_is_found(kind: type) -> None:
    assert train_with_frozen_statistics(paddle.nn.Sequential(kind(3), paddle.nn.GroupNorm(1, 3))) == 1
