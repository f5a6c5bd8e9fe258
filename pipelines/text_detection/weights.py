"""Weights into a network, with a table of what matched: nothing is loaded, left out or made up in silence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import paddle

from pipelines.errors import WeightsError
from pipelines.text_detection import weight_names
from pipelines.text_detection.forms import fuse
from pipelines.text_detection.network import DBNet, build_network, part_of
from pipelines.weights import MatchTable, Tensors, match_tensors, read_tensors, require_backbone, resolve_source

PARTS = ("backbone", "neck", "head", "threshold")
_STARTS = {"threshold": "re-initialised from the binarize branch, T about 0.3"}


def load_weights(network: DBNet, source: str, *, sha256: str | None = None, cache: Path | None = None) -> MatchTable:
    """Fill a network with weights; branch weights are fused exactly when the network is in fused form.

    A threshold branch that the file lacks (exported models have none) starts from the binarize branch's
    features. The network is changed only if the weights are accepted.

    Args:
        network: any form of `build_network`.
        source: path, address or package, see `pipelines.weights.sources`.
        sha256: checksum the file must have.
        cache: folder for fetched files.

    Raises:
        WeightsError: not found, not readable, or under 90 % of the backbone matches; the table is shown.
    """
    tensors = read_tensors(resolve_source(source, sha256=sha256, cache=cache))
    named = _network_names(tensors, network, source)
    if network.form == "fused" and _holds_branches(named):
        branch = build_network(network.name, "branch")
        table = _fill(branch, named, source)
        network.set_state_dict(fuse(branch).state_dict())
        return table
    if network.form == "branch" and _holds_fused_blocks(named):
        raise WeightsError(
            f"{source}: these weights are fused, and a sum does not give its branches back: set model.form: fused"
        )
    return _fill(network, named, source)


def _fill(network: DBNet, named: Tensors, source: str) -> MatchTable:
    """Set what fits, after the table says that enough does."""
    expected = network.state_dict()
    shapes = {name: tensor.shape for name, tensor in expected.items()}
    fitting, table = match_tensors(shapes, named, source, PARTS, part_of, _STARTS)
    require_backbone(table, f"{network.name} ({network.form} form)")
    tensors = {name: paddle.to_tensor(value, dtype=expected[name].dtype) for name, value in fitting.items()}
    network.set_state_dict({**expected, **tensors})
    if table.row("threshold").num_matched < table.row("threshold").num_expected:
        network.threshold.start_from(network.binarize)
    return table


def _network_names(tensors: Tensors, network: DBNet, source: str) -> Tensors:
    """The file's tensors under the names this package's networks use."""
    try:
        if weight_names.is_paddleocr_naming(tensors):
            renamed = weight_names.from_paddleocr(tensors, network.name)
        elif weight_names.is_numbered(tensors):
            if not network.name.endswith("_mobile") or network.form != "fused":
                raise KeyError(network.name)
            renamed = weight_names.from_numbers(tensors, network.state_dict())
        else:
            return tensors
    except (KeyError, IndexError) as fault:
        raise WeightsError(
            f"{source}: the names in this file are not known for {network.name} in {network.form} form; use the "
            f".safetensors of the official model hub, or for a mobile network an exported model and model.form: fused"
        ) from fault
    return {new: tensors[old] for old, new in renamed.items()}


def _holds_branches(named: Mapping[str, np.ndarray]) -> bool:
    return any(".conv_symmetric." in name for name in named)


def _holds_fused_blocks(named: Mapping[str, np.ndarray]) -> bool:
    return any(name.endswith("wise_convolution.convolution.weight") for name in named)
