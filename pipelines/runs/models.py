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
from pipelines.engine.checkpoint import restore_previous
from pipelines.errors import UsageError
from pipelines.export import paddleocr_detector
from pipelines.runs.reporter import Reporter
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


def detector_of(model: Path, reporter: Reporter) -> tuple[Detect, tuple[str, ...]]:
    """What finds text or defects with a run's best model or an exported folder, and the names of its classes."""
    if not is_run(model):
        classes = exported_classes(model)
        if classes:
            from pipelines.export import exported_defect_detector

            return exported_defect_detector(model), classes
        return paddleocr_detector(model), ()
    best = best_model(model, reporter)

    def detect(image: np.ndarray) -> Any:
        with evaluation_mode(best.task.network):
            return best.task.predict([image])[0]

    return detect, tuple(best.description.get("classes", ()))


def exported_classes(folder: Path) -> tuple[str, ...]:
    """Class names of an exported defect detector; none for a text detector or a folder that is none at all."""
    file = folder / "inference.yml"
    content = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else None
    return tuple(content.get("label_list") or ()) if isinstance(content, dict) else ()
