"""What a user may call a model: a run folder, an exported folder, a weights file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.config import Config, PostProcessSection, load_config
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.engine.checkpoint import restore_previous
from pipelines.errors import UsageError
from pipelines.export import paddleocr_detector, read_settings
from pipelines.records import TextPrediction
from pipelines.runs.assemble import build_task, setting_of
from pipelines.runs.reporter import Reporter
from pipelines.text_detection.task import TextDetection

Detect = Callable[[np.ndarray], TextPrediction]


@dataclass(frozen=True)
class BestModel:
    """A run's best model, ready to use.

    Attributes:
        config: as the run had it.
        setting: the one it was scored at.
        task: with its weights.
        description: of best/description.json.
    """

    config: Config
    setting: PostProcessSection
    task: TextDetection
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
    config = load_config(run / "config.yml")
    description = json.loads((run / "best" / "description.json").read_text(encoding="utf-8"))
    setting = PostProcessSection.model_validate(description["setting"])
    task = build_task(config, setting_of(setting), reporter, weights=str(run / "best" / "weights.pdparams"))
    return BestModel(config, setting, task, description)


def exported_setting(model: Path) -> PostProcessSection | None:
    """The setting that an exported folder asks for; None for any other source of weights."""
    if not (model / "inference.yml").is_file():
        return None
    return PostProcessSection.model_validate(read_settings(model))


def detector_of(model: Path, reporter: Reporter) -> Detect:
    """What finds text with a run's best model, or with an exported folder in paddleocr."""
    if not is_run(model):
        return paddleocr_detector(model)
    task = best_model(model, reporter).task

    def detect(image: np.ndarray) -> TextPrediction:
        with evaluation_mode(task.network):
            return task.predict([image])[0]

    return detect
