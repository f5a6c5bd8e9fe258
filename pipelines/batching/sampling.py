"""One job, one sample: read, augment, draw targets. The same function in this process and in a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from pipelines.batching.image_cache import ImageCache
from pipelines.batching.looking import look_at
from pipelines.batching.mosaic import assembled, piece_choice
from pipelines.batching.order import sample_rng
from pipelines.batching.shapes import ShapeChoice
from pipelines.batching.views import Look
from pipelines.errors import DataError, WholebatchError
from pipelines.records import Record, Sample

T = TypeVar("T")
Targets = Callable[[np.ndarray, Any, str], Sample]


class Augmentation(Protocol):
    """How the samples of one task may differ from what evaluation sees; picklable for workers."""

    def apply(
        self, look: Look, record: Record, choice: ShapeChoice, rng: np.random.Generator
    ) -> tuple[np.ndarray, Any]:
        """Make one sample's image and annotation.

        Args:
            look: shows the record's image through a view.
            record: its annotation in the image's pixels, and the part of the image to show.
            choice: the shape asked for.
            rng: the sample's randomness.

        Returns:
            uint8 image with sides that are multiples of 32, and the task's annotation in its pixels.
        """
        ...

    def largest_shape(self, record: Record, choice: ShapeChoice) -> tuple[int, int]:
        """The largest (height, width) that `apply` may make of a record."""
        ...


@dataclass(frozen=True)
class SampleJob:
    """All that decides one sample's bytes; small, so that workers keep no copy of the dataset.

    Attributes:
        record: the image with its annotation.
        choice: the shape asked for.
        seed: of the run.
        epoch: zero-based.
        index: of the sample in the epoch's mix; a record that comes several times looks different each time.
        companions: none, or three more records: the sample is a mosaic of all four.
    """

    record: Record
    choice: ShapeChoice
    seed: int
    epoch: int
    index: int
    companions: tuple[Record, ...] = ()


@dataclass(frozen=True)
class SampleMaker:
    """Turns jobs into samples.

    Attributes:
        root: the dataset's folder.
        augmentation: the task's.
        targets: (image, annotation, source) to Sample, as the Task's; picklable for workers.
        read: decodes images, and keeps some.
    """

    root: Path
    augmentation: Augmentation
    targets: Targets
    read: ImageCache = field(default_factory=ImageCache)

    def __call__(self, job: SampleJob) -> Sample:
        """Make one sample.

        Args:
            job: which one.

        Returns:
            The sample; its source is the record's path.

        Raises:
            DataError: it can't be made; names the file, whatever went wrong. No other sample takes its place.
        """
        rng = sample_rng(job.seed, job.epoch, job.index)
        records = (job.record, *job.companions)
        choice = piece_choice(job.choice) if job.companions else job.choice
        pieces = [self._piece(record, choice, rng) for record in records]
        seen, annotation = assembled(pieces) if job.companions else pieces[0]
        return _naming(job.record, lambda: self.targets(seen, annotation, job.record.path))

    def _piece(self, record: Record, choice: ShapeChoice, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
        look = partial(look_at, self.root / record.path, record.size_hw, read=self.read)
        return _naming(record, lambda: self.augmentation.apply(look, record, choice, rng))


def _naming(record: Record, make: Callable[[], T]) -> T:
    """What `make` makes, or a DataError that names the record's file."""
    try:
        return make()
    except WholebatchError as fault:
        raise DataError(_named(record.path, str(fault))) from None
    except Exception as fault:  # a bug, ours or the targets': the file is what helps to find it
        reason = f"no sample can be made of it: {type(fault).__name__}: {fault}"
        raise DataError(_named(record.path, reason)) from fault


def _named(path: str, reason: str) -> str:
    return reason if path in reason else f"{path}: {reason}"
