"""`predict`: boxes of a user's images, as JSON and drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from pipelines.dataset import read_image
from pipelines.engine.checkpoint import write_text
from pipelines.errors import UsageError
from pipelines.records import TextPrediction
from pipelines.runs.models import detector_of
from pipelines.runs.reporter import Reporter

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")


def predict(model: Path, images: Sequence[Path], out: Path, reporter: Reporter) -> Path:
    """Find text in image files or folders of them; one image is in memory at a time.

    Raises:
        UsageError: no images, or `out` holds something already.
        DataError: an image can't be read.
    """
    files = image_files(images)
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} holds something already and is left as it is; choose another --out")
    detect = detector_of(model, reporter)
    out.mkdir(parents=True, exist_ok=True)
    found = []
    with reporter.progress(len(files), "predicting") as bar:
        for number, file in enumerate(files):
            image = read_image(file)
            prediction = detect(image)
            drawn = f"{number:04d}_{file.stem}.jpg"
            _write_jpeg(out / drawn, draw(image, prediction))
            found.append({"image": str(file), "drawn": drawn, "regions": as_json(prediction)})
            bar.advance()
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


def as_json(prediction: TextPrediction) -> list[dict[str, Any]]:
    """Points in source pixels and confidence of each region."""
    return [
        {"points": polygon.round(1).tolist(), "confidence": round(float(confidence), 4)}
        for polygon, confidence in zip(prediction.polygons_px, prediction.confidences, strict=True)
    ]


def image_files(paths: Sequence[Path]) -> list[Path]:
    """Files as given, folders as the images in them.

    Raises:
        UsageError: that makes none, or a path does not exist.
    """
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise UsageError(f"{missing[0]}: no such file or folder")
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(file for file in path.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES)
        else:
            files.append(path)
    if not files:
        raise UsageError(f"no images: expected files or folders with {', '.join(IMAGE_SUFFIXES)}")
    return files


def _write_jpeg(file: Path, image: np.ndarray) -> None:
    # imencode and write_bytes: OpenCV itself can't write to every path
    file.write_bytes(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes())
