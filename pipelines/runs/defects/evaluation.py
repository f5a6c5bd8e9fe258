"""Evaluate a detector on a split: whole images, at their own size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dataset import read_image
from pipelines.defect_detection.task import DefectDetection
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.engine.memory import release_cached
from pipelines.engine.retry import with_second_try
from pipelines.evaluation.defects import DefectScorer
from pipelines.records import DefectPrediction, Record
from pipelines.runs.reporter import Reporter


def evaluate_records(
    task: DefectDetection,
    root: Path,
    records: Sequence[Record],
    class_names: Sequence[str],
    wanted_miss_rate: float,
    reporter: Reporter,
    title: str = "evaluation",
) -> dict[str, Any]:
    """Metrics of `task` at its setting, in the classes of the dataset."""
    scorer = DefectScorer(class_names, wanted_miss_rate=wanted_miss_rate)
    translate = _translation(task.network.class_names, class_names, reporter)
    with evaluation_mode(task.network), reporter.progress(len(records), title) as bar:
        for record in records:
            prediction = _detected(task, root / record.path)
            scorer.update(translated(prediction, translate), record.annotation, record.size_hw)
            bar.advance()
    release_cached()
    return scorer.compute()


def _detected(task: DefectDetection, file: Path) -> DefectPrediction:
    """What the task finds in an image; tiles are looked at one by one, so there is nothing smaller to fall back on.

    Raises:
        OutOfMemoryError: a tile was refused twice, or the image itself was.
    """
    setting = task.setting
    find = setting.finder(task.network)

    def find_patiently(view: np.ndarray) -> DefectPrediction:
        return with_second_try(
            lambda: find(view),
            f"{file}: evaluation of a tile of {view.shape[1]} x {view.shape[0]} px found no memory, twice: lower"
            f" evaluate.view.tile (it is {setting.tile_px}), or free memory on the device (wholebatch doctor tells who"
            " else uses it)",
        )

    return with_second_try(
        lambda: setting.detect_with(find_patiently, read_image(file)),
        f"{file}: the image found no memory, twice: lower batching.workers, or free memory of the machine",
    )


def translated(prediction: DefectPrediction, translate: np.ndarray) -> DefectPrediction:
    """The same findings under other class ids; those of classes with -1 are left out."""
    class_ids = translate[prediction.class_ids]
    kept = class_ids >= 0
    return replace(
        prediction,
        boxes_xyxy_px=prediction.boxes_xyxy_px[kept],
        class_ids=class_ids[kept],
        confidences=prediction.confidences[kept],
    )


def _translation(found: Sequence[str], wanted: Sequence[str], reporter: Reporter) -> np.ndarray:
    """From the network's class ids to the dataset's, by name; -1 where the dataset has no such class."""
    positions = {name: index for index, name in enumerate(wanted)}
    unknown = [name for name in found if name not in positions]
    if unknown:
        reporter.warn(f"the model also finds {', '.join(unknown)}, which the dataset does not have: not scored")
    return np.array([positions.get(name, -1) for name in found], np.int64)
