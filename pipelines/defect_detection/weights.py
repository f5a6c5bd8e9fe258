"""Weights into a detector: by name, classes by their own names, and a table that says what was made up.

Known files: PaddleDetection's `.pdparams`, this program's own, and paddle2onnx's `.onnx`. A file with the legacy
head also starts a network with PicoHeadV2: same backbone and neck, same convolutions of the head, and the rows that
give the distances.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import paddle

from pipelines.defect_detection.heads import num_bins
from pipelines.defect_detection.network import CLASS_CONVOLUTION, NETWORKS, PARTS, Detector, build_network
from pipelines.errors import UsageError
from pipelines.weights import MatchTable, Tensors, match_tensors, read_tensors, require_backbone, resolve_source

_ATTENTION_CONVOLUTION = re.compile(r"head\.conv_feat\.se\.\d+\.conv\.conv\.weight")
# Constants, and scalars that the legacy head inherits but never uses: no file needs to hold them.
_NOT_LEARNT = re.compile(r"head\.(p\d_feat\.scale_reg|distribution_project\.project|proj_conv\.weight)")
# PicoHeadV2 registers these layers twice; one name a tensor, or the file's classes would come back by the other.
_ALIAS = re.compile(r"head\.head_(cls|reg)_list\.(\d+)\.")


@dataclass(frozen=True)
class _Named:
    """The file's tensors under the network's names, and what was done to them."""

    tensors: Tensors
    notes: tuple[str, ...] = ()


def load_weights(
    network: Detector,
    source: str,
    *,
    sha256: str | None = None,
    file_classes: Sequence[str] | None = None,
    cache: Path | None = None,
) -> MatchTable:
    """Fill a detector with weights; it is changed only if they are accepted.

    Args:
        network: of `build_network`.
        source: path, address or package, see `pipelines.weights.sources`.
        sha256: checksum the file must have.
        file_classes: names of the file's classes in the order of their ids. Rows of a class that the network has too
            are taken, by name; all others, and all if the names are not known, start anew.
        cache: folder for fetched files.

    Raises:
        WeightsError: not found, not readable, or under 90 % of the backbone matches; shows the table.
        UsageError: `file_classes` are not as many as the file has.
    """
    tensors = read_tensors(resolve_source(source, sha256=sha256, cache=cache))
    named = _with_classes(_network_names(tensors, network), network, file_classes)
    expected = network.state_dict()
    shapes = {
        name: tensor.shape
        for name, tensor in expected.items()
        if not _NOT_LEARNT.fullmatch(name) and not _ALIAS.match(name)
    }
    fitting, table = match_tensors(
        shapes, named.tensors, source, PARTS, lambda name: name.split(".", 1)[0], {}, named.notes + _folded(named)
    )
    require_backbone(table, network.name)
    values = {name: paddle.to_tensor(value, dtype=expected[name].dtype) for name, value in fitting.items()}
    network.set_state_dict({**expected, **values})
    return table


def _network_names(tensors: Tensors, network: Detector) -> _Named:
    plain = {name.replace("yolo_head.", "head.", 1): value for name, value in tensors.items()}
    tensors = {
        _ALIAS.sub(r"head.head_\1\2.", name): value for name, value in plain.items() if not _NOT_LEARNT.fullmatch(name)
    }
    notes: tuple[str, ...] = ()
    if not any("." in name and name.startswith("backbone") for name in tensors):
        tensors, notes = _by_paddle_names(tensors, network)
    if network.kind == "PicoHeadV2" and "head.head_cls0.weight" in tensors and "head.head_reg0.weight" not in tensors:
        tensors = _legacy_to_v2(tensors, network)
        notes = (*notes, "a legacy head: its convolutions and distances are taken, class alignment starts anew")
    return _Named(tensors, notes)


def _by_paddle_names(tensors: Tensors, network: Detector) -> tuple[Tensors, tuple[str, ...]]:
    """Names such as `conv2d_7.w_0` count layers as they were built: those of this network or of its legacy sibling."""
    sibling = f"{network.name.removesuffix('_local')}_legacy"
    candidates = [network]
    if network.kind == "PicoHeadV2" and (NETWORKS / f"{sibling}.yml").is_file():
        candidates.append(build_network(sibling, network.class_names))
    renamed = [_renamed(tensors, candidate) for candidate in candidates]
    best = max(range(len(candidates)), key=lambda i: _fit(renamed[i], candidates[i]))
    return renamed[best], (f"tensors known by the order of layers, as {candidates[best].name} builds them",)


def _renamed(tensors: Tensors, network: Detector) -> Tensors:
    structured = {tensor.name: name for name, tensor in network.state_dict().items()}
    return {structured[name]: value for name, value in tensors.items() if name in structured}


def _fit(named: Tensors, network: Detector) -> tuple[int, int]:
    """How well names go with a network: the fewest tensors of another shape, then the most of the same.

    Class convolutions may have another shape by right: other classes.
    """
    expected = network.state_dict()
    fitting = {name: tuple(expected[name].shape) == value.shape for name, value in named.items()}
    wrong = sum(not fits for name, fits in fitting.items() if not CLASS_CONVOLUTION.fullmatch(name))
    return -wrong, sum(fitting.values())


def _legacy_to_v2(tensors: Tensors, network: Detector) -> Tensors:
    """The legacy head's one convolution a level, classes then distances, as PicoHeadV2's two.

    PicoHeadV2 has a channel attention in between, which starts by passing its features on: its gate is 1/2 for all
    channels at first, so its convolution is twice the identity.
    """
    num_distances = 4 * num_bins(network.head)
    moved: Tensors = {}
    for name, value in tensors.items():
        if CLASS_CONVOLUTION.fullmatch(name):
            moved[name] = value[:-num_distances]
            moved[name.replace("head_cls", "head_reg")] = value[-num_distances:]
        else:
            moved[name] = value
    for name, tensor in network.state_dict().items():
        if _ATTENTION_CONVOLUTION.fullmatch(name):
            moved[name] = 2 * np.eye(tensor.shape[0], dtype=np.float32)[..., None, None]
    return moved


def _with_classes(named: _Named, network: Detector, file_classes: Sequence[str] | None) -> _Named:
    """Class rows by name; the network's own initial rows for classes that the file does not know."""
    class_tensors = [name for name in named.tensors if CLASS_CONVOLUTION.fullmatch(name)]
    if not class_tensors:
        return named
    num_other = 4 * num_bins(network.head) if network.kind == "PicoHead" else 0
    num_in_file = len(named.tensors[class_tensors[0]]) - num_other
    if file_classes is not None and len(file_classes) != num_in_file:
        raise UsageError(f"model.weights_classes names {len(file_classes)} classes, but the weights have {num_in_file}")
    positions = {name: index for index, name in enumerate(file_classes or ())}
    taken = [(ours, positions[name]) for ours, name in enumerate(network.class_names) if name in positions]
    initial = network.state_dict()
    replaced = {}
    for name in class_tensors:
        if name not in initial or initial[name].shape[1:] != list(named.tensors[name].shape[1:]):
            continue
        rows = initial[name].numpy().copy()
        for ours, theirs in taken:
            rows[ours] = named.tensors[name][theirs]
        if num_other:
            rows[-num_other:] = named.tensors[name][-num_other:]
        replaced[name] = rows
    note = _class_note(network, taken, num_in_file, file_classes)
    return replace(named, tensors={**named.tensors, **replaced}, notes=(*named.notes, note))


def _class_note(
    network: Detector, taken: Sequence[tuple[int, int]], num_in_file: int, file_classes: Sequence[str] | None
) -> str:
    ours = len(network.class_names)
    if file_classes is None:
        names = "model.weights_classes names them"
        return f"classes: the file's {num_in_file} have no names, so all {ours} start anew ({names})"
    new = [network.class_names[i] for i in range(ours) if i not in {index for index, _ in taken}]
    return f"classes: {len(taken)} of {ours} taken by name" + (f"; anew: {', '.join(new)}" if new else "")


def _folded(named: _Named) -> tuple[str, ...]:
    """A note if the file's BatchNorms were folded into its convolutions."""
    means = [value for name, value in named.tensors.items() if name.endswith("._mean")]
    variances = [value for name, value in named.tensors.items() if name.endswith("._variance")]
    if not means or any(mean.any() for mean in means) or any((variance != 1).any() for variance in variances):
        return ()
    return (
        f"all {len(means)} BatchNorms are folded (mean 0, variance 1): their statistics say nothing about images and"
        " must stay frozen",
    )
