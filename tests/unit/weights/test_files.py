"""Files of weights: each kind gives back the arrays that went in, and a damaged one is named.

pytest tests/unit/weights/test_files.py

What the kinds forbid (code in a pickle, a graph of another model) is in tests/unit/text_detection/test_weights.py.
"""

from __future__ import annotations

import json
import pickle
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import paddle
import pytest

from pipelines.errors import WeightsError
from pipelines.weights import read_tensors

ARRAYS = {
    "conv2d_0.w_0": np.arange(12, dtype=np.float32).reshape(2, 1, 2, 3) - 5,
    "conv2d_0.b_0": np.array([0.25, -3.5], np.float32),
    "batch_norm2d_1.w_1": np.array([1e-30, 7.0, 1e30], np.float32),
}
STRUCTURED = {
    "conv2d_0.w_0": "backbone.conv.weight",
    "conv2d_0.b_0": "backbone.conv.bias",
    "batch_norm2d_1.w_1": "backbone.bn._mean",
}


def write_pdparams(folder: Path) -> Path:
    paddle.save({name: paddle.to_tensor(value) for name, value in ARRAYS.items()}, str(folder / "best.pdparams"))
    return folder / "best.pdparams"


def write_safetensors(folder: Path) -> Path:
    pytest.importorskip("safetensors", reason="needs pip install safetensors").numpy.save_file(
        ARRAYS, str(folder / "model.safetensors")
    )
    return folder / "model.safetensors"


def write_onnx(folder: Path) -> Path:
    """As paddle2onnx does: old versions keep weights in Constant nodes, new ones as initialisers; shapes go unnamed."""
    onnx = pytest.importorskip("onnx", reason="needs pip install onnx")
    (first, *others) = ARRAYS.items()
    shape = onnx.numpy_helper.from_array(np.array([1, 2]), "p2o.helper.constant.7")
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in others]
    constant = onnx.helper.make_node(
        "Constant", [], [first[0]], value=onnx.numpy_helper.from_array(first[1], "nobody's name")
    )
    identity = onnx.helper.make_node("Identity", [first[0]], ["out"])
    out = onnx.helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([constant, identity], "graph", [], [out], initializer=[*tensors, shape])
    onnx.save(onnx.helper.make_model(graph), str(folder / "model.onnx"))
    return folder / "model.onnx"


def write_pdiparams(folder: Path) -> Path:
    """The records of `inference.pdiparams`, in the order of their names as paddle writes them."""
    content = b""
    for name in sorted(ARRAYS):
        value = ARRAYS[name]
        desc = b"\x08\x05" + b"".join(b"\x10" + bytes([side]) for side in value.shape)  # TensorDesc: float32, dims
        content += struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc + value.tobytes()
    (folder / "inference.pdiparams").write_bytes(content)
    return folder / "inference.pdiparams"


def write_pir_model(folder: Path) -> Path:
    operations = [{"#": "p", "A": [0, 1, 1, name]} for name in ARRAYS] + [{"#": "1.conv2d", "A": []}]
    (folder / "inference.json").write_text(json.dumps({"program": {"regions": [{"blocks": [{"ops": operations}]}]}}))
    return write_pdiparams(folder)


def write_program_model(folder: Path) -> Path:
    """A `.pdmodel` of paddle 2: it names its variables, of which feed and fetch hold no tensor."""
    from paddle.base.proto import framework_pb2

    program = framework_pb2.ProgramDesc()
    block = program.blocks.add(idx=0, parent_idx=-1)
    kinds = framework_pb2.VarType
    for name in ("feed", *ARRAYS, "fetch", "relu_0.tmp_0"):
        kind = {"feed": kinds.FEED_MINIBATCH, "fetch": kinds.FETCH_LIST}.get(name, kinds.DENSE_TENSOR)
        block.vars.add(name=name, persistable=name != "relu_0.tmp_0").type.type = kind
    (folder / "inference.pdmodel").write_bytes(program.SerializeToString())
    return write_pdiparams(folder)


