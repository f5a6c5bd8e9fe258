"""Where the work of `prepare` runs: threads here, or any executor that the caller brings; results in order."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pipelines.errors import DataError

Item = TypeVar("Item")
Result = TypeVar("Result")

_JOBS_A_WORKER = 2  # one at work, one waiting: nobody idles, and no result lies about for long


class WorkerLost(DataError):
    """A worker died of a job; what was done before is whole."""


@dataclass(frozen=True)
class JobPool:
    """An executor that is given few jobs at a time, so that memory does not grow with the number of images.

    Attributes:
        executor: where jobs run; whoever made it closes it.
        num_workers: how many jobs it does at once.
    """

    executor: Executor
    num_workers: int

    def results(
        self, job: Callable[[Item], Result], items: Iterable[Item], file_of: Callable[[Item], Path]
    ) -> Iterator[Result]:
        """`job(item)` for every item, in the order of items whoever is done first; `file_of` names one in messages.

        Raises:
            WorkerLost: a worker died; names the files in flight.
        """
        remaining = iter(items)
        flying: deque[tuple[Item, Future[Result]]] = deque()
        num_ahead = _JOBS_A_WORKER * self.num_workers
        try:
            while True:
                for item in islice(remaining, num_ahead - len(flying)):
                    flying.append((item, self.executor.submit(job, item)))
                if not flying:
                    return
                result = flying[0][1].result()
                flying.popleft()
                yield result
        except _deaths() as death:
            # A broken pool fails every job in flight, done or not, and does not say whose fault it was.
            files = ", ".join(str(file_of(item)) for item, future in flying if not _is_done_well(future))
            raise WorkerLost(
                f"a worker died ({type(death).__name__}) at one of {files or 'the first files'}: one of these files, or"
                " too little memory, is at fault; take it out, or lower --workers"
            ) from None
        finally:
            for _, future in flying:
                future.cancel()


def _is_done_well(future: Future[Result]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _deaths() -> tuple[type[Exception], ...]:
    """What executors raise when a worker dies; Dask's is known once somebody has imported Dask."""
    dask = sys.modules.get("distributed")
    return (BrokenExecutor,) if dask is None else (BrokenExecutor, dask.KilledWorker)


@contextmanager
def job_pool(workers: int, executor: Executor | None = None) -> Iterator[JobPool]:
    """A pool of so many threads, or of an executor with so many workers, which stays open.

    Threads are the default, since decoding, hashing and encoding release the GIL: on the receipts they are no slower
    than processes, which take a second to start and pickle every result (docs/benchmarks.md).
    """
    if executor is not None:
        yield JobPool(executor, workers)
        return
    with ThreadPoolExecutor(workers) as threads:
        yield JobPool(threads, workers)
