"""BatchNorm that keeps its statistics: at micro-batches of 2 to 4 images the running ones are the better ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import paddle

_BATCH_NORMS = (
    paddle.nn.BatchNorm,
    paddle.nn.BatchNorm1D,
    paddle.nn.BatchNorm2D,
    paddle.nn.BatchNorm3D,
    paddle.nn.SyncBatchNorm,
)


def train_with_frozen_statistics(network: paddle.nn.Layer) -> int:
    """Put `network` in train mode with every BatchNorm normalising by its running mean and variance.

    Scale and shift stay trainable. Returns the number of BatchNorms.
    """
    network.train()
    norms = batch_norms(network)
    for norm in norms:
        norm.eval()
    return len(norms)


def batch_norms(layer: paddle.nn.Layer) -> list[paddle.nn.Layer]:
    """All BatchNorms of a layer, itself included."""
    return [norm for norm in layer.sublayers(include_self=True) if isinstance(norm, _BATCH_NORMS)]


def running_statistics(norms: Sequence[paddle.nn.Layer]) -> list[paddle.Tensor]:
    """The running means and variances that a forward would change: those of BatchNorms in train mode."""
    return [statistic for norm in norms if norm.training for statistic in (norm._mean, norm._variance)]


@contextmanager
def evaluation_mode(network: paddle.nn.Layer) -> Iterator[None]:
    """Evaluate inside; afterwards every layer is in the mode it had, frozen BatchNorms included."""
    modes = [(layer, layer.training) for layer in network.sublayers(include_self=True)]
    network.eval()
    try:
        yield
    finally:
        for layer, was_training in modes:
            layer.training = was_training


@contextmanager
def statistics_at_rest(layer: paddle.nn.Layer) -> Iterator[None]:
    """Inside, a forward in train mode leaves the running statistics below `layer` as they are."""
    norms = [norm for norm in batch_norms(layer) if norm.training]
    momenta = [norm._momentum for norm in norms]
    for norm in norms:
        norm._momentum = 1.0  # running = running * momentum + batch * (1 - momentum)
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm._momentum = momentum
