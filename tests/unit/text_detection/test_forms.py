"""Fusing the branches changes no map: in float64 to rounding, in float32 to 1e-5.

pytest tests/unit/text_detection/test_forms.py
"""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from pipelines.text_detection.forms import FusedRepLayer, fuse, rep_layers
from pipelines.text_detection.network import DBNet, build_network, normalise


@pytest.fixture
def branch() -> DBNet:
    """Random weights with statistics that no initialisation has; small scales keep activations near 10."""
    paddle.seed(3)
    rng = np.random.default_rng(3)
    network = build_network("PP-OCRv4_mobile", "branch")
    network.eval()
    for layer in network.sublayers():
        if isinstance(layer, paddle.nn.BatchNorm2D):
            size = layer.weight.shape
            for tensor, values in (
                (layer.weight, rng.uniform(0.1, 0.5, size)),
                (layer.bias, rng.normal(0.0, 0.3, size)),
                (layer._mean, rng.normal(0.0, 0.3, size)),
                (layer._variance, rng.uniform(0.5, 2.0, size)),
            ):
                tensor.set_value(paddle.to_tensor(values.astype(np.float32)))
    return network


def _max_difference(one: DBNet, other: DBNet, size_hw: tuple[int, int], dtype: str = "float32") -> float:
    pixels = np.random.default_rng(sum(size_hw)).integers(0, 256, (2, *size_hw, 3), dtype=np.uint8)
    images = normalise(paddle.to_tensor(pixels), dtype)
    with paddle.no_grad():
        pairs = zip(one.forward_maps(images), other.forward_maps(images), strict=True)
        return max(float(np.abs(first.numpy() - second.numpy()).max()) for first, second in pairs)


@pytest.mark.parametrize("size_hw", [(32, 32), (64, 96), (160, 32)])
def test_fused_maps_equal_the_branches_maps(branch: DBNet, size_hw: tuple[int, int]) -> None:
    assert _max_difference(branch, fuse(branch), size_hw) <= 1e-5


def test_in_double_precision_the_two_forms_agree_to_rounding(branch: DBNet) -> None:
    branch.to(dtype="float64")
    assert _max_difference(branch, fuse(branch), (64, 96), "float64") <= 1e-12


def test_a_fused_network_without_the_identity_branches_is_seen_to_differ(branch: DBNet) -> None:
    fused = fuse(branch)
    for _, layer in rep_layers(branch):
        if layer.identity is not None:
            layer.identity.weight.set_value(paddle.zeros_like(layer.identity.weight))
    assert _max_difference(branch, fused, (64, 96)) > 1e-3


def test_fusing_copies_and_leaves_the_branches_as_they_were(branch: DBNet) -> None:
    before = {name: value.numpy().copy() for name, value in branch.state_dict().items()}
    fused = fuse(branch)
    fused.head.conv_final.bias.set_value(paddle.to_tensor([9.0]))
    assert (branch.form, fused.form) == ("branch", "fused")
    assert all(np.array_equal(before[name], value.numpy()) for name, value in branch.state_dict().items())


def test_fused_form_holds_one_biased_convolution_a_block(branch: DBNet) -> None:
    fused = fuse(branch)
    layers = [layer for layer in fused.sublayers() if isinstance(layer, FusedRepLayer)]
    assert len(layers) == 28  # 14 blocks, a depthwise and a pointwise layer each
    assert list(rep_layers(fused)) == []
    assert all(layer.convolution.bias is not None for layer in layers)
    assert set(fused.state_dict()) == set(build_network("PP-OCRv4_mobile", "fused").state_dict())


def test_a_fused_network_can_not_be_fused_again(branch: DBNet) -> None:
    with pytest.raises(ValueError, match="branch form"):
        fuse(fuse(branch))
