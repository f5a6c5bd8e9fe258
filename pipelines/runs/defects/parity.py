"""The exported detector against the network it came from: our tiling on its graph, and paddlex on single tiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipelines.dataset import read_image
from pipelines.defect_detection.setting import Setting, padded, resized
from pipelines.defect_detection.task import DefectDetection
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.errors import DataError
from pipelines.export import ParityReport, check_in_paddlex, compare_defect_predictions, exported_defect_detector
from pipelines.records import Record
from pipelines.runs.reporter import Reporter

_CHECKED_IMAGES = 20


def check_export(
    task: DefectDetection, out: Path, root: Path, records: Sequence[Record], reporter: Reporter
) -> ParityReport:
    """Run val images through the exported folder, defective ones first.

    Returns:
        How paddlex, given single tiles, compares with the network.

    Raises:
        DataError: the folder's graph under our own tiling finds other boxes than the network.
    """
    chosen = sorted(records, key=lambda record: record.annotation.is_ok)[:_CHECKED_IMAGES]
    images = [read_image(root / record.path) for record in chosen]
    detect = exported_defect_detector(out)
    with evaluation_mode(task.network):
        whole = compare_defect_predictions(task.predict(images), [detect(image) for image in images])
        tiles = [square_tile(image, task.setting) for image in images]
        ours = task.predict_tiles(tiles)
    reporter.note(f"the exported graph on {len(images)} whole images: {whole.render()}")
    if not whole.ok:
        raise DataError(f"{out}: the exported graph does not find the same boxes as the network on whole images")
    return compare_defect_predictions(ours, check_in_paddlex(out, tiles))


def square_tile(image: np.ndarray, setting: Setting) -> np.ndarray:
    """The first tile of an image as the exported graph takes it, grey where the image ends."""
    scaled = resized(image, setting.scale.of((image.shape[0], image.shape[1])))
    return padded(scaled[: setting.tile_px, : setting.tile_px], setting.tile_px)
