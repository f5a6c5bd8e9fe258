"""A text detector as the folder that `paddleocr.TextDetection(model_name=..., model_dir=...)` loads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paddle

from pipelines.errors import UsageError
from pipelines.export.model_folder import frozen_copy, read_description, write_model_folder

_DEFAULT_LIMIT_SIDE = 960  # what paddleocr takes where the file names none
_POST_PROCESS_KEYS = ("binary_threshold", "box_threshold", "unclip_ratio", "max_candidates", "box_type")


def export_text_detector(
    network: paddle.nn.Layer,
    out: Path,
    *,
    resize: Mapping[str, int],
    post_process: Mapping[str, Any],
    meta: Mapping[str, Any] | None = None,
    model_name: str | None = None,
) -> Path:
    """Write a model folder; it appears whole or not at all, and never replaces a folder made by others.

    Args:
        network: normalised images (n, 3, height, width) to probability map; with attributes `name`, `mean_bgr`
            and `std_bgr`. It is copied, not changed. Fused form runs fastest.
        out: folder to make. An earlier export in its place is replaced.
        resize: the entry of `DetResizeForTest`, see `ResizeRule.to_inference_yml`.
        post_process: binary_threshold, box_threshold, unclip_ratio, max_candidates and box_type.
        meta: where the model comes from (source weights, run, metrics), for the reader.
        model_name: paddleocr's name of the architecture; default: `network.name` + "_det".

    Returns:
        `out`.

    Raises:
        UsageError: `out` exists and is no earlier export, or a setting is missing.
    """
    model_name = model_name or f"{network.name}_det"
    description = inference_description(network, model_name, resize, post_process)
    images = paddle.static.InputSpec([None, 3, None, None], "float32", name="x")
    provenance = {"model_name": model_name, **dict(meta or {})}
    write_model_folder(out, frozen_copy(network), [images], description, provenance)
    return out


def inference_description(
    network: paddle.nn.Layer, model_name: str, resize: Mapping[str, int], post_process: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of `inference.yml`, laid out as in the official models of paddleocr 3."""
    missing = [key for key in _POST_PROCESS_KEYS if key not in post_process]
    if missing:
        raise UsageError(f"post_process: expected {', '.join(_POST_PROCESS_KEYS)}, but {', '.join(missing)} is missing")
    normalise = {"mean": list(network.mean_bgr), "order": "hwc", "scale": "1./255.", "std": list(network.std_bgr)}
    return {
        "Global": {"model_name": model_name},
        "PreProcess": {
            "transform_ops": [
                {"DecodeImage": {"channel_first": False, "img_mode": "BGR"}},
                {"DetResizeForTest": dict(resize)},
                {"NormalizeImage": normalise},
                {"ToCHWImage": None},
                {"KeepKeys": {"keep_keys": ["image", "shape", "polys", "ignore_tags"]}},
            ]
        },
        "PostProcess": {
            "name": "DBPostProcess",
            "thresh": post_process["binary_threshold"],
            "box_thresh": post_process["box_threshold"],
            "unclip_ratio": post_process["unclip_ratio"],
            "max_candidates": post_process["max_candidates"],
            "box_type": post_process["box_type"],
        },
    }


def read_settings(folder: Path) -> dict[str, Any]:
    """What an exported or official folder's inference.yml says about resize and post-processing, in our names."""
    content = read_description(folder)
    operators = {name: options for entry in content["PreProcess"]["transform_ops"] for name, options in entry.items()}
    resize, post = operators.get("DetResizeForTest") or {}, content["PostProcess"]
    return {
        "limit_side": resize.get("resize_long", _DEFAULT_LIMIT_SIDE),
        "binary_threshold": post["thresh"],
        "box_threshold": post["box_thresh"],
        "unclip_ratio": post["unclip_ratio"],
        "box_type": post.get("box_type", "quad"),
    }
