"""A PaddleDetection detector as one layer: images in, what the head says at every anchor point out.

`ppdet` builds backbone, neck and head from its own YAML (configs/defect_detection/ppdet). Its trainer, readers,
losses and post-processing are not used: they divide by sums over one micro-batch.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paddle
from paddle import nn

from pipelines.defect_detection.heads import Dense, dense_outputs, head_kind
from pipelines.errors import UsageError

NETWORKS = Path(__file__).resolve().parents[2] / "configs" / "defect_detection" / "ppdet"
PARTS = ("backbone", "neck", "head")
CLASS_CONVOLUTION = re.compile(r"head\.(head_cls(_list\.)?\d+|pred_cls\.\d+)\.(weight|bias)")
"""Tensors that tell classes apart; in the legacy head the same tensors also give the distances."""
STRIDE_PX = 32
"""Sides of the input are multiples of this: the coarsest map that backbone and neck add without cropping."""

# ImageNet's statistics in R, G, B order, as in PaddleDetection's readers for these models (Decode gives RGB).
_MEAN_RGB = (0.485, 0.456, 0.406)
_STD_RGB = (0.229, 0.224, 0.225)


class Detector(nn.Layer):
    """Backbone, neck and head under these names.

    Args:
        name: of the network, for messages and for the exported model.
        detector: what ppdet built.
        class_names: in the order of class ids.
    """

    def __init__(self, name: str, detector: nn.Layer, class_names: tuple[str, ...]):
        super().__init__()
        self.name = name
        self.class_names = class_names
        self.backbone = detector.backbone
        self.neck = detector.neck
        self.head = getattr(detector, "yolo_head", None) or detector.head
        self.kind = head_kind(self.head)
        # PP-YOLOE+ of the zoo was trained on plain 0 to 1 images
        is_plain = self.kind == "PPYOLOEHead"
        self.mean_rgb, self.std_rgb = ((0.0,) * 3, (1.0,) * 3) if is_plain else (_MEAN_RGB, _STD_RGB)

    def forward(self, images: paddle.Tensor) -> Dense:
        """What the head says.

        Args:
            images: uint8 BGR (n, height, width, 3), sides multiples of 32.
        """
        return self.dense(self.normalise(images))

    def dense(self, pixels: paddle.Tensor) -> Dense:
        """What the head says of normalised images, float RGB (n, 3, height, width)."""
        return dense_outputs(self.head, self.neck(self.backbone({"image": pixels})))

    def normalise(self, images: paddle.Tensor) -> paddle.Tensor:
        """uint8 BGR (n, height, width, 3) to float RGB (n, 3, height, width), in the dtype of the weights."""
        pixels = images.astype(self.dtype).flip(-1) / 255.0
        pixels = (pixels - paddle.to_tensor(self.mean_rgb, pixels.dtype)) / paddle.to_tensor(self.std_rgb, pixels.dtype)
        return pixels.transpose([0, 3, 1, 2])

    @property
    def recomputable(self) -> list[nn.Layer]:
        """Layers, none inside another, that hold nearly all activations: the backbone's blocks, neck, head's features.

        The head itself is never called (`heads` takes it apart), so its layers of features stand for it.
        """
        backbone: list[nn.Layer] = []
        for part in self.backbone.children():
            backbone += part if isinstance(part, nn.Sequential) else [part]
        is_plus = self.kind == "PPYOLOEHead"
        features = [*self.head.stem_cls, *self.head.stem_reg] if is_plus else [self.head.conv_feat]
        return [*backbone, self.neck, *features]

    @property
    def dtype(self) -> str:
        return str(next(iter(self.parameters())).dtype).removeprefix("paddle.")


def build_network(network: str, class_names: tuple[str, ...]) -> Detector:
    """Build a detector for these classes, with ppdet's own initial weights.

    Args:
        network: a name under configs/defect_detection/ppdet, or the path of a ppdet YAML file.
        class_names: in the order of class ids; their number is the network's.

    Raises:
        UsageError: no such network, no ppdet, or an architecture that has no adapter.
    """
    file = network_file(network)
    workspace = _ppdet_workspace()
    with _fresh(workspace), paddle.utils.unique_name.guard():
        try:
            _require_plain(workspace.yaml.safe_load(file.read_text(encoding="utf-8")))
            config = workspace.load_config(str(file))
            config["num_classes"] = len(class_names)
            detector = workspace.create(config["architecture"])
        except (KeyError, TypeError, ValueError, AssertionError, workspace.yaml.YAMLError) as fault:
            raise UsageError(f"{file}: ppdet can't build it: {type(fault).__name__}: {fault}") from fault
    return Detector(file.stem, detector, class_names)


def _require_plain(content: Any) -> None:
    """Refuse what ppdet would read with a loader that runs code: its own, of this file and of every file below it."""
    if not isinstance(content, dict):
        raise ValueError(f"expected sections, but got {type(content).__name__}")
    if "_BASE_" in content:
        raise ValueError("_BASE_ is not followed: write one whole file, as those under configs/ are")


def network_file(network: str) -> Path:
    """The ppdet YAML of a network's name or path.

    Raises:
        UsageError: there is none.
    """
    file = Path(network) if network.endswith((".yml", ".yaml")) else NETWORKS / f"{network}.yml"
    if not file.is_file():
        known = ", ".join(sorted(path.stem for path in NETWORKS.glob("*.yml")))
        raise UsageError(f"model.network {network!r}: no such network; expected {known}, or the path of a ppdet YAML")
    return file


def parameter_groups(network: Detector) -> dict[str, list[paddle.Tensor]]:
    """Trainable parameters by part; BatchNorm's statistics and fixed tables left out.

    "classes" are the convolutions that tell classes apart and nothing else: new for every list of classes, so they may
    need a higher learning rate than the rest of the head. The legacy head has none: its last convolutions also give
    the distances.
    """
    groups: dict[str, list[paddle.Tensor]] = {part: [] for part in (*PARTS, "classes")}
    for name, parameter in network.named_parameters():
        if parameter.stop_gradient or name.endswith(("._mean", "._variance")):
            continue
        is_class = network.kind != "PicoHead" and CLASS_CONVOLUTION.fullmatch(name)
        groups["classes" if is_class else name.split(".", 1)[0]].append(parameter)
    return {part: parameters for part, parameters in groups.items() if parameters}


def _ppdet_workspace() -> Any:
    """ppdet's builder, its import-time chatter silenced."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            import ppdet.modeling  # registers the layers
            from ppdet.core import workspace
        except ImportError as fault:
            raise UsageError(
                f"defect detection needs paddledet 2.6.0, but importing it failed: {fault}; install it with"
                " pip install --no-deps paddledet==2.6.0 and what requirements/cpu.txt lists beside it"
            ) from fault
    assert ppdet.modeling
    return workspace


@contextmanager
def _fresh(workspace: Any) -> Iterator[None]:
    """Undo what building leaves in ppdet's one global configuration: the next network would inherit it."""
    before = dict(workspace.global_config)
    for name, entry in before.items():
        workspace.global_config[name] = entry.copy() if hasattr(entry, "copy") else entry
    try:
        yield
    finally:
        workspace.global_config.clear()
        workspace.global_config.update(before)
