"""A folder as Paddle's programs load it: graph, weights and description, with a note of where the model came from.

It holds `inference.json` (the graph), `inference.pdiparams` (the weights), `inference.yml` (what to do before and
after) and `wholebatch.yml` (where it came from, and what Paddle's own programs do not ask for).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import paddle
import yaml

from pipelines.errors import DataError, UsageError
from pipelines.folders import write_folder

DESCRIPTION_FILE = "inference.yml"
PROVENANCE_FILE = "wholebatch.yml"


def write_model_folder(
    out: Path,
    layer: paddle.nn.Layer,
    inputs: Sequence[paddle.static.InputSpec],
    description: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> None:
    """Write a model folder; it appears whole or not at all, and never replaces a folder made by others.

    Args:
        out: folder to make. An earlier export in its place is replaced.
        layer: in evaluation mode; what its forward does becomes the graph.
        inputs: of the forward, named as the reading program calls them.
        description: content of `inference.yml`.
        provenance: content of `wholebatch.yml` beside paddle's version.

    Raises:
        UsageError: `out` exists and is no earlier export.
    """
    _require_own_folder(out)

    def write(into: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # paddle's own notes on its graph passes
            graph = paddle.jit.to_static(layer, input_spec=list(inputs), full_graph=True)
            paddle.jit.save(graph, str(into / "inference"))
        _write_yaml(into / DESCRIPTION_FILE, description)
        _write_yaml(into / PROVENANCE_FILE, {"paddle": paddle.__version__, **provenance})

    write_folder(out, write)


def frozen_copy(network: paddle.nn.Layer) -> paddle.nn.Layer:
    """A float32 copy in evaluation mode, see `name_tensors`."""
    # Names change here, and optimizers find their state by name: never touch the network in training.
    frozen = copy.deepcopy(network)
    frozen.to(dtype="float32")
    frozen.eval()
    name_tensors(frozen)
    return frozen


def name_tensors(network: paddle.nn.Layer) -> None:
    """Have the graph know every tensor by its name in the network: so it is a starting point for fine-tuning too."""
    for name, tensor in network.state_dict().items():
        tensor.name = name


def _require_own_folder(out: Path) -> None:
    """Raise UsageError if `out` is there and neither empty nor an earlier export."""
    if not out.exists() or (out / PROVENANCE_FILE).is_file():
        return
    if out.is_dir() and not any(out.iterdir()):
        return
    raise UsageError(f"{out}: exists and is no export of this program; remove it or choose another folder")


def read_description(folder: Path, name: str = DESCRIPTION_FILE) -> dict[str, Any]:
    """One of the two YAML files of a model folder.

    Raises:
        UsageError: the folder has no such file.
        DataError: it can't be read.
    """
    file = folder / name
    if not file.is_file():
        raise UsageError(f"{folder}: holds no {name}; export a model there first")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as fault:
        raise DataError(f"{file}: can't be read: {fault}; export the model again") from fault
    if not isinstance(content, dict):
        raise DataError(f"{file}: expected names and values, but it holds {type(content).__name__}; export again")
    return content


def _write_yaml(file: Path, content: Mapping[str, Any]) -> None:
    file.write_text(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True), encoding="utf-8")
