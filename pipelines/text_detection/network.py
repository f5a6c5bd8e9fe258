"""DBNet on the networks that paddleocr ships, with the threshold branch that training needs.

`paddlex` (paddleocr's own dependency) holds the PP-OCR detectors as inference networks: image in, probability
map out. Differentiable binarization (Liao et al. 2020, https://arxiv.org/abs/1911.08947) also learns a
threshold map T, and compares both through a steep sigmoid, B = sigmoid(k (P - T)) with k = 50. The branch for
T and the binary map are added here; the rest keeps paddlex's names, so its official weights load as they are.
"""

from __future__ import annotations

import importlib
import math
import os
from dataclasses import dataclass
from typing import Any, Literal

import paddle
from paddle import nn

from pipelines.errors import UsageError
from pipelines.text_detection.forms import drop_idle_parameters, to_fused_layers

Form = Literal["fused", "branch"]
"""How re-parameterised blocks are held: one biased convolution each, or their parallel branches."""

BINARIZATION_STEEPNESS = 50.0
INITIAL_THRESHOLD = 0.3
_FAINT = 0.005

# As in paddlex's NormalizeImage for these models. The numbers are ImageNet's for R, G, B, but the official
# models were trained with them on B, G, R (DecodeImage: img_mode BGR), so that is what the weights expect.
MEAN_BGR = (0.485, 0.456, 0.406)
STD_BGR = (0.229, 0.224, 0.225)
SCALE = 1.0 / 255.0

OUTPUT_MULTIPLE_PX = 32
"""Sides of the input must be multiples of this: five halvings, and the neck adds maps without cropping."""


@dataclass(frozen=True)
class _Architecture:
    """One paddlex network: its class, and how many tensors a whole one holds (parameters and statistics)."""

    layer: str
    num_tensors: int
    binarize: str = "head"


_SERVER_BINARIZE = "head.binarize_head"
ARCHITECTURES = {
    # v4 mobile and v5 mobile are the same network with other weights.
    "PP-OCRv4_mobile": _Architecture("PPOCRV5MobileDet", 892),
    "PP-OCRv5_mobile": _Architecture("PPOCRV5MobileDet", 892),
    "PP-OCRv5_server": _Architecture("PPOCRV5ServerDet", 539, _SERVER_BINARIZE),
    "PP-OCRv6_small": _Architecture("PPOCRV6SmallDet", 271),
    "PP-OCRv6_medium": _Architecture("PPOCRV6MediumDet", 350),
}

_GROUP_PREFIXES = {
    "backbone": ("model.backbone.", "model.layer."),
    "neck": ("model.neck.",),
    "head": ("head.",),
    "threshold": ("threshold.",),
}


class ThresholdBranch(nn.Layer):
    """The threshold map from the neck's features: the structure of DB's binarize branch.

    conv 3x3, BatchNorm, ReLU; transposed conv, BatchNorm, ReLU; transposed conv, sigmoid. Two transposed
    convolutions of stride 2 bring stride 4 back to the size of the image.
    """

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        hidden = in_channels // 4
        self.conv_down = nn.Conv2D(in_channels, hidden, 3, padding=1, bias_attr=False)
        self.norm_down = nn.BatchNorm2D(hidden)
        self.conv_up = nn.Conv2DTranspose(hidden, hidden, 2, stride=2)
        self.norm_up = nn.BatchNorm2D(hidden)
        self.conv_final = nn.Conv2DTranspose(hidden, 1, 2, stride=2)

    def forward(self, features: paddle.Tensor) -> paddle.Tensor:
        hidden = nn.functional.relu(self.norm_down(self.conv_down(features)))
        hidden = nn.functional.relu(self.norm_up(self.conv_up(hidden)))
        return nn.functional.sigmoid(self.conv_final(hidden))

    def start_from(self, binarize: nn.Layer) -> None:
        """Start as a faint copy of the binarize branch around T = 0.3, the value the maps are read at.

        A trained binarize branch already finds text borders, and its BatchNorm statistics fit these features,
        which matters when statistics are frozen: fresh ones (0, 1) would never become right. Its last layer is
        scaled down until T is nearly flat, so B = sigmoid(k (P - T)) starts as the map P, read at 0.3; scaled
        to nothing, the layers before would get no gradient.
        """
        for ours, theirs in (
            (self.conv_down, binarize.conv_down.convolution),
            (self.norm_down, binarize.conv_down.norm),
            (self.conv_up, binarize.conv_up.convolution),
            (self.norm_up, binarize.conv_up.norm),
        ):
            ours.set_state_dict(theirs.state_dict())
        self.conv_final.weight.set_value(binarize.conv_final.weight * _FAINT)
        logit = math.log(INITIAL_THRESHOLD / (1.0 - INITIAL_THRESHOLD))
        self.conv_final.bias.set_value(paddle.full_like(self.conv_final.bias, logit))


