"""Windows of micro-batches, one after the other, from any position on, for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from pipelines.batching.image_cache import DEFAULT_BYTES, ImageCache
from pipelines.batching.order import EveryRecordOnce, Mix, Position, epoch_order, num_windows, windows
from pipelines.batching.pool import WorkerPool
from pipelines.batching.sampling import Augmentation, SampleJob, SampleMaker, Targets
from pipelines.batching.shapes import ShapeHW, ShapePlan, SizeOf, group_by_shape
from pipelines.errors import DataError, UsageError
from pipelines.records import MicroBatch, Record, Sample


@dataclass(frozen=True, eq=False)
class Window:
    """What one update sees.

    Attributes:
        epoch: zero-based.
        index: of the window in its epoch, zero-based.
        is_last_of_epoch: whether it closes the epoch (and may be short).
        micro_batches: every sample of the window once.
    """

    epoch: int
    index: int
    is_last_of_epoch: bool
    micro_batches: list[MicroBatch]

    @property
    def num_samples(self) -> int:
        return sum(len(micro_batch) for micro_batch in self.micro_batches)


class WindowLoader:
    """Reads, augments and groups samples; iterating yields `Window`s without end.

    Order, shapes and augmentation follow from (seed, epoch, window, index) alone: neither `workers` nor
    `micro_batch` changes a byte of any sample. Use it in a `with` block, which ends the workers.

    Args:
        records: of the training split.
        root: the dataset's folder.
        targets: (image, annotation, source) to Sample, as the Task's; numpy only, picklable if there are workers.
        augmentation: how samples differ from what evaluation sees.
        plan: the mix of shapes.
        mix: the records of each epoch; None takes every one once.
        seed: of the run.
        effective_batch: samples a window.
        micro_batch: samples a micro-batch, at most.
        workers: processes; 0 makes the samples in this one, when they are asked for.
        start: the first window.
        prefetch_windows: windows being made while one is trained on.
        cache_bytes: decoded images kept, by all workers together.

    Attributes:
        size_of: samples a micro-batch, by shape; may be replaced between windows.

    Raises:
        DataError: no records.
        UsageError: an impossible count, or targets that can't be pickled.
    """

    def __init__(
        self,
        records: Sequence[Record],
        root: Path | str,
        targets: Targets,
        augmentation: Augmentation,
        plan: ShapePlan = ShapePlan(),  # noqa: B008 (frozen)
        *,
        mix: Mix | None = None,
        seed: int = 0,
        effective_batch: int = 32,
        micro_batch: int = 2,
        workers: int = 0,
        start: Position = Position(),  # noqa: B008 (frozen)
        prefetch_windows: int = 1,
        cache_bytes: int = DEFAULT_BYTES,
    ):
        if not records:
            raise DataError(f"{root}: the training split holds no image")
        _check_counts(effective_batch, micro_batch, workers, prefetch_windows, cache_bytes)
        self._records, self._plan, self._seed = records, plan, seed
        self._effective_batch = effective_batch
        self.size_of: SizeOf = lambda size_hw: micro_batch
        self._mix = mix or EveryRecordOnce(len(records))
        self._start, self._prefetch = start, prefetch_windows if workers else 0
        self._maker = SampleMaker(Path(root), augmentation, targets, ImageCache(cache_bytes // max(workers, 1)))
        self._pool = WorkerPool(self._maker, workers) if workers else None

    @property
    def windows_per_epoch(self) -> int:
        return num_windows(self._mix.num_samples, self._effective_batch)

    def __iter__(self) -> Iterator[Window]:
        return self.windows_from(self._start)

    def windows_from(self, position: Position) -> Iterator[Window]:
        """Windows from a position on, for ever.

        Args:
            position: the first window.

        Returns:
            An iterator without end.

        Raises:
            UsageError: an epoch has no such window.
            DataError: a sample can't be made; names the file.
        """
        if position.window >= self.windows_per_epoch:
            raise UsageError(f"an epoch has {self.windows_per_epoch} windows, so it has no window {position.window}")
        return self._windows_from(position)

    def _windows_from(self, position: Position) -> Iterator[Window]:
        ahead: deque[tuple[Position, Callable[[], list[Sample]]]] = deque()
        while True:
            while len(ahead) <= self._prefetch:
                ahead.append((position, self._begin(self.jobs(position))))
                position = position.following(self.windows_per_epoch)
            ready, samples = ahead.popleft()
            is_last = ready.window == self.windows_per_epoch - 1
            yield Window(ready.epoch, ready.window, is_last, group_by_shape(samples(), self.size_of))

    def shape_shares(self) -> dict[ShapeHW, float]:
        """Share of the samples of each shape, on average; whole pages at their largest."""
        shares: dict[ShapeHW, float] = {}
        for choice, share in self._plan.shares().items():
            records = self._records if choice.is_page else self._records[:1]
            for record in records:
                shape = self._maker.augmentation.largest_shape(record, choice)
                shares[shape] = shares.get(shape, 0.0) + share / len(records)
        return shares

    def largest_micro_batch(self, size_hw: ShapeHW) -> int:
        """Samples of a shape that a micro-batch may really hold."""
        return min(self.size_of(size_hw), self._plan.most_of(size_hw, self._effective_batch))

    def blank(self, number: int, size_hw: ShapeHW) -> MicroBatch:
        """A micro-batch of black images without anything in them, as large in memory as any of that shape."""
        image = np.zeros((*size_hw, 3), np.uint8)
        nothing = type(self._records[0].annotation)()
        return MicroBatch.of([self._maker.targets(image, nothing, "a blank image")] * number)

    def jobs(self, position: Position) -> list[SampleJob]:
        """The samples of one window, as they will be asked for."""
        places = self._places(position)
        choices = self._plan.choices(self._seed, position.epoch, position.window, len(places))
        indices, companions = self.record_indices(position), self._mix.companions(position.epoch, places)
        return [
            SampleJob(
                self._records[index],
                choice,
                self._seed,
                position.epoch,
                int(place),
                tuple(self._records[other] for other in others),
            )
            for place, index, choice, others in zip(places, indices, choices, companions, strict=True)
        ]

    def record_indices(self, position: Position) -> np.ndarray:
        """The records of one window, int64, as positions in the list; for the `composition` of a mix."""
        return self._mix.indices(position.epoch)[self._places(position)]

    def _places(self, position: Position) -> np.ndarray:
        """The samples of one window, as places in the epoch's mix."""
        order = epoch_order(self._mix.num_samples, self._seed, position.epoch)
        return windows(order, self._effective_batch)[position.window]

    def _begin(self, jobs: list[SampleJob]) -> Callable[[], list[Sample]]:
        """Start making samples; the result waits for them."""
        if self._pool is None:
            return lambda: [self._maker(job) for job in jobs]
        futures = [self._pool.submit(job) for job in jobs]
        return lambda: [future.result() for future in futures]

    def close(self) -> None:
        """End the workers; may be called twice."""
        if self._pool is not None:
            self._pool.close()

    def __enter__(self) -> WindowLoader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_counts(
    effective_batch: int, micro_batch: int, workers: int, prefetch_windows: int, cache_bytes: int
) -> None:
    if not 1 <= micro_batch <= effective_batch:
        raise UsageError(f"micro_batch must lie between 1 and effective_batch {effective_batch}, but got {micro_batch}")
    counts = {"workers": workers, "prefetch_windows": prefetch_windows, "cache_bytes": cache_bytes}
    for name, count in counts.items():
        if count < 0:
            raise UsageError(f"{name} can't be negative, but got {count}")
