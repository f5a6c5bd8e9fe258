"""An exported defect detector on images of any size: its graph alone, under the scale and tiles it was evaluated at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from pipelines.defect_detection.setting import Find, as_prediction
from pipelines.errors import DataError, UsageError
from pipelines.export.defect_detector import exported_class_names, exported_setting
from pipelines.export.model_folder import DESCRIPTION_FILE, read_description
from pipelines.records import DefectPrediction

_NUM_CACHED_SHAPES = 8
"""For which oneDNN keeps what it prepared: a service that sees images of all sizes must not grow for ever."""
_GPU_MEMORY_MB = 256  # to begin with


def exported_defect_detector(folder: Path, *, device: str = "cpu") -> Callable[[np.ndarray], DefectPrediction]:
    """A detector from an exported folder and nothing else.

    Args:
        folder: made by `export_defect_detector`.
        device: "cpu", "gpu" or "gpu:1".

    Returns:
        From an image, uint8 BGR (height, width, 3) of any size, to what is found in it, class ids as in
        `exported_class_names`.

    Raises:
        UsageError: the folder is no exported defect detector.
        DataError: its files can't be read or do not fit each other.
    """
    setting = exported_setting(folder)
    exported_class_names(folder)
    find = _graph(folder, device)
    return lambda image: setting.detect_with(find, image)


def _graph(folder: Path, device: str) -> Find:
    """The folder's graph as what tiling asks for."""
    predictor = _predictor(folder, device)
    mean, std = _normalisation(folder)
    image, scale_factor = (predictor.get_input_handle(name) for name in ("image", "scale_factor"))
    rows = predictor.get_output_handle(predictor.get_output_names()[0])

    def find(view: np.ndarray) -> DefectPrediction:
        pixels = (view[:, :, ::-1].astype(np.float32) / np.float32(255) - mean) / std
        for handle, value in ((image, pixels.transpose(2, 0, 1)[None]), (scale_factor, np.ones((1, 2), np.float32))):
            handle.copy_from_cpu(np.ascontiguousarray(value))
        predictor.run()
        return as_prediction(rows.copy_to_cpu())

    return find


def _predictor(folder: Path, device: str) -> Any:
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "gpu") or (number and not number.isdigit()):
        raise UsageError(f"device: expected cpu, gpu or gpu:N, but got {device!r}")
    config = paddle.inference.Config(*(str(folder / f"inference.{suffix}") for suffix in ("json", "pdiparams")))
    config.disable_glog_info()
    if kind == "gpu":
        config.enable_use_gpu(_GPU_MEMORY_MB, int(number or 0))
    else:
        config.set_cpu_math_library_num_threads(os.cpu_count() or 1)
        config.set_mkldnn_cache_capacity(_NUM_CACHED_SHAPES)
    try:
        return paddle.inference.create_predictor(config)
    except Exception as fault:  # paddle raises whatever its C++ side threw
        raise DataError(f"{folder}: paddle {paddle.__version__} can't load the graph: {fault}") from fault


def _normalisation(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """What to take from R, G, B on a scale of 0 to 1, and by what to divide it then; float32 (3,) each."""
    steps = {step.get("type"): step for step in read_description(folder).get("Preprocess", ())}
    try:
        step = steps["NormalizeImage"]
        return np.array(step["mean"], np.float32).reshape(3), np.array(step["std"], np.float32).reshape(3)
    except (KeyError, ValueError) as fault:
        raise DataError(
            f"{folder / DESCRIPTION_FILE}: NormalizeImage with three means and stds was expected in Preprocess, but"
            f" reading it failed: {fault!r}; export the model again"
        ) from fault
