"""The training loop: windows in, update reports out. What happens between updates is the caller's business."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pipelines.engine.update import Updater, UpdateReport
from pipelines.records import MicroBatch


class WindowLike(Protocol):
    """What the loop needs of a window: its micro-batches."""

    @property
    def micro_batches(self) -> list[MicroBatch]: ...


AnyWindow = TypeVar("AnyWindow", bound=WindowLike)


@dataclass(frozen=True)
class Step(Generic[AnyWindow]):
    """One update with the window it consumed and the seconds it waited for it."""

    report: UpdateReport
    window: AnyWindow
    data_seconds: float


def run_updates(updater: Updater, windows: Iterable[AnyWindow], num_updates: int) -> Iterator[Step[AnyWindow]]:
    """Yield a `Step` an update until `updater` has made `num_updates`.

    Raises:
        ValueError: the windows ran out before.
    """
    source = iter(windows)
    while updater.num_updates < num_updates:
        asked = time.perf_counter()
        window = next(source, None)
        if window is None:
            raise ValueError(f"windows ran out after {updater.num_updates} of {num_updates} updates")
        data_seconds = time.perf_counter() - asked
        yield Step(updater.run(window.micro_batches), window, data_seconds)
