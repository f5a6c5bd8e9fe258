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
            prediction = task.predict([read_image(root / record.path)])[0]
            scorer.update(translated(prediction, translate), record.annotation, record.size_hw)
            bar.advance()
    return scorer.compute()


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