KINDS: dict[str, Callable[[Path], Path]] = {
    ".pdparams": write_pdparams,
    ".safetensors": write_safetensors,
    ".onnx": write_onnx,
    ".pdiparams, .json": write_pir_model,
    ".pdiparams, .pdmodel": write_program_model,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_back_what_went_in(kind: str, tmp_path: Path) -> None:
    tensors = read_tensors(KINDS[kind](tmp_path))
    assert tensors.keys() == ARRAYS.keys()
    for name, value in ARRAYS.items():
        assert tensors[name].dtype == value.dtype and np.array_equal(tensors[name], value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_short_is_named_and_called_damaged(kind: str, tmp_path: Path) -> None:
    file = KINDS[kind](tmp_path)
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(WeightsError) as refusal:
        read_tensors(file)
    assert f"{file}: can't be read as weights" in str(refusal.value) and "cut short or damaged" in str(refusal.value)


@pytest.mark.parametrize("suffix", [".pdparams", ".safetensors", ".onnx"])
@pytest.mark.parametrize("content", [b"", b"<html>404 Not Found</html>", bytes(64)])
def test_a_file_of_something_else_is_named_and_called_damaged(suffix: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / f"weights{suffix}"
    file.write_bytes(content)
    with pytest.raises(WeightsError, match="can't be read as weights") as refusal:
        read_tensors(file)
    assert str(file) in str(refusal.value)


def test_an_exported_folder_gives_names_of_training_where_it_has_them(tmp_path: Path) -> None:
    write_program_model(tmp_path)
    table = {name: {"structured_name": structured} for name, structured in STRUCTURED.items()}
    (tmp_path / "inference.pdiparams.info").write_bytes(pickle.dumps(table))
    assert read_tensors(tmp_path).keys() == set(STRUCTURED.values())


def test_half_of_a_float32_is_widened_to_the_whole(tmp_path: Path) -> None:
    """bfloat16 (type 22) is the upper half of a float32: 1.0 is 0x3f80, -2.5 is 0xc020."""
    desc = b"\x08\x16\x10\x02"
    record = struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc + struct.pack("<HH", 0x3F80, 0xC020)
    (tmp_path / "inference.pdiparams").write_bytes(record)
    operations = [{"#": "p", "A": [0, 1, 1, "w"]}]
    program = {"program": {"regions": [{"blocks": [{"ops": operations}]}]}}
    (tmp_path / "inference.json").write_text(json.dumps(program))
    assert read_tensors(tmp_path)["w"].tolist() == [1.0, -2.5]


def test_an_onnx_file_of_another_exporter_is_refused_with_the_reason(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="needs pip install onnx")
    weight = onnx.numpy_helper.from_array(np.zeros(2, np.float32), "layer1.0.conv.weight")
    graph = onnx.helper.make_graph([], "graph", [], [], initializer=[weight])
    onnx.save(onnx.helper.make_model(graph), str(tmp_path / "other.onnx"))
    with pytest.raises(WeightsError, match=r"other.onnx: .*no tensor has a Paddle name such as conv2d_0.w_0"):
        read_tensors(tmp_path / "other.onnx")


def test_without_the_package_onnx_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(WeightsError, match=r"model.onnx: reading ONNX weights needs .*pip install onnx"):
        read_tensors(tmp_path / "model.onnx")


def test_entries_that_are_no_arrays_are_left_out_of_a_pdparams(tmp_path: Path) -> None:
    """Training tools add their own: an epoch, a table of names, a tensor as (its name, an array)."""
    saved = {
        "a": ARRAYS["conv2d_0.b_0"],
        "b": ("conv2d_0.b_0", ARRAYS["conv2d_0.b_0"]),
        "epoch": 7,
        "names": {"a": "b"},
    }
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps(saved))
    tensors = read_tensors(tmp_path / "a.pdparams")
    assert tensors.keys() == {"a", "b"}
    assert np.array_equal(tensors["a"], tensors["b"])
