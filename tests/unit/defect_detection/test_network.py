"""Building a detector: by name or file, the same whatever was built before, colours as the weights know them.

pytest tests/unit/defect_detection/test_network.py
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import paddle
import pytest

from pipelines.defect_detection.network import NETWORKS as FOLDER
from pipelines.defect_detection.network import PARTS, build_network, network_file, parameter_groups
from pipelines.errors import UsageError
from tests.detectors import blotches
from tests.unit.defect_detection.networks import CLASSES, NETWORKS, SIZE_HW, network_of

Structure = dict[str, tuple[int, ...]]


def structure_of(name: str, num_classes: int = 6) -> Structure:
    network = build_network(name, CLASSES[:num_classes])
    return {key: tuple(value.shape) for key, value in network.state_dict().items()}


def paddle_names_of(name: str) -> list[str]:
    """Without those of constants, which no weights file holds."""
    names = [tensor.name for tensor in build_network(name, CLASSES).state_dict().values()]
    return [name for name in names if not name.startswith("eager_tmp")]


def test_a_network_is_the_same_whatever_was_built_before_it() -> None:
    """ppdet keeps one global configuration: class counts, widths and default lists would leak from build to build."""
    first = {name: structure_of(name) for name in NETWORKS}
    again = {name: structure_of(name) for name in reversed(NETWORKS)}
    assert first == again
    fewer = structure_of("ppyoloe_plus_s", num_classes=2)
    assert fewer["head.pred_cls.0.bias"] == (2,)
    assert structure_of("ppyoloe_plus_s") == first["ppyoloe_plus_s"]
    assert paddle_names_of("picodet_lcnet_x1_0_legacy") == paddle_names_of("picodet_lcnet_x1_0_legacy")


def test_control_ppdets_own_neck_grows_from_build_to_build() -> None:
    """It appends to the default list of its own constructor, so the files here give it a list of their own."""
    from ppdet.modeling.necks.csp_pan import CSPPAN

    first, second = (CSPPAN([8, 8, 8], out_channels=8, num_features=4).spatial_scales for _ in range(2))
    assert first is second and len(second) >= 5  # four features have four scales
    scales = [0.125, 0.0625, 0.03125]
    assert len(CSPPAN([8, 8, 8], out_channels=8, num_features=4, spatial_scales=scales).spatial_scales) == 4


def test_building_leaves_nothing_in_ppdets_global_configuration() -> None:
    build_network("picodet_lcnet_x1_0", CLASSES)
    from ppdet.core import workspace

    assert "num_classes" not in workspace.global_config
    before = {name: dict(entry) for name, entry in workspace.global_config.items() if isinstance(entry, dict)}
    build_network("ppyoloe_plus_s", CLASSES)
    assert "width_mult" not in workspace.global_config
    assert {name: dict(entry) for name, entry in workspace.global_config.items() if isinstance(entry, dict)} == before


@pytest.mark.parametrize("name", NETWORKS)
def test_every_trainable_parameter_is_in_one_group_and_gets_a_gradient_or_is_of_no_use(name: str) -> None:
    network = network_of(name)
    groups = parameter_groups(network)
    # the legacy head's last convolutions give classes and distances at once
    assert tuple(groups) == (PARTS if network.kind == "PicoHead" else (*PARTS, "classes")) and all(groups.values())
    grouped = [id(parameter) for group in groups.values() for parameter in group]
    trainable = {id(p): key for key, p in network.named_parameters() if not p.stop_gradient}
    assert len(grouped) == len(set(grouped)) and set(grouped) <= trainable.keys()
    left_out = {key for identity, key in trainable.items() if identity not in set(grouped)}
    assert all(key.endswith(("._mean", "._variance")) for key in left_out)
    dense = network(paddle.to_tensor(blotches(0, SIZE_HW)[None]))
    (dense.scores.sum() + dense.distribution.square().sum()).backward()
    unused = [key for key, p in network.named_parameters() if id(p) in set(grouped) and p.grad is None]
    network.clear_gradients()
    assert all(key.startswith("head.p") and key.endswith(".scale_reg") for key in unused)


def test_images_are_normalised_as_red_green_blue_by_imagenet() -> None:
    pixel = paddle.to_tensor(np.array([[[[255, 0, 51]]]], np.uint8))  # blue, green, red
    by_hand = [(0.2 - 0.485) / 0.229, (0.0 - 0.456) / 0.224, (1.0 - 0.406) / 0.225]
    for name in NETWORKS[:2]:
        np.testing.assert_allclose(network_of(name).normalise(pixel).numpy().reshape(3), by_hand, rtol=1e-5)


def test_pp_yoloe_plus_sees_plain_0_to_1_images() -> None:
    pixel = paddle.to_tensor(np.array([[[[255, 0, 51]]]], np.uint8))
    network = network_of("ppyoloe_plus_s")
    np.testing.assert_allclose(network.normalise(pixel).numpy().reshape(3), [0.2, 0.0, 1.0], rtol=1e-6)


def test_a_network_in_float64_computes_in_float64() -> None:
    network = build_network("picodet_lcnet_x1_0", CLASSES)
    network.to(dtype="float64")
    network.eval()
    with paddle.no_grad():
        dense = network(paddle.to_tensor(blotches(0, (64, 64))[None]))
    assert {dense.scores.dtype, dense.boxes_px.dtype, dense.points_px.dtype} == {paddle.float64}


def test_an_unknown_network_names_the_choices() -> None:
    with pytest.raises(UsageError, match=r"model.network 'picodet_xxl': no such network; expected .*ppyoloe_plus_s"):
        network_file("picodet_xxl")
    with pytest.raises(UsageError, match=r"'mine/absent.yml': no such network"):
        build_network("mine/absent.yml", CLASSES)


def test_a_file_of_ones_own_is_a_network_too(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "picodet_lcnet_x1_0.yml", tmp_path / "mine.yml")
    network = build_network(str(tmp_path / "mine.yml"), CLASSES[:2])
    assert (network.name, network.class_names, network.head.num_classes) == ("mine", ("open", "short"), 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("PicoDet:\n  backbone: LCNet\n", "'architecture'"),
        ("architecture: NoSuchDetector\n", "NoSuchDetector"),
        ("architecture: [PicoDet\n", "can't build it"),
        ("", "can't build it"),
        ("just words\n", "can't build it"),
        ("architecture: !!python/object/apply:os.getcwd []\n", "can't build it: ConstructorError"),
        ("_BASE_: [other.yml]\narchitecture: PicoDet\n", "_BASE_ is not followed"),
    ],
)
def test_a_file_that_ppdet_can_not_build_is_named_with_the_reason(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "broken.yml"
    file.write_text(content)
    with pytest.raises(UsageError) as refusal:
        build_network(str(file), CLASSES)
    assert str(file) in str(refusal.value) and message in str(refusal.value)


def test_a_detector_of_another_family_is_refused_by_its_head(tmp_path: Path) -> None:
    (tmp_path / "gfl.yml").write_text(
        "architecture: GFL\nGFL: {backbone: ResNet, neck: FPN, head: GFLHead}\n"
        "ResNet: {depth: 18, return_idx: [1, 2, 3], num_stages: 4}\nFPN: {out_channel: 32}\n"
        "GFLHead:\n  conv_feat: {name: FCOSFeat, feat_in: 32, feat_out: 32, num_convs: 1}\n"
        "  fpn_stride: [8, 16, 32, 64]\n"
        "  loss_class: {name: QualityFocalLoss}\n  loss_dfl: {name: DistributionFocalLoss}\n"
        "  loss_bbox: {name: GIoULoss}\n"
    )
    with pytest.raises(UsageError, match=r"GFLHead.*PicoHead, PicoHeadV2, PPYOLOEHead"):
        build_network(str(tmp_path / "gfl.yml"), CLASSES)


def test_without_ppdet_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ppdet.modeling", None)
    with pytest.raises(UsageError, match=r"needs paddledet 2.6.0.*pip install --no-deps paddledet==2.6.0"):
        build_network("picodet_lcnet_x1_0", CLASSES)


def test_the_local_head_sees_a_place_the_same_whatever_else_the_image_shows() -> None:
    """Features of a corner, with different surroundings far away; the other head pools over all of them."""
    near = paddle.to_tensor(np.random.default_rng(0).normal(size=(1, 128, 32, 32)), "float32")
    surrounded = paddle.nn.functional.pad(near, [0, 32, 0, 32], value=3.0)

    def largest_change(name: str) -> float:
        head = network_of(name).head
        alone, among = (head.conv_feat(features, 0)[1][..., :4, :4] for features in (near, surrounded))
        return float((alone - among).abs().max())

    assert largest_change("picodet_lcnet_x1_0_local") < 1e-5
    assert largest_change("picodet_lcnet_x1_0") > 1e-3
