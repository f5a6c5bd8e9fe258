"""Tensors by name out of the files that hold Paddle weights; nothing in a file is ever executed.

Four kinds are read:
- `.pdparams`, what training writes: a pickle of arrays, opened with only numpy's array classes allowed;
- `.safetensors`, what the official model hubs hold;
- `.onnx`, as paddle2onnx writes it (by Paddle's own tensor names);
- an exported inference model: a folder (or the path of its `.pdiparams`). The graph file (`.pdmodel`, or
  `.json` since paddle 3) says which tensors there are; the `.pdiparams` holds them in the order of their names.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.errors import WeightsError
from pipelines.weights.onnx_file import read_onnx

Tensors = dict[str, np.ndarray]

# VarType.Type of paddle's framework.proto, for the dtypes a weight can have.
_DTYPES = {2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64"}
_BFLOAT16 = 22

_ARRAY_CLASSES = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("collections", "OrderedDict"),
    ("builtins", "tuple"),
    ("_codecs", "encode"),
}


def read_tensors(path: Path) -> Tensors:
    """All tensors of a weights file or exported model, by structured name where the file knows it.

    Raises:
        WeightsError: no such path, a kind that is not known, a damaged file, or a pickle that asks for code.
    """
    file = _weights_file(path)
    try:
        if file.suffix == ".pdparams":
            return read_pdparams(file)
        if file.suffix == ".safetensors":
            return read_safetensors(file)
        if file.suffix == ".onnx":
            return read_onnx(file)
        return read_inference_model(file)
    except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, struct.error, OSError) as fault:
        raise WeightsError(
            f"{file}: can't be read as weights: {fault}; the file may be cut short or damaged"
        ) from fault


def read_pdparams(file: Path) -> Tensors:
    """Tensors of a `.pdparams`, as paddle.save writes it; entries that are no arrays are left out."""
    saved = _ArrayUnpickler(io.BytesIO(file.read_bytes())).load()
    if not isinstance(saved, Mapping):
        raise ValueError(f"expected a dict of arrays, but got {type(saved).__name__}")
    arrays = {name: _array_of(value) for name, value in saved.items()}
    return {name: array for name, array in arrays.items() if array is not None}


def read_safetensors(file: Path) -> Tensors:
    """Tensors of a `.safetensors`, with BatchNorm's statistics under paddle's names."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(str(file))
    except SafetensorError as fault:
        raise ValueError(str(fault)) from fault
    renamed = {"running_mean": "_mean", "running_var": "_variance"}
    return {_with_last(name, renamed): value for name, value in tensors.items()}


def read_inference_model(file: Path) -> Tensors:
    """Tensors of an exported model, by the names of its `.info` file, else by those of its graph."""
    graph = file.with_suffix(".pdmodel")
    names = names_in_pdmodel(graph) if graph.exists() else names_in_pir(file.with_suffix(".json"))
    tensors = dict(zip(sorted(names), _records(file.read_bytes(), len(names)), strict=True))
    info = file.with_suffix(".pdiparams.info")
    return _by_structured_name(tensors, info) if info.exists() else tensors


def names_in_pdmodel(graph: Path) -> list[str]:
    """Names of the tensors an exported `.pdmodel` (paddle 2) loads."""
    from paddle.base.proto import framework_pb2

    program = framework_pb2.ProgramDesc()
    _parse(program, graph.read_bytes())
    not_tensors = (framework_pb2.VarType.FEED_MINIBATCH, framework_pb2.VarType.FETCH_LIST)
    return [v.name for v in program.blocks[0].vars if v.persistable and v.type.type not in not_tensors]


def names_in_pir(graph: Path) -> list[str]:
    """Names of the parameters an exported `inference.json` (paddle 3) loads."""
    program = json.loads(graph.read_text(encoding="utf-8"))["program"]
    operations = program["regions"][0]["blocks"][0]["ops"]
    return [operation["A"][3] for operation in operations if operation["#"] == "p"]


