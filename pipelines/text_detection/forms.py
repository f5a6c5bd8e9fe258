"""Fused and branch form of re-parameterised blocks, and the exact way from one to the other.

A block of PP-LCNetV3 computes a sum of up to six parallel linear branches, each a convolution with a
BatchNorm, and one of them the identity. With BatchNorm's statistics frozen each branch is one biased
convolution, and so is their sum (Ding et al. 2021, RepVGG, https://arxiv.org/abs/2101.03697). Exported
models hold that one convolution; fine-tuning in this form costs about half the memory of the branches.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import paddle
from paddle import nn

Network = TypeVar("Network", bound=nn.Layer)

_REP_LAYER = "PPLCNetV3LearnableRepLayer"


class FusedRepLayer(nn.Layer):
    """One biased convolution, then the block's learnable affine and activation, as in an exported model."""

    def __init__(self, convolution: nn.Conv2D, lab: nn.Layer, act: nn.Layer) -> None:
        super().__init__()
        self.convolution = convolution
        self.lab = lab
        self.act = act

    def forward(self, features):  # type: ignore[no-untyped-def]  # paddle.jit reads the signature
        return self.act(self.lab(self.convolution(features)))


def fuse(branch: Network) -> Network:
    """A fused copy of a DBNet whose maps equal those of `branch` in evaluation mode, up to rounding (1e-5).

    The sums are taken in float64 and rounded once. In training mode with moving BatchNorm statistics the
    two differ, as a fused block no longer has a BatchNorm.

    Raises:
        ValueError: `branch` is not in branch form.
    """
    if branch.form != "branch":
        raise ValueError(f"fuse needs a network in branch form, but got form {branch.form!r}")
    fused = copy.deepcopy(branch)
    to_fused_layers(fused)
    fused.form = "fused"
    return fused


def rep_layers(network: nn.Layer) -> Iterator[tuple[str, nn.Layer]]:
    """Every re-parameterised layer that is still in branches, with its path."""
    for path, layer in network.named_sublayers():
        if type(layer).__name__ == _REP_LAYER:
            yield path, layer


def to_fused_layers(network: nn.Layer) -> None:
    """Replace every branch layer by the one convolution that computes the same (in place)."""
    for path, layer in list(rep_layers(network)):
        parent, _, attribute = path.rpartition(".")
        act = nn.Identity() if layer.stride == 2 else layer.act
        setattr(_layer_at(network, parent), attribute, FusedRepLayer(_fused_convolution(layer), layer.lab, act))


def drop_idle_parameters(network: nn.Layer) -> None:
    """Remove the activation of stride-2 branch layers: paddlex builds it and never calls it.

    Its parameters would get no gradient, which looks like a fault in every report on gradients.
    """
    for _, layer in rep_layers(network):
        if layer.stride == 2:
            layer.act = nn.Identity()


def _fused_convolution(layer: nn.Layer) -> nn.Conv2D:
    template = _largest_branch(layer).convolution
    convolution = nn.Conv2D(
        template._in_channels,
        template._out_channels,
        template._kernel_size,
        stride=template._stride,
        padding=template._padding,
        groups=template._groups,
    )
    dtype = template.weight.dtype
    convolution.to(dtype=dtype)
    for parameter, value in zip((convolution.weight, convolution.bias), _summed_branches(layer), strict=True):
        parameter.set_value(paddle.to_tensor(value, dtype=dtype))
    return convolution


def _summed_branches(layer: nn.Layer) -> tuple[np.ndarray, np.ndarray]:
    """Kernel (out, in / groups, k, k) and bias (out,) of the sum of a layer's branches, float64."""
    largest = _largest_branch(layer)
    branches = [*layer.conv_symmetric]
    if layer.conv_small_symmetric is not None:
        branches.append(layer.conv_small_symmetric)
    size = largest.convolution._kernel_size[0]
    folded = [_folded(_as_size(b.convolution.weight.numpy(), size), b.normalization) for b in branches]
    if layer.identity is not None:
        kernel = _identity_kernel(largest.convolution.weight.shape)
        folded.append(_folded(kernel, layer.identity))
    weight = sum(kernel for kernel, _ in folded)
    bias = sum(shift for _, shift in folded)
    return np.asarray(weight), np.asarray(bias)


def _folded(kernel: np.ndarray, norm: nn.BatchNorm2D) -> tuple[np.ndarray, np.ndarray]:
    """A convolution followed by BatchNorm, as one biased convolution, float64."""
    gamma, beta, mean, variance = (
        tensor.numpy().astype(np.float64) for tensor in (norm.weight, norm.bias, norm._mean, norm._variance)
    )
    factor = gamma / np.sqrt(variance + norm._epsilon)
    return kernel.astype(np.float64) * factor[:, None, None, None], beta - mean * factor


def _as_size(kernel: np.ndarray, size: int) -> np.ndarray:
    """A kernel padded with zeros to (size, size) around its centre."""
    margin = (size - kernel.shape[-1]) // 2
    return np.pad(kernel, ((0, 0), (0, 0), (margin, margin), (margin, margin)))


def _identity_kernel(shape: list[int]) -> np.ndarray:
    """The kernel (out, in / groups, k, k) that returns its input; in = out."""
    num_out, num_in_group, size, _ = shape
    kernel = np.zeros(shape, np.float64)
    out = np.arange(num_out)
    kernel[out, out % num_in_group, size // 2, size // 2] = 1.0
    return kernel


def _largest_branch(layer: nn.Layer) -> nn.Layer:
    return layer.conv_symmetric[0]


def _layer_at(network: nn.Layer, path: str) -> nn.Layer:
    for attribute in path.split("."):
        network = getattr(network, attribute)
    return network
