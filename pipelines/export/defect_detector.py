"""A defect detector as the folder that `paddlex.create_model(model_name=..., model_dir=...)` loads.

paddlex looks at an image as one view: it scales the longest side to the network's. Scale and tiles are this program's;
`wholebatch.yml` holds them, and `pipelines.export.tiled` looks at an image as training's evaluation did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import paddle

from pipelines.defect_detection.network import STRIDE_PX, Detector
from pipelines.defect_detection.setting import PADDING_GREY, Setting
from pipelines.errors import DataError, UsageError
from pipelines.export.model_folder import (
    DESCRIPTION_FILE,
    PROVENANCE_FILE,
    frozen_copy,
    name_tensors,
    read_description,
    write_model_folder,
)

_LINEAR, _AREA = 1, 3  # OpenCV's numbers
_GREY = PADDING_GREY / 255
_DEFAULT_THRESHOLD = 0.5


def export_defect_detector(
    network: Detector,
    out: Path,
    *,
    setting: Setting,
    class_names: Sequence[str],
    meta: Mapping[str, Any] | None = None,
    model_name: str | None = None,
    threshold: float | None = None,
) -> Path:
    """Write a model folder; it appears whole or not at all, and never replaces a folder made by others.

    Args:
        network: copied, not changed.
        out: folder to make. An earlier export in its place is replaced.
        setting: at which the network was evaluated.
        class_names: in the order of class ids.
        meta: where the model comes from (source weights, run, metrics), for the reader.
        model_name: paddlex's name of an object detector; default: the nearest relative of the network.
        threshold: confidence from which paddlex shows a finding, unless it is told another; None: 0.5.

    Returns:
        `out`.

    Raises:
        UsageError: `out` exists and is no earlier export, or the class names are not the network's.
    """
    if tuple(class_names) != network.class_names:
        raise UsageError(f"class_names: the network has {list(network.class_names)}, but got {list(class_names)}")
    model_name = model_name or paddlex_name(network)
    inputs = [
        paddle.static.InputSpec([None, 3, None, None], "float32", name="image"),
        paddle.static.InputSpec([None, 2], "float32", name="scale_factor"),
    ]
    write_model_folder(
        out,
        _ExportedDetector(network, setting),
        inputs,
        inference_description(network, model_name, setting, threshold),
        {"model_name": model_name, "classes": list(class_names), "view": setting.to_view(), **dict(meta or {})},
    )
    return out


def paddlex_name(network: Detector) -> str:
    """The object detector of paddlex that reads this network's folder; it has no name for PicoDet on LCNet x1.0."""
    if network.kind != "PPYOLOEHead":
        return "PicoDet-S"
    size = network.name.rpartition("_")[2].upper()
    return f"PP-YOLOE_plus-{size if size in ('S', 'M', 'L', 'X') else 'S'}"


def inference_description(
    network: Detector, model_name: str, setting: Setting, threshold: float | None
) -> dict[str, Any]:
    """The content of `inference.yml`, laid out as in the official object detectors of paddlex 3.

    An image is scaled to the network's longest side and filled up with grey to multiples of 32, as evaluation does it
    (the official models stretch it to a square). paddlex fills up with zeros after normalisation, so here that is
    the distance from grey; the network's own normalisation is in the graph.
    """
    side_px = setting.side_px
    shrinks = setting.scale.longest_side_px is not None or setting.scale.scale < 1
    return {
        "mode": "paddle",
        # paddlex takes no whole number for a threshold
        "draw_threshold": _DEFAULT_THRESHOLD if threshold is None else float(threshold),
        "metric": "COCO",
        "use_dynamic_shape": True,
        "Global": {"model_name": model_name},
        "arch": "PPYOLOE" if network.kind == "PPYOLOEHead" else "PicoDet",
        "Preprocess": [
            {
                "type": "Resize",
                "target_size": [side_px, side_px],
                "keep_ratio": True,
                "interp": _AREA if shrinks else _LINEAR,
            },
            {
                "type": "NormalizeImage",
                "mean": [_GREY] * 3,
                "std": [1.0] * 3,
                "norm_type": "mean_std",
                "is_scale": True,
            },
            {"type": "Permute"},
            {"type": "PadStride", "stride": STRIDE_PX},
        ],
        "label_list": list(network.class_names),
    }


def read_defect_settings(folder: Path) -> dict[str, Any]:
    """How an exported folder wants an image looked at, in the names of a configuration's `evaluate.view`.

    Raises:
        UsageError: the folder is no export of this program, or one of a text detector.
        DataError: its files can't be read.
    """
    provenance = read_description(folder, PROVENANCE_FILE)
    view = provenance.get("view")
    if not isinstance(view, dict):
        raise UsageError(f"{folder / PROVENANCE_FILE}: names no view, so this is no exported defect detector")
    return view


def exported_setting(folder: Path) -> Setting:
    """`read_defect_settings` as the value that detects with it.

    Raises:
        UsageError, DataError: as there, and for a view with names or values that are none.
    """
    view = read_defect_settings(folder)
    try:
        return Setting.from_view(view)
    except (KeyError, ValueError, TypeError) as fault:
        raise DataError(f"{folder / PROVENANCE_FILE}: view: {fault}; export the model again") from fault


def exported_class_names(folder: Path) -> tuple[str, ...]:
    """Class names in the order of class ids, of which the folder's two files must agree.

    Raises:
        UsageError: the folder is no export of this program.
        DataError: its files can't be read, or name other classes.
    """
    ours = read_description(folder, PROVENANCE_FILE).get("classes")
    theirs = read_description(folder).get("label_list")
    if not ours or ours != theirs:
        raise DataError(
            f"{folder}: {PROVENANCE_FILE} and {DESCRIPTION_FILE} must name the same classes, but they have {ours}"
            f" and {theirs}; export the model again"
        )
    return tuple(ours)


class _ExportedDetector(paddle.nn.Layer):
    """Images as paddlex prepares them to its rows of boxes."""

    def __init__(self, network: Detector, setting: Setting):
        super().__init__()
        self.network = _fused_copy(network)
        self.setting = setting
        self._normalisation = (network.mean_rgb, network.std_rgb)

    def forward(self, image: paddle.Tensor, scale_factor: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        """What `Setting.suppressed` keeps, in pixels of the image before it was scaled.

        Args:
            image: float32 RGB (n, 3, height, width), on a scale of 0 to 1 less grey, sides multiples of 32.
            scale_factor: float32 (n, 2), network pixels per image pixel along y and x.
        """
        return self._found(image, scale_factor)

    # Run as it is, not rewritten: rewriting ppdet's sources takes half a minute, and puts conditions into the graph.
    @paddle.jit.not_to_static
    def _found(self, image: paddle.Tensor, scale_factor: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        mean, std = (paddle.to_tensor(values).reshape([3, 1, 1]) for values in self._normalisation)
        dense = self.network.dense((image + _GREY - mean) / std)
        factors_xyxy = scale_factor.flip(-1).tile([1, 2]).unsqueeze(1)
        return self.setting.suppressed(dense.boxes_px / factors_xyxy, dense.scores)


def _fused_copy(network: Detector) -> Detector:
    """A copy whose RepVGG blocks, where it has any, are one convolution each, as in PaddleDetection's own exports."""
    fused = frozen_copy(network)
    for layer in fused.sublayers():
        if hasattr(layer, "convert_to_deploy"):
            layer.convert_to_deploy()
    name_tensors(fused)
    return fused
