"""Names of tensors: from PaddleOCR's training code to the networks of this package.

PaddleOCR names its layers by what they do (`backbone.blocks3.0.dw_conv.conv_kxk.0.conv.weight`); paddlex, and
with it this package, by the style of another library. Both build the same networks, so a list of rewriting
rules is the whole difference. Exported models of paddle 3 carry no such names, only the numbers that paddle
gave to tensors as they were built (`conv2d_131.w_0`); for the mobile networks these are put back in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Rules = tuple[tuple[str, str], ...]

# What a distillation run calls the network that is kept.
_DISTILLATION_PREFIXES = ("Student.", "Student2.", "Teacher.")

_HEAD: Rules = (
    (r"^head\.binarize\.", "head."),
    (r"^(head(?:\.binarize_head)?)\.conv1\.", r"\1.conv_down.convolution."),
    (r"^(head(?:\.binarize_head)?)\.conv_bn1\.", r"\1.conv_down.norm."),
    (r"^(head(?:\.binarize_head)?)\.conv2\.", r"\1.conv_up.convolution."),
    (r"^(head(?:\.binarize_head)?)\.conv_bn2\.", r"\1.conv_up.norm."),
    (r"^(head(?:\.binarize_head)?)\.conv3\.", r"\1.conv_final."),
    (r"^head\.thresh\.conv1\.", "threshold.conv_down."),
    (r"^head\.thresh\.conv_bn1\.", "threshold.norm_down."),
    (r"^head\.thresh\.conv2\.", "threshold.conv_up."),
    (r"^head\.thresh\.conv_bn2\.", "threshold.norm_up."),
    (r"^head\.thresh\.conv3\.", "threshold.conv_final."),
)

# PP-LCNetV3 and RSE-FPN. An early release of PP-OCRv4, still the one most packages carry, calls a block's
# learnable affine `w`, `b`, and its activation's `activation.scale`, `activation.bias`.
_MOBILE: Rules = (
    (r"^backbone\.conv1\.conv\.", "model.backbone.encoder.convolution.convolution."),
    (r"^backbone\.conv1\.bn\.", "model.backbone.encoder.convolution.normalization."),
    (r"^backbone\.layer_list\.", "model.layer."),
    *((rf"^backbone\.blocks{n + 2}\.(\d+)\.", rf"model.backbone.encoder.blocks.{n}.layers.\1.") for n in range(5)),
    (r"\.dw_conv\.", ".depthwise_convolution."),
    (r"\.pw_conv\.", ".pointwise_convolution."),
    (r"\.se\.conv1\.", ".squeeze_excitation_module.convolutions.0."),
    (r"\.se\.conv2\.", ".squeeze_excitation_module.convolutions.2."),
    (r"\.reparam_conv\.", ".convolution."),
    (r"\.conv_kxk\.(\d+)\.conv\.", r".conv_symmetric.\1.convolution."),
    (r"\.conv_kxk\.(\d+)\.bn\.", r".conv_symmetric.\1.normalization."),
    (r"\.conv_1x1\.conv\.", ".conv_small_symmetric.convolution."),
    (r"\.conv_1x1\.bn\.", ".conv_small_symmetric.normalization."),
    (r"wise_convolution\.w$", "wise_convolution.lab.scale"),
    (r"wise_convolution\.b$", "wise_convolution.lab.bias"),
    (r"\.activation\.(scale|bias)$", r".act.lab.\1"),
    (r"^neck\.ins_conv\.", "model.neck.insert_conv."),
    (r"^neck\.inp_conv\.", "model.neck.input_conv."),
    (r"\.se_block\.", ".squeeze_excitation_block."),
)

# PP-HGNetV2, LK-PAN with intra-class blocks, and the head that refines its map locally.
_INTRACLASS_DIRECTIONS = {
    "v_layer_{}x1": "vertical_long_to_small_conv_{}ratio",
    "q_layer_1x{}": "horizontal_small_to_long_conv_{}ratio",
    "c_layer_{0}x{0}": "symmetric_conv_long_{}ratio",
}
_SERVER: Rules = (
    (r"^backbone\.stem\.", "model.backbone.embedder."),
    (r"^backbone\.stages\.", "model.backbone.encoder.stages."),
    (r"\.aggregation_squeeze_conv\.", ".aggregation.0."),
    (r"\.aggregation_excitation_conv\.", ".aggregation.1."),
    (r"^(model\.backbone\..*)\.conv\.", r"\1.convolution."),
    (r"^(model\.backbone\..*)\.bn\.", r"\1.normalization."),
    *((rf"^neck\.incl{n + 1}\.", f"model.neck.intraclass_blocks.{n}.") for n in range(4)),
    (r"\.conv1x1_reduce_channel\.", ".conv_reduce_channel."),
    (r"\.conv1x1_return_channel\.", ".conv_final.convolution."),
    (r"^(model\.neck\.intraclass_blocks\.\d)\.bn\.", r"\1.conv_final.norm."),
    *(
        (rf"\.{theirs.format(size)}\.", f".{ours.format(ratio)}.")
        for theirs, ours in _INTRACLASS_DIRECTIONS.items()
        for size, ratio in ((7, "long"), (5, "mid"), (3, "short"))
    ),
    (r"^neck\.ins_conv\.", "model.neck.input_channel_adjustment_convolution."),
    (r"^neck\.inp_conv\.", "model.neck.input_feature_projection_convolution."),
    (r"^neck\.pan_head_conv\.", "model.neck.path_aggregation_head_convolution."),
    (r"^neck\.pan_lat_conv\.", "model.neck.path_aggregation_lateral_convolution."),
    (r"^head\.cbn_layer\.last_3\.conv\.", "head.local_refinement_module.convolution_backbone.convolution."),
    (r"^head\.cbn_layer\.last_3\.bn\.", "head.local_refinement_module.convolution_backbone.norm."),
    (r"^head\.cbn_layer\.last_1\.", "head.local_refinement_module.convolution_final."),
    (r"^head\.binarize\.", "head.binarize_head."),
)

PADDLEOCR_RULES: dict[str, Rules] = {
    "PP-OCRv4_mobile": _MOBILE + _HEAD,
    "PP-OCRv5_mobile": _MOBILE + _HEAD,
    "PP-OCRv5_server": _SERVER + _HEAD,
}

_NUMBERED = re.compile(r"^([a-z][a-z0-9_]*?)_(\d+)\.([wb]_\d+)$")
_AFFINE_PARAMETERS = {"w_0": "scale", "w_1": "bias"}
_NORM_TENSORS = {"w_0": "weight", "b_0": "bias", "w_1": "_mean", "w_2": "_variance"}
_CONV_PARAMETERS = {"w_0": "weight", "b_0": "bias"}


def is_paddleocr_naming(names: Iterable[str]) -> bool:
    """Whether tensors carry the names of PaddleOCR's training code."""
    return any(name.startswith("backbone.") for name in without_distillation_prefix(names).values())


