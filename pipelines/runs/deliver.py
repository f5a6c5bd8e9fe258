"""`export`, `evaluate` and `predict`: what happens to a model after training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from pipelines.config import Config, PostProcessSection, load_config
from pipelines.dataset import read_image
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.engine.checkpoint import write_text
from pipelines.errors import DataError, UsageError
from pipelines.export import check_in_paddleocr, compare_predictions, export_text_detector
from pipelines.records import TextPrediction
from pipelines.runs.assemble import build_task, setting_of
from pipelines.runs.evaluation import TABLE_COLUMNS, evaluate_records, metrics_row, spread_over_buckets
from pipelines.runs.reporter import Reporter
from pipelines.runs.splits import split_records
from pipelines.text_detection.forms import fuse
from pipelines.text_detection.task import TextDetection

_CHECKED_IMAGES = 20


def export(run: Path, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Write the run's best model for paddleocr, then run val images through paddleocr and compare.

    Raises:
        UsageError: `run` is no run folder, or `out` is somebody else's.
        DataError: paddleocr finds other boxes than the network.
    """
    config, setting, task = _best_of(run, reporter)
    description = json.loads((run / "best" / "description.json").read_text(encoding="utf-8"))
    parts = setting_of(setting)
    export_text_detector(
        fuse(task.network) if config.model.form == "branch" else task.network,
        out,
        resize=parts.resize.to_inference_yml(),
        post_process=setting.model_dump(include=set(_POST_PROCESS))
        | {"max_candidates": parts.post_process.max_candidates},
        meta={"run": run.name, "started_from": config.model.weights, "update": description["update"]},
        model_name=config.export.model_name,
    )
    reporter.note(f"exported to {out}: inference.json, inference.pdiparams, inference.yml")
    records = spread_over_buckets(
        split_records(config.data, "val", reporter), _CHECKED_IMAGES, config.evaluate.bucket_edges_px
    )
    images = [read_image(config.data.root / record.path) for record in records]
    with evaluation_mode(task.network):
        ours = task.predict(images)
    report = compare_predictions(ours, check_in_paddleocr(out, images))
    reporter.note(report.render())
    result = report.to_json()
    write_text(out / "parity.json", json.dumps(result, indent=1))
    if not report.ok:
        raise DataError(
            f"{out}: the exported model does not find the same boxes in paddleocr; see {out / 'parity.json'}"
        )
    return result


def evaluate(config: Config, model: Path | None, split: str, reporter: Reporter) -> dict[str, Any]:
    """Metrics of a run's best model, of an exported folder, or (None) of the configured weights, on a split."""
    records = split_records(config.data, split, reporter)
    if model is None:
        task = build_task(config, setting_of(config.evaluate.setting), reporter)
    elif _is_run(model):
        _, _, task = _best_of(model, reporter)
    else:
        task = build_task(config, setting_of(config.evaluate.setting), reporter, weights=str(model))
    metrics = evaluate_records(task, config.data.root, records, config.evaluate.bucket_edges_px, reporter)
    reporter.table(f"{model or config.model.weights} on {split}", TABLE_COLUMNS, metrics_row("", metrics))
    return metrics


def predict(model: Path, images: Sequence[Path], out: Path, reporter: Reporter) -> Path:
    """Boxes of each image as JSON and drawn, found by a run's best model or by an exported model in paddleocr.

    Raises:
        UsageError: no images, or `out` holds something already.
        DataError: an image can't be read.
    """
    files = _image_files(images)
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} holds something already and is left as it is; choose another --out")
    loaded = [read_image(file) for file in files]
    if _is_run(model):
        task = _best_of(model, reporter)[2]
        with evaluation_mode(task.network):
            predictions = task.predict(loaded)
    else:
        predictions = check_in_paddleocr(model, loaded)
    out.mkdir(parents=True, exist_ok=True)
    found = []
    for number, (file, image, prediction) in enumerate(zip(files, loaded, predictions, strict=True)):
        drawn = f"{number:04d}_{file.stem}.jpg"
        _write_jpeg(out / drawn, draw(image, prediction))
        found.append({"image": str(file), "drawn": drawn, "regions": _as_json(prediction)})
    write_text(out / "predictions.json", json.dumps(found, indent=1, ensure_ascii=False))
    num_regions = sum(len(entry["regions"]) for entry in found)
    reporter.note(f"{num_regions} text regions in {len(files)} images: {out / 'predictions.json'}, drawn beside it")
    return out / "predictions.json"


def draw(image: np.ndarray, prediction: TextPrediction) -> np.ndarray:
    """A copy of the image with each polygon's outline."""
    drawn = image.copy()
    width = max(1, round(max(image.shape[:2]) / 700))
    outlines = [np.round(polygon).astype(np.int32) for polygon in prediction.polygons_px]
    cv2.polylines(drawn, outlines, True, (40, 40, 220), width, cv2.LINE_AA)
    return drawn


_POST_PROCESS = ("binary_threshold", "box_threshold", "unclip_ratio", "box_type")
_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")


def _is_run(folder: Path) -> bool:
    return (folder / "best" / "description.json").is_file()


def _best_of(run: Path, reporter: Reporter) -> tuple[Config, PostProcessSection, TextDetection]:
    """Configuration, setting and task of a run's best model."""
    if not _is_run(run):
        raise UsageError(f"{run} is no run folder: it has no best/description.json; train leaves one under runs/NAME")
    config = load_config(run / "config.yml")
    description = json.loads((run / "best" / "description.json").read_text(encoding="utf-8"))
    setting = PostProcessSection.model_validate(description["setting"])
    task = build_task(config, setting_of(setting), reporter, weights=str(run / "best" / "weights.pdparams"))
    return config, setting, task


def _image_files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(file for file in path.iterdir() if file.suffix.lower() in _IMAGE_SUFFIXES)
        else:
            files.append(path)
    if not files:
        raise UsageError(f"no images: expected files or folders with {', '.join(_IMAGE_SUFFIXES)}")
    return files


def _as_json(prediction: TextPrediction) -> list[dict[str, Any]]:
    return [
        {"points": polygon.round(1).tolist(), "confidence": round(float(confidence), 4)}
        for polygon, confidence in zip(prediction.polygons_px, prediction.confidences, strict=True)
    ]


def _write_jpeg(file: Path, image: np.ndarray) -> None:
    # imencode and write_bytes: OpenCV itself can't write to every path
    file.write_bytes(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes())