def _records(content: bytes, num_expected: int) -> Iterator[np.ndarray]:
    """The tensors of a `.pdiparams`, one after the other.

    A record is: uint32 version; uint64 levels of detail (0 here), each uint64 size and bytes; uint32 version;
    int32 size of a TensorDesc protobuf; the protobuf; raw little-endian values.
    """
    from paddle.base.proto import framework_pb2

    offset = 0
    for _ in range(num_expected):
        (num_levels,) = struct.unpack_from("<Q", content, offset + 4)
        offset += 12
        for _ in range(num_levels):
            offset += 8 + struct.unpack_from("<Q", content, offset)[0]
        (size,) = struct.unpack_from("<i", content, offset + 4)
        offset += 8
        desc = framework_pb2.VarType.TensorDesc()
        _parse(desc, content[offset : offset + size])
        offset += size
        value, num_bytes = _values(content, offset, desc.data_type, tuple(desc.dims))
        offset += num_bytes
        yield value
    if offset != len(content):
        raise ValueError(f"{num_expected} tensors end at byte {offset} of {len(content)}: graph and weights differ")


def _parse(message: Any, content: bytes) -> None:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        message.ParseFromString(content)
    except DecodeError as fault:
        raise ValueError(f"no valid {type(message).__name__}: {fault}") from fault


def _values(content: bytes, offset: int, data_type: int, shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """The array that starts at `offset`, and its number of bytes."""
    stored = np.dtype("uint16" if data_type == _BFLOAT16 else _DTYPES[data_type])
    count = int(np.prod(shape, dtype=np.int64))
    values = np.frombuffer(content, stored, count, offset).reshape(shape)
    if data_type == _BFLOAT16:  # the upper half of a float32
        return (values.astype(np.uint32) << 16).view(np.float32), count * 2
    return values, count * stored.itemsize


def _by_structured_name(tensors: Tensors, info: Path) -> Tensors:
    """Tensors under the names their layers had in training; the file is a pickle of plain dicts."""
    variables = _PlainUnpickler(io.BytesIO(info.read_bytes())).load()
    return {variables.get(name, {}).get("structured_name", name): value for name, value in tensors.items()}


def _weights_file(path: Path) -> Path:
    """The file to read: the path itself, or what a folder holds."""
    if path.is_dir():
        for pattern in ("inference.pdiparams", "*.safetensors", "*.pdiparams", "*.pdparams"):
            found = sorted(path.glob(pattern))
            if len(found) == 1:
                return found[0]
            if found:
                raise WeightsError(f"{path}: expected one {pattern}, but got {len(found)}; name the file")
        raise WeightsError(f"{path}: holds no inference.pdiparams, .safetensors or .pdparams")
    for candidate in (path, path.with_name(path.name + ".pdparams")):
        if candidate.is_file():
            if candidate.suffix in (".pdparams", ".safetensors", ".onnx", ".pdiparams"):
                return candidate
            if candidate.suffix in (".pdmodel", ".json"):
                return candidate.with_suffix(".pdiparams")
            raise WeightsError(
                f"{path}: expected .pdparams, .safetensors, .onnx, .pdiparams or a folder of an exported model, "
                f"but got {path.suffix or 'no suffix'}"
            )
    raise WeightsError(f"{path}: no such file or folder")


def _with_last(name: str, renamed: Mapping[str, str]) -> str:
    head, _, last = name.rpartition(".")
    return f"{head}.{renamed.get(last, last)}"


def _array_of(value: Any) -> np.ndarray | None:
    """paddle.save stores a tensor as an array, or as (its name, an array)."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], np.ndarray):
        value = value[1]
    return value if isinstance(value, np.ndarray) else None


class _ArrayUnpickler(pickle.Unpickler):
    """Allows what numpy arrays are pickled with; anything else would be code from a stranger."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, encoding="latin1")

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ARRAY_CLASSES:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which weights have no use for")
        return super().find_class(module, name)


class _PlainUnpickler(pickle.Unpickler):
    """Allows dicts, strings and numbers only."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, but a table of names is plain dicts")
