"""Tensors out of an ONNX file that paddle2onnx wrote: it keeps Paddle's own names (`conv2d_0.w_0`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.errors import WeightsError

_PARAMETER_NAME = re.compile(r"\w+_\d+\.[wb]_\d+")


def read_onnx(file: Path) -> dict[str, np.ndarray]:
    """Weights by Paddle's name; other constants of the graph are left out.

    Raises:
        WeightsError: the package onnx is not installed.
        ValueError: not an ONNX file, or its tensors have no Paddle names.
    """
    graph = _graph(file)
    from onnx import numpy_helper

    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    named = {name: tensor for name, tensor in tensors.items() if _PARAMETER_NAME.fullmatch(name)}
    if not named:
        raise ValueError("no tensor has a Paddle name such as conv2d_0.w_0; only files of paddle2onnx are known")
    return {name: np.array(numpy_helper.to_array(tensor)) for name, tensor in named.items()}


def _graph(file: Path) -> Any:
    try:
        import onnx
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    except ImportError as fault:
        raise WeightsError(f"{file}: reading ONNX weights needs the package onnx: pip install onnx ({fault})") from None
    try:
        return onnx.load(str(file)).graph
    except DecodeError as fault:
        raise ValueError(f"not an ONNX file: {fault}") from fault
