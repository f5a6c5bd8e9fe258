"""What a run of any task is made of: one `Wiring` a task, so that no command asks which task it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import paddle
from pydantic import BaseModel

from pipelines.batching.loader import WindowLoader
from pipelines.batching.order import Mix
from pipelines.config import Config, DefectConfig, RunConfig, TextConfig
from pipelines.engine.blend import Blend
from pipelines.records import MicroBatch, Record
from pipelines.runs.presentation import Presentation, TaskPage
from pipelines.runs.reporter import Reporter
from pipelines.task import Task

Row = Sequence[object]
Setting = TypeVar("Setting", bound=BaseModel)


@dataclass(frozen=True)
class Samples:
    """What training draws from.

    Attributes:
        records: images, or views of them.
        mix: which of them make an epoch; None: every one once.
    """

    records: Sequence[Record]
    mix: Mix | None = None

    @property
    def num_an_epoch(self) -> int:
        return self.mix.num_samples if self.mix else len(self.records)


@dataclass(frozen=True)
class Verdict(Generic[Setting]):
    """Metrics on val with what led to them.

    Attributes:
        metrics: of the task's scorer.
        objective: the number that chooses the best model; higher is better.
        setting: at which they were taken.
        blend: share of the trained weights; the rest are the starting ones.
        tuning: objective on training images of every setting tried.
    """

    metrics: Mapping[str, Any]
    objective: float
    setting: Setting
    blend: float = 1.0
    tuning: tuple[dict[str, Any], ...] = ()

    def entry(self, update: int) -> dict[str, Any]:
        """As `metrics.json` holds it."""
        return {"update": update, **self.metrics, "setting": self.setting.model_dump(), "blend": self.blend}


class Judge(Protocol):
    """Scores the task's weights as they are when it is asked; the same images every time."""

    def as_shipped(self) -> Verdict[Any]:
        """At the configured setting."""
        ...

    def baseline(self, shipped: Verdict[Any]) -> Verdict[Any]:
        """The same weights at the best setting for them."""
        ...

    def trained(self, blend: Blend, title: str) -> Verdict[Any]:
        """Of the configured blends with the starting weights the preferred one."""
        ...

    def preference(self, verdict: Verdict[Any]) -> Any:
        """Sorts verdicts."""
        ...


class Wiring(Protocol):
    """The parts of one task's runs, from a configuration.

    Attributes:
        config: checked.
        columns: heads of the tables that `rows` fill.
        baseline_name: what training has to beat.
    """

    columns: tuple[str, ...]
    baseline_name: str

    @property
    def config(self) -> RunConfig: ...

    @property
    def page(self) -> TaskPage:
        """What the report says that another task's would not."""
        ...

    def records(self, split: str) -> list[Record]:
        """Of "train" or "val"."""
        ...

    def samples(self, records: Sequence[Record]) -> Samples:
        """What training draws from, told on the terminal."""
        ...

    def configured_setting(self) -> Any:
        """The setting section that the configuration names."""
        ...

    def setting_from(self, values: Mapping[str, Any]) -> Any:
        """A setting section from what `Verdict.entry` wrote."""
        ...

    def build_task(self, setting: Any, weights: str | None = None) -> Task:
        """Network with weights, in evaluation mode; `weights` stands in for the configured source."""
        ...

    def parameter_groups(self, task: Any) -> dict[str, list[paddle.Tensor]]:
        """Trainable parameters by part of the network."""
        ...

    def window_loader(self, samples: Samples, setting: Any) -> WindowLoader:
        """Windows of training samples as `setting` wants them."""
        ...

    def evaluation_shapes(self, records: Sequence[Record]) -> dict[tuple[int, int], int]:
        """How many images (or tiles) of each (height, width) the network sees when `records` are evaluated."""
        ...

    def look(self, task: Any, size_hw: tuple[int, int]) -> None:
        """The forward of evaluation on a blank image of what the network sees."""
        ...

    def counts(self, window: Sequence[MicroBatch]) -> dict[str, int]:
        """What a window's samples show, for the run's log."""
        ...

    def image_groups(self, window: Sequence[MicroBatch]) -> dict[str, np.ndarray]:
        """How much each image of a window, in order, holds of what `verify` should tell apart."""
        ...

    def judge(self, task: Any, train_records: Sequence[Record], val_records: Sequence[Record]) -> Judge: ...

    def evaluate(self, task: Any, records: Sequence[Record]) -> dict[str, Any]:
        """Metrics of the task at its setting."""
        ...

    def rows(self, label: str, metrics: Mapping[str, Any]) -> list[Row]:
        """Rows of one evaluation."""
        ...

    def tell_details(self, metrics: Mapping[str, Any]) -> None:
        """More tables of one evaluation, where the task has some."""
        ...

    def summary(self, verdict: Verdict[Any]) -> str:
        """A verdict in one line."""
        ...

    def describe(self, setting: Any) -> str:
        """A setting in words."""
        ...

    def conclusion(self, baseline: Mapping[str, Any], best: Mapping[str, Any]) -> tuple[str, str]:
        """What training added, and what to be warned of ("" if nothing)."""
        ...

    def description(self) -> dict[str, Any]:
        """What the best model's description says of the network."""
        ...

    def exported_setting(self, folder: Path) -> Any:
        """The setting that an exported folder asks for."""
        ...

    def export(self, task: Any, setting: Any, out: Path, meta: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
        """Write the inference model; `metrics` are those it was chosen by."""
        ...

    def check_export(self, task: Any, out: Path) -> Any:
        """A `ParityReport` of val images through the exported model."""
        ...

    def presentation(self, description: Mapping[str, Any], confidence: float | None) -> Presentation:
        """How findings of the model of this description are shown; `confidence` stands in for its own threshold."""
        ...


Detect = Callable[[np.ndarray], Any]


def wiring_of(config: Config, reporter: Reporter) -> Wiring:
    """The parts of the task that a configuration names."""
    # each imports its own networks, which cost seconds
    if isinstance(config, TextConfig):
        from pipelines.runs.text.wiring import TextWiring

        return TextWiring(config, reporter)
    assert isinstance(config, DefectConfig)
    from pipelines.runs.defects.wiring import DefectWiring

    return DefectWiring(config, reporter)
