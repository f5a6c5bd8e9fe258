"""Names of tensors: from PaddleOCR's training code to the networks of this package.

PaddleOCR names its layers by what they do (`backbone.blocks3.0.dw_conv.conv_kxk.0.conv.weight`); paddlex, and
with it this package, by the style of another library. Both build the same networks, so a list of rewriting
rules is the whole difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Rules = tuple[tuple[str, str], ...]

# What a distillation run calls the network that is kept.
_DISTILLATION_PREFIXES = ("Student.", "Student2.", "Teacher.")

_HEAD: Rules = (
    (r"^head\.binarize\.conv1\.", "head.conv_down.convolution."),
    (r"^head\.binarize\.conv_bn1\.", "head.conv_down.norm."),
    (r"^head\.binarize\.conv2\.", "head.conv_up.convolution."),
    (r"^head\.binarize\.conv_bn2\.", "head.conv_up.norm."),
    (r"^head\.binarize\.conv3\.", "head.conv_final."),
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

PADDLEOCR_RULES: dict[str, Rules] = {
    "PP-OCRv4_mobile": _MOBILE + _HEAD,
    "PP-OCRv5_mobile": _MOBILE + _HEAD,
}


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
