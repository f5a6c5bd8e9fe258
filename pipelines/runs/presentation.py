"""How what a task finds is shown: in pictures and JSON by `predict`, and on the page of a run by `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from pipelines.records import Record
from pipelines.report import ChangedImage, Findings, RunResult, TaskContent


class Presentation(Protocol):
    """What `predict` shows of a prediction.

    Attributes:
        key: of the findings in `predictions.json`.
        note: what a reader of the drawings must know, or "".
    """

    @property
    def key(self) -> str: ...

    @property
    def note(self) -> str: ...

    def confident(self, prediction: Any) -> Any:
        """What of a prediction is shown."""
        ...

    def draw(self, image: np.ndarray, prediction: Any) -> np.ndarray:
        """A copy of the image, uint8 BGR, with what was found drawn over it."""
        ...

    def as_json(self, prediction: Any) -> list[dict[str, Any]]:
        """What was found, in plain values and source pixels."""
        ...

    def summary(self, counts: Sequence[int]) -> str:
        """All images in one line, from the number of findings in each."""
        ...


class TaskPage(Protocol):
    """What the report of a run says that another task's would not.

    Attributes:
        objective_name: of the number by which the best model is chosen.
        untuned_name: what the baseline is called where nothing was tuned.
    """

    objective_name: str
    untuned_name: str

    def objective(self, metrics: Mapping[str, Any]) -> float:
        """That number, of one evaluation."""
        ...

    def content(self, result: RunResult) -> TaskContent:
        """Tables, curves and remarks."""
        ...

    def worth_drawing(self, records: Sequence[Record], most: int) -> list[Record]:
        """At most so many records of all kinds."""
        ...

    def findings(self, record: Record, prediction: Any, metrics: Mapping[str, Any]) -> Findings:
        """A model's prediction against the labels of a record, at what its metrics were taken."""
        ...

    def changed_image(self, record: Record, image: np.ndarray, before: Findings, after: Findings) -> ChangedImage:
        """A record as two models see it."""
        ...
