"""What a user may call a model: a run folder, an exported folder, a weights file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pipelines.config import load_config
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.errors import UsageError
from pipelines.export import exported_class_names, exported_defect_detector, paddleocr_detector
from pipelines.folders import restore_previous
from pipelines.runs.defects.pictures import DefectPresentation
from pipelines.runs.presentation import Presentation
from pipelines.runs.reporter import Reporter
from pipelines.runs.text.pictures import TextPresentation
from pipelines.runs.wiring import Detect, Wiring, wiring_of
from pipelines.task import Task


@dataclass(frozen=True)
class BestModel:
    """A run's best model, ready to use.

    Attributes:
        wiring: of the run's configuration.
        setting: the one it was scored at.
        task: with its weights.
        description: of best/description.json.
    """

    wiring: Wiring
    setting: Any
    task: Task
    description: dict[str, Any]


def is_run(folder: Path) -> bool:
    """Whether a folder is a run with a best model."""
    return (folder / "best" / "description.json").is_file()


def best_model(run: Path, reporter: Reporter) -> BestModel:
    """Load a run's best model.

    Raises:
        UsageError: no run folder.
    """
    restore_previous(run / "best")
    if not is_run(run):
        raise UsageError(f"{run} is no run folder: it has no best/description.json; train leaves one under runs/NAME")
    wiring = wiring_of(load_config(run / "config.yml"), reporter)
    description = json.loads((run / "best" / "description.json").read_text(encoding="utf-8"))
    setting = wiring.setting_from(description["setting"])
    task = wiring.build_task(setting, weights=str(run / "best" / "weights.pdparams"))
    return BestModel(wiring, setting, task, description)


def finder_of(model: Path, confidence: float | None, reporter: Reporter) -> tuple[Detect, Presentation]:
    """What finds text or defects, with a run's best model or an exported folder, and how to show its findings.

    Args:
        model: run or exported folder.
        confidence: what to show; None: what the model was evaluated at.
        reporter: who tells the user.

    Raises:
        UsageError: neither a run nor an exported folder.
    """
    if not is_run(model):
        return _exported_finder(model, confidence)
    best = best_model(model, reporter)

    def detect(image: np.ndarray) -> Any:
        with evaluation_mode(best.task.network):
            return best.task.predict([image])[0]

    return detect, best.wiring.presentation(best.description, confidence)


def _exported_finder(folder: Path, confidence: float | None) -> tuple[Detect, Presentation]:
    """The task is the one that the folder's own description is of."""
    file = folder / "inference.yml"
    content = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    if not isinstance(content, dict) or "label_list" not in content:
        return paddleocr_detector(folder), TextPresentation(confidence)
    threshold = float(content["draw_threshold"]) if confidence is None else confidence
    return exported_defect_detector(folder), DefectPresentation(exported_class_names(folder), threshold)