def from_paddleocr(names: Iterable[str], network: str) -> dict[str, str]:
    """Name in the file -> name in the network, for a file with PaddleOCR's names.

    A name that no rule knows is kept, matches nothing, and shows up as unused.

    Raises:
        KeyError: no rules for this network.
    """
    rules = [(re.compile(pattern), replacement) for pattern, replacement in PADDLEOCR_RULES[network]]
    renamed = {}
    for original, name in without_distillation_prefix(names).items():
        for pattern, replacement in rules:
            name = pattern.sub(replacement, name)
        renamed[original] = name
    return renamed


def without_distillation_prefix(names: Iterable[str]) -> dict[str, str]:
    """Name in the file -> name without prefix; of several networks in one file only the first student's."""
    names = list(names)
    for prefix in _DISTILLATION_PREFIXES:
        chosen = {name: name[len(prefix) :] for name in names if name.startswith(prefix)}
        if chosen:
            return chosen
    return {name: name for name in names}


def is_numbered(names: Iterable[str]) -> bool:
    """Whether tensors carry paddle's running numbers only."""
    return all(_NUMBERED.match(name) for name in names)


def from_numbers(names: Iterable[str], expected: Iterable[str]) -> dict[str, str]:
    """Name in the file -> name in the network, for an exported mobile detector without structured names.

    Tensors are numbered per kind as PaddleOCR builds the network: first the layers outside the blocks, and
    last, at export, the blocks' fused convolutions. Shapes are checked when the weights are set.

    Args:
        names: as in the file.
        expected: names of the tensors of the fused network.

    Raises:
        KeyError: the numbers do not fit this network.
    """
    expected = list(expected)
    layers = _layers_as_built(expected)
    numbers: dict[str, list[int]] = {}
    for kind, number, _ in (_parsed(name) for name in names):
        numbers.setdefault(kind, []).append(number)
    ranks = {kind: {n: rank for rank, n in enumerate(sorted(set(found)))} for kind, found in numbers.items()}
    renamed = {}
    for name in names:
        kind, number, tensor = _parsed(name)
        if kind == "learnable_affine_block":  # two a block layer, and both are numbered even if one is not used
            renamed[name] = f"{_affine_layer(layers['block'], number)}.{_AFFINE_PARAMETERS[tensor]}"
        elif kind in layers and ranks[kind][number] < len(layers[kind]):
            tensors = _NORM_TENSORS if kind.startswith("batch_norm") else _CONV_PARAMETERS
            renamed[name] = f"{layers[kind][ranks[kind][number]]}.{tensors[tensor]}"
        else:
            renamed[name] = name
    return renamed


def _layers_as_built(expected: list[str]) -> dict[str, list[str]]:
    """Layers of a fused mobile network by paddle's kind, in the order PaddleOCR builds them."""
    weights = [name[: -len(".weight")] for name in expected if name.endswith(".weight")]
    blocks = [name for name in weights if name.endswith("wise_convolution.convolution")]
    neck = [name for name in weights if name.startswith("model.neck.")]
    # State dicts list insert_conv before input_conv; PaddleOCR builds them in turns.
    neck.sort(key=lambda name: int(name.split(".")[3]))
    excitations = [name for name in weights if ".squeeze_excitation_module." in name]
    laterals = [name for name in weights if name.startswith("model.layer.")]
    stem = "model.backbone.encoder.convolution"
    return {
        "conv2d": [f"{stem}.convolution", *excitations, *laterals, *neck, "head.conv_down.convolution", *blocks],
        "conv2d_transpose": ["head.conv_up.convolution", "head.conv_final"],
        "batch_norm2d": [f"{stem}.normalization"],
        "batch_norm": ["head.conv_down.norm", "head.conv_up.norm"],
        "block": [name.removesuffix(".convolution") for name in blocks],
    }


def _affine_layer(blocks: list[str], number: int) -> str:
    return f"{blocks[number // 2]}.{'act.lab' if number % 2 else 'lab'}"


def _parsed(name: str) -> tuple[str, int, str]:
    found = _NUMBERED.match(name)
    if found is None:
        raise KeyError(name)
    return found[1], int(found[2]), found[3]