class DBNet(nn.Layer):
    """A PP-OCR detector with DB's three maps.

    Attributes:
        name: key of `ARCHITECTURES`.
        form: "fused" or "branch". The server and v6 networks have no parallel branches; both forms are one.
        threshold_gradient_to_trunk: False cuts the threshold branch's gradient at the neck's output, so that
            a branch that still has all to learn does not pull the pretrained trunk. It alters no map.
        mean_bgr: what `normalise` subtracts, of values 0 to 1, in the order of the image's channels.
        std_bgr: what it divides by.
    """

    mean_bgr = MEAN_BGR
    std_bgr = STD_BGR

    def __init__(self, name: str, form: Form, detector: nn.Layer) -> None:
        super().__init__()
        self.name = name
        self.form: Form = form
        self.threshold_gradient_to_trunk = True
        self.model = detector.model
        self.head = detector.head
        self.threshold = ThresholdBranch(self.binarize.conv_down.convolution._in_channels)
        self.threshold.start_from(self.binarize)

    @property
    def binarize(self) -> nn.Layer:
        """The branch that makes the probability map (in the server network, before its refinement)."""
        return _at_path(self, ARCHITECTURES[self.name].binarize)

    @property
    def recomputable(self) -> list[nn.Layer]:
        """Layers, none inside another, that hold nearly all activations: blocks of the backbone, neck, both heads."""
        backbone = [block for part in self.model.backbone.children() for block in _blocks(part)]
        return [*backbone, self.model.neck, self.head, self.threshold]

    def features(self, images: paddle.Tensor) -> paddle.Tensor:
        """The neck's output, (n, channels, height / 4, width / 4), in the dtype AMP chose.

        Args:
            images: normalised, (n, 3, height, width); sides multiples of 32.
        """
        return self.model(images)

    def forward(self, images: paddle.Tensor) -> paddle.Tensor:
        """The probability map, float (n, 1, height, width), of normalised images (n, 3, height, width)."""
        features = self.features(images)
        with paddle.amp.auto_cast(enable=False):
            return self.head(self._in_head_dtype(features))

    def forward_maps(self, images: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor, paddle.Tensor]:
        """Probability, threshold and binary map, each float (n, 1, height, width), never in half precision.

        The probability map is the one inference uses, also in the server network (the mean of its two maps),
        so that what is trained is what is deployed.
        """
        features = self.features(images)
        # k = 50 multiplies rounding errors by 50, and the Dice sums run over a million pixels: fp32 from here.
        with paddle.amp.auto_cast(enable=False):
            features = self._in_head_dtype(features)
            probability = self.head(features)
            threshold = self.threshold(features if self.threshold_gradient_to_trunk else features.detach())
            binary = nn.functional.sigmoid(BINARIZATION_STEEPNESS * (probability - threshold))
        return probability, threshold, binary

    def _in_head_dtype(self, features: paddle.Tensor) -> paddle.Tensor:
        return features.astype(self.threshold.conv_down.weight.dtype)


