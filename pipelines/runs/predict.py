"""`predict`: what a model finds in a user's images, as JSON and drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from pipelines.dataset import read_image
from pipelines.dataset.image_files import unused_pictures_of
from pipelines.engine.retry import with_second_try
from pipelines.errors import UsageError
from pipelines.folders import write_text
from pipelines.runs.models import finder_of
from pipelines.runs.reporter import Reporter

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp")


def predict(
    model: Path, images: Sequence[Path], out: Path, reporter: Reporter, confidence: float | None = None
) -> Path:
    """Find text or defects in image files or folders of them; one image is in memory at a time.

    Args:
        model: run or exported folder.
        images: files and folders.
        out: folder for `predictions.json` and the drawings.
        reporter: who tells the user.
        confidence: what is found with less is left out; None: the threshold of the model.

    Raises:
        UsageError: no images, `out` holds something already, or a confidence that is none.
        DataError: an image can't be read.
        OutOfMemoryError: an image does not fit in memory, at the second try neither.
    """
    if confidence is not None and not 0 <= confidence <= 1:
        raise UsageError(f"--confidence must lie between 0 and 1, but got {confidence:g}")
    files = image_files(images)
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} holds something already and is left as it is; choose another --out")
    detect, presentation = finder_of(model, confidence, reporter)
    out.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with reporter.progress(len(files), "predicting") as bar:
        for number, file in enumerate(files):
            image, unused = read_image(file), unused_pictures_of(file)
            if unused:
                reporter.warn(f"{file} {unused}")
            shown = f"{image.shape[0]} x {image.shape[1]} px"
            told = f"{file}: looking at {shown} does not fit in memory; free some, or predict on a larger device"
            prediction = presentation.confident(with_second_try(partial(detect, image), told))
            drawn = f"{number:04d}_{file.stem}.jpg"
            _write_jpeg(out / drawn, presentation.draw(image, prediction))
            found.append({"image": str(file), "drawn": drawn, presentation.key: presentation.as_json(prediction)})
            bar.advance()
    write_text(out / "predictions.json", json.dumps(found, indent=1, ensure_ascii=False))
    if presentation.note:
        reporter.warn(presentation.note)
    said = presentation.summary([len(entry[presentation.key]) for entry in found])
    reporter.note(f"{said}: {out / 'predictions.json'}, drawn beside it")
    return out / "predictions.json"


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
