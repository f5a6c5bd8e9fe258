"""Weights into a network, with a table of what matched: nothing is loaded, left out or made up in silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import paddle

from pipelines.errors import WeightsError
from pipelines.text_detection import weight_names
from pipelines.text_detection.forms import fuse
from pipelines.text_detection.network import DBNet, build_network, part_of
from pipelines.text_detection.weight_files import Tensors, read_tensors
from pipelines.text_detection.weight_sources import resolve_source

PARTS = ("backbone", "neck", "head", "threshold")
MIN_BACKBONE_SHARE = 0.9
_NUM_NAMES_SHOWN = 5


@dataclass(frozen=True)
class PartMatch:
    """How one part of the network fared.

    Attributes:
        part: "backbone", "neck", "head" or "threshold".
        num_matched: tensors taken from the file.
        missing: names in the network that the file has no tensor for.
        shape_mismatches: name, shape in the network, shape in the file.
        start: where the other tensors' values come from: "" if all matched, else what was done.
    """

    part: str
    num_matched: int
    missing: tuple[str, ...] = ()
    shape_mismatches: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    start: str = ""

    @property
    def num_expected(self) -> int:
        return self.num_matched + len(self.missing) + len(self.shape_mismatches)

    @property
    def share(self) -> float:
        return self.num_matched / self.num_expected


@dataclass(frozen=True)
class MatchTable:
    """What a weights file gave to a network.

    Attributes:
        source: as the user gave it.
        rows: one a part.
        unused: names in the file that the network has no place for.
    """

    source: str
    rows: tuple[PartMatch, ...]
    unused: tuple[str, ...] = ()

    def row(self, part: str) -> PartMatch:
        return next(row for row in self.rows if row.part == part)

    def render(self) -> str:
        """The table as plain text."""
        lines = [f"weights: {self.source}", f"{'part':<10} {'matched':>11} {'missing':>8} {'shape':>6}  rest"]
        for row in self.rows:
            matched = f"{row.num_matched}/{row.num_expected}"
            lines.append(
                f"{row.part:<10} {matched:>11} {len(row.missing):>8} {len(row.shape_mismatches):>6}  {row.start}"
            )
        for row in self.rows:
            lines += [f"  {name}: network {ours}, file {theirs}" for name, ours, theirs in row.shape_mismatches]
            if row.missing and row.part != "threshold":
                lines.append(f"  missing in the file: {_listed(row.missing)}")
        if self.unused:
            lines.append(f"  not used: {_listed(self.unused)}")
        return "\n".join(line.rstrip() for line in lines)


def load_weights(network: DBNet, source: str, *, sha256: str | None = None, cache: Path | None = None) -> MatchTable:
    """Fill a network with weights; branch weights are fused exactly when the network is in fused form.

    A threshold branch that the file lacks (exported models have none) starts from the binarize branch's
    features. The network is changed only if the weights are accepted.

    Args:
        network: any form of `build_network`.
        source: path, address or package, see `weight_sources`.
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
    fitting = {
        name: paddle.to_tensor(named[name], dtype=tensor.dtype)
        for name, tensor in expected.items()
        if name in named and tuple(tensor.shape) == named[name].shape
    }
    table = _match(expected, named, fitting, source)
    if table.row("backbone").share < MIN_BACKBONE_SHARE:
        raise WeightsError(
            f"{source}: these weights do not fit {network.name} ({network.form} form): "
            f"{table.row('backbone').share:.0%} of the backbone matched, at least {MIN_BACKBONE_SHARE:.0%} is needed; "
            f"is model.network the one they were trained with?\n{table.render()}"
        )
    network.set_state_dict({**expected, **fitting})
    if table.row("threshold").num_matched < table.row("threshold").num_expected:
        network.threshold.start_from(network.binarize)
    return table


def _match(
    expected: Mapping[str, paddle.Tensor], named: Tensors, fitting: Mapping[str, object], source: str
) -> MatchTable:
    rows = []
    for part in PARTS:
        names = [name for name in expected if part_of(name) == part]
        missing = tuple(name for name in names if name not in named)
        mismatches = tuple(
            (name, tuple(expected[name].shape), named[name].shape)
            for name in names
            if name in named and name not in fitting
        )
        start = "" if not missing and not mismatches else "random"
        if start and part == "threshold":
            start = "re-initialised from the binarize branch, T about 0.3"
        rows.append(PartMatch(part, sum(name in fitting for name in names), missing, mismatches, start))
    unused = tuple(sorted(name for name in named if name not in expected))
    return MatchTable(source, tuple(rows), unused)


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


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_NUM_NAMES_SHOWN])
    return shown if len(names) <= _NUM_NAMES_SHOWN else f"{shown} and {len(names) - _NUM_NAMES_SHOWN} more"