def build_network(name: str, form: Form = "fused") -> DBNet:
    """A detector with random weights; `weights.load_weights` gives it trained ones.

    Args:
        name: one of `ARCHITECTURES`.
        form: "fused" (less memory and time, what exported models hold) or "branch" (PaddleOCR's training form).

    Raises:
        UsageError: unknown name or form, or an installed paddlex whose networks are not the expected ones.
    """
    if name not in ARCHITECTURES:
        raise UsageError(f"model.network: expected one of {', '.join(ARCHITECTURES)}, but got {name!r}")
    if form not in ("fused", "branch"):
        raise UsageError(f"model.form: expected 'fused' or 'branch', but got {form!r}")
    detector = _detector(ARCHITECTURES[name])
    drop_idle_parameters(detector)
    if form == "fused":
        to_fused_layers(detector)
    return DBNet(name, form, detector)


def parameter_groups(network: nn.Layer) -> dict[str, list[paddle.Tensor]]:
    """Parameters by part: "backbone", "neck", "head" (probability map) and "threshold"; each in exactly one.

    BatchNorm's running statistics are left out: paddle lists them as parameters, but no gradient reaches them.
    """
    groups: dict[str, list[paddle.Tensor]] = {part: [] for part in _GROUP_PREFIXES}
    for name, parameter in network.named_parameters():
        if not name.endswith(("._mean", "._variance")):
            groups[part_of(name)].append(parameter)
    return groups


def part_of(tensor_name: str) -> str:
    """The part ("backbone", "neck", "head", "threshold") a tensor of a DBNet belongs to.

    Raises:
        KeyError: a name of no DBNet.
    """
    for part, prefixes in _GROUP_PREFIXES.items():
        if tensor_name.startswith(prefixes):
            return part
    raise KeyError(f"{tensor_name!r} starts with none of {_GROUP_PREFIXES}")


def normalise(images: paddle.Tensor, dtype: str = "float32") -> paddle.Tensor:
    """uint8 BGR (n, height, width, 3) to what the networks expect: float (n, 3, height, width).

    Runs where the images are: bytes are a quarter of the floats to copy to a device.
    """
    scale = paddle.to_tensor([SCALE / std for std in STD_BGR], dtype=dtype)
    shift = paddle.to_tensor([-mean / std for mean, std in zip(MEAN_BGR, STD_BGR, strict=True)], dtype=dtype)
    return (images.astype(dtype) * scale + shift).transpose([0, 3, 1, 2])


def _detector(architecture: _Architecture) -> nn.Layer:
    """The network of paddlex, checked to be the one this package was written for."""
    # Without it the import of paddlex asks model hosts whether they are reachable.
    os.environ.setdefault("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")
    modeling = "paddlex.inference.models.text_detection.modeling"
    try:
        layer_class: Any = getattr(importlib.import_module(modeling), architecture.layer)
        detector = layer_class(layer_class.config_class())
    except (ImportError, AttributeError) as fault:
        raise UsageError(_unexpected_paddlex(architecture, str(fault))) from fault
    num_tensors = len(detector.state_dict())
    if num_tensors != architecture.num_tensors:
        raise UsageError(
            _unexpected_paddlex(architecture, f"expected {architecture.num_tensors} tensors, but got {num_tensors}")
        )
    for path in ("model.backbone", "model.neck", f"{architecture.binarize}.conv_down.convolution"):
        if _at_path(detector, path) is None:
            raise UsageError(_unexpected_paddlex(architecture, f"no layer {path}"))
    return detector


def _unexpected_paddlex(architecture: _Architecture, reason: str) -> str:
    return (
        f"the installed paddlex does not hold {architecture.layer} as expected: {reason}; "
        "install the versions this package was checked with: pip install paddleocr==3.7.0 paddlex==3.7.2"
    )


def _blocks(part: nn.Layer) -> list[nn.Layer]:
    """What a stem or an encoder runs one after the other."""
    blocks: list[nn.Layer] = []
    for child in part.children():
        blocks += child if isinstance(child, nn.LayerList) else [child]
    return blocks


def _at_path(layer: nn.Layer, path: str) -> Any:
    found: Any = layer
    for attribute in path.split("."):
        found = getattr(found, attribute, None)
    return found
