"""What Paddle's own programs find with an exported folder: paddleocr for text, paddlex for defects."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.errors import DataError, UsageError
from pipelines.export.defect_detector import exported_setting
from pipelines.export.model_folder import DESCRIPTION_FILE, PROVENANCE_FILE, read_description
from pipelines.records import DefectPrediction, TextPrediction


def paddleocr_detector(model_dir: Path, *, device: str = "cpu") -> Callable[[np.ndarray], TextPrediction]:
    """`paddleocr.TextDetection` on an exported folder and nothing else: no setting is passed.

    Args:
        model_dir: an exported model with its `inference.yml`.
        device: as paddleocr names it, "cpu" or "gpu:0".

    Returns:
        From an image, uint8 BGR (height, width, 3) of any size, to what paddleocr finds in it.

    Raises:
        UsageError: paddleocr is not installed, or the folder holds no model.
        DataError: paddleocr refuses the model.
    """
    read_description(model_dir)
    _ask_no_model_host()
    try:
        from paddleocr import TextDetection
    except ImportError as fault:
        raise UsageError("paddleocr is not installed: pip install paddleocr==3.7.0") from fault
    detector = _loaded(TextDetection, model_dir, device, "paddleocr")
    # One image a call: a batch would be padded or refused when sizes differ.
    return lambda image: _text(next(iter(detector.predict(image))))


def paddlex_detector(model_dir: Path, *, device: str = "cpu") -> Callable[[np.ndarray], DefectPrediction]:
    """`paddlex.create_model` on an exported folder, told only to show unlikely findings too.

    Args:
        model_dir: an exported defect detector.
        device: as paddlex names it, "cpu" or "gpu:0".

    Returns:
        From an image, uint8 BGR (height, width, 3), to what paddlex finds in it as one view. Class ids are those of
        the network, by the names that paddlex gives.

    Raises:
        UsageError: paddlex is not installed, or the folder holds no defect detector.
        DataError: paddlex refuses the model.
    """
    floor = float(exported_setting(model_dir).confidence_floor)
    class_names = read_description(model_dir, PROVENANCE_FILE)["classes"]
    _ask_no_model_host()
    try:
        from paddlex import create_model
    except ImportError as fault:
        raise UsageError("paddlex is not installed: pip install paddlex==3.7.2") from fault
    detector = _loaded(create_model, model_dir, device, "paddlex")
    return lambda image: _defects(next(iter(detector.predict(image, threshold=floor))), class_names)


def check_in_paddleocr(model_dir: Path, images: Sequence[np.ndarray], *, device: str = "cpu") -> list[TextPrediction]:
    """What `paddleocr_detector` finds in each image."""
    detect = paddleocr_detector(model_dir, device=device)
    return [detect(image) for image in images]


def check_in_paddlex(model_dir: Path, images: Sequence[np.ndarray], *, device: str = "cpu") -> list[DefectPrediction]:
    """What `paddlex_detector` finds in each image."""
    detect = paddlex_detector(model_dir, device=device)
    return [detect(image) for image in images]


def _ask_no_model_host() -> None:
    """Else paddlex asks model hosts whether they are reachable."""
    os.environ.setdefault("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")


def _loaded(load: Callable[..., Any], model_dir: Path, device: str, program: str) -> Any:
    try:
        model_name = read_description(model_dir)["Global"]["model_name"]
    except (KeyError, TypeError) as fault:
        raise DataError(f"{model_dir / DESCRIPTION_FILE}: no Global.model_name; export the model again") from fault
    try:
        return load(model_name=model_name, model_dir=str(model_dir), device=device)
    except Exception as fault:
        raise DataError(f"{model_dir}: {program} can't load it as {model_name}: {fault}") from fault


def _text(result: Mapping[str, Any]) -> TextPrediction:
    polygons = tuple(np.asarray(polygon, np.float32).reshape(-1, 2) for polygon in result["dt_polys"])
    return TextPrediction(polygons, np.asarray(result["dt_scores"], np.float32).reshape(-1))


def _defects(result: Mapping[str, Any], class_names: Sequence[str]) -> DefectPrediction:
    found = result["boxes"]
    unknown = {box["label"] for box in found} - set(class_names)
    if unknown:
        raise DataError(f"paddlex finds classes that the model does not have: {sorted(unknown)}; export it again")
    return DefectPrediction(
        np.array([box["coordinate"] for box in found], np.float32).reshape(-1, 4),
        np.array([class_names.index(box["label"]) for box in found], np.int64),
        np.array([box["score"] for box in found], np.float32),
    )
