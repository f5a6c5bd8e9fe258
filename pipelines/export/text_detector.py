"""A text detector as the folder that `paddleocr.TextDetection(model_name=..., model_dir=...)` loads.

The folder holds `inference.json` (the graph), `inference.pdiparams` (the weights), `inference.yml` (what to do
before and after) and `wholebatch.yml` (where it came from). In the graph every tensor keeps its name in the
network, so an exported model is also a starting point for the next fine-tuning.
"""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paddle
import yaml

from pipelines.errors import UsageError

PROVENANCE_FILE = "wholebatch.yml"
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
    _require_own_folder(out)
    model_name = model_name or f"{network.name}_det"
    description = inference_description(network, model_name, resize, post_process)
    out.parent.mkdir(parents=True, exist_ok=True)
    # A sibling, so that the rename stays on one file system and is one step.
    being_written = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        _save_graph(network, being_written / "inference")
        _write_yaml(being_written / "inference.yml", description)
        provenance = {"model_name": model_name, "paddle": paddle.__version__, **dict(meta or {})}
        _write_yaml(being_written / PROVENANCE_FILE, provenance)
        being_written.chmod(0o755)  # mkdtemp makes it private
        _replace_folder(out, being_written)
    finally:
        shutil.rmtree(being_written, ignore_errors=True)
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
    content = yaml.safe_load((folder / "inference.yml").read_text(encoding="utf-8"))
    operators = {name: options for entry in content["PreProcess"]["transform_ops"] for name, options in entry.items()}
    resize, post = operators.get("DetResizeForTest") or {}, content["PostProcess"]
    return {
        "limit_side": resize.get("resize_long", _DEFAULT_LIMIT_SIDE),
        "binary_threshold": post["thresh"],
        "box_threshold": post["box_thresh"],
        "unclip_ratio": post["unclip_ratio"],
        "box_type": post.get("box_type", "quad"),
    }


def _save_graph(network: paddle.nn.Layer, stem: Path) -> None:
    """The network's forward as a static graph with free batch size, height and width."""
    # Names are changed below, and optimizers find their state by name: never touch the network in training.
    exported = copy.deepcopy(network)
    exported.to(dtype="float32")
    exported.eval()
    for name, tensor in exported.state_dict().items():
        tensor.name = name
    images = paddle.static.InputSpec([None, 3, None, None], "float32", name="x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # paddle's own notes on its graph passes
        paddle.jit.save(paddle.jit.to_static(exported, input_spec=[images], full_graph=True), str(stem))


def _replace_folder(out: Path, new: Path) -> None:
    """Put `new` where `out` is; what was there goes only once the new folder has its place."""
    earlier = new.with_name(f"{new.name}.earlier")
    if out.exists():
        os.replace(out, earlier)
    os.replace(new, out)
    shutil.rmtree(earlier, ignore_errors=True)


def _require_own_folder(out: Path) -> None:
    if not out.exists() or (out / PROVENANCE_FILE).is_file():
        return
    if out.is_dir() and not any(out.iterdir()):
        return
    raise UsageError(f"{out}: exists and is no export of this program; remove it or choose another folder")


def _write_yaml(file: Path, content: Mapping[str, Any]) -> None:
    file.write_text(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True), encoding="utf-8")
