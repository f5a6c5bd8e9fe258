"""The exported detector against its network: the graph under our own tiles, and paddlex on single views."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipelines.dataset import read_image
from pipelines.defect_detection.setting import Setting, in_view, resized
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
        How paddlex, given single views, compares with the network; if no image has a view of the size that paddlex
        leaves as it is, how the graph under our own tiles does.

    Raises:
        DataError: the folder's graph under our own tiles finds other boxes than the network.
    """
    chosen = sorted(records, key=lambda record: record.annotation.is_ok)[:_CHECKED_IMAGES]
    images = [read_image(root / record.path) for record in chosen]
    detect = exported_defect_detector(out)
    views = [view for image in images if max((view := first_view(image, task.setting)).shape) == task.setting.side_px]
    with evaluation_mode(task.network):
        whole = compare_defect_predictions(task.predict(images), [detect(image) for image in images])
        find = task.setting.finder(task.network)
        ours = [in_view(find, view) for view in views]
    if not whole.ok:
        raise DataError(f"{out}: the exported graph finds other boxes than the network: {whole.render()}")
    reporter.note(f"the exported graph finds the same on {len(images)} whole images: {whole.num_equal} equal boxes")
    if not views:
        reporter.warn(
            f"no image fills a view of {task.setting.side_px} px, so paddlex, which would scale, was not asked"
        )
        return whole
    return compare_defect_predictions(ours, check_in_paddlex(out, views))


def first_view(image: np.ndarray, setting: Setting) -> np.ndarray:
    """The top left tile of an image at the setting's scale, as it is cut: not padded."""
    scaled = resized(image, setting.scale.of((image.shape[0], image.shape[1])))
    return scaled[: setting.tile_px, : setting.tile_px]
