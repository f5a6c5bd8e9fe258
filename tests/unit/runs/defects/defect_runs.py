"""A defect run made by hand: two classes, four val images, scored by the scorer itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelines.config import DefectConfig
from pipelines.evaluation.defects import DefectScorer
from pipelines.records import DefectAnnotation, DefectPrediction

CLASSES = ("scratch", "pit")
SIZE_HW = (100, 100)
LABELS = ([((10, 10, 30, 30), 0)], [((50, 50, 70, 70), 1), ((10, 60, 30, 90), 0)], [], [])
"""Two images with a defect, two OK ones."""

Boxes = list[tuple[tuple[int, int, int, int], int, float]]


def annotation_of(labels: list[tuple[tuple[int, int, int, int], int]]) -> DefectAnnotation:
    boxes = np.array([box for box, _ in labels], np.float32).reshape(-1, 4)
    return DefectAnnotation(boxes, np.array([class_id for _, class_id in labels], np.int64), np.zeros(len(boxes), bool))


def prediction_of(found: Boxes) -> DefectPrediction:
    boxes = np.array([box for box, _, _ in found], np.float32).reshape(-1, 4)
    class_ids = np.array([class_id for _, class_id, _ in found], np.int64)
    return DefectPrediction(boxes, class_ids, np.array([confidence for _, _, confidence in found], np.float32))


def scored(*found: Boxes, wanted_miss_rate: float = 0.1, **more: Any) -> dict[str, Any]:
    """Metrics of what was found in the four images, as metrics.json holds them."""
    scorer = DefectScorer(CLASSES, wanted_miss_rate=wanted_miss_rate)
    for boxes, labels in zip(found, LABELS, strict=True):
        scorer.update(prediction_of(boxes), annotation_of(labels), SIZE_HW)
    return {"update": 0, **scorer.compute(), "setting": {"tile": 256, "overlap": 64}, "blend": 1.0, **more}


BASELINE = scored([], [((50, 50, 70, 70), 1, 0.2)], [], [])
"""Finds the pit and nothing else."""
BEST = scored(
    [((10, 10, 30, 30), 0, 0.9)],
    [((50, 50, 70, 70), 0, 0.8), ((10, 60, 30, 90), 0, 0.6)],
    [((0, 0, 20, 20), 1, 0.4)],
    [],
    update=8,
)
"""Finds both scratches, takes the pit for a scratch, and raises a false alarm in one of the OK images."""


def config_of(**sections: dict[str, object]) -> DefectConfig:
    """A whole configuration; keyword arguments update its sections."""
    content: dict[str, dict[str, object]] = {
        "run": {"name": "tiny"},
        "data": {"root": "datasets/tiny", "task": "defect_detection"},
        "model": {"network": "picodet_lcnet_x1_0", "weights": "a.pdparams"},
        "batching": {"crop": (128, 128)},
        "train": {"updates": 10, "learning_rate": {"base": 0.001}},
        "evaluate": {"view": {"tile": 256, "overlap": 64}},
    }
    for name, values in sections.items():
        content[name].update(values)
    return DefectConfig.model_validate(content)
