"""A pool of loader workers that outlives the death of any of them."""

from __future__ import annotations

import logging
import pickle
import queue
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

from pipelines.batching.sampling import SampleJob, SampleMaker
from pipelines.batching.worker import Worker, WorkerDied
from pipelines.errors import DataError, UsageError
from pipelines.records import Sample

_log = logging.getLogger(__name__)


class WorkerPool:
    """Makes samples in worker processes, a thread of this process waiting on each.

    A job whose worker dies (killed, out of memory, a crash in a decoder) is given once more to a fresh worker; other
    jobs don't notice. A file that takes two workers with it is the culprit and is named.

    Args:
        maker: what every worker does with a job; must be picklable.
        workers: processes, at least 1.

    Raises:
        UsageError: the maker can't be pickled.
    """

    def __init__(self, maker: SampleMaker, workers: int):
        try:
            self._setup = pickle.dumps(maker, pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as fault:
            raise UsageError(
                f"targets and resize rule must be picklable for loader workers, but: {fault}; use functions or"
                " dataclasses of a module, or set workers to 0"
            ) from None
        self._lock = threading.Lock()
        self._is_closed = False
        self._workers: set[Worker] = set()
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="loader")
        for _ in range(workers):
            self._idle.put(self._start())

    def submit(self, job: SampleJob) -> Future[Sample]:
        """Queue one job; its result raises DataError if the sample can't be made."""
        return self._threads.submit(self._make, job)

    def close(self) -> None:
        """End all workers and drop queued jobs; may be called twice."""
        with self._lock:
            self._is_closed = True
            workers = list(self._workers)
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.end()
        self._threads.shutdown(wait=True)

    def _make(self, job: SampleJob) -> Sample:
        worker = self._idle.get()
        try:
            return worker.make(job)
        except WorkerDied as death:
            worker = self._replace(worker)
            _log.warning("a loader worker died (%s) at %s; trying once more", death, job.record.path)
            try:
                return worker.make(job)
            except WorkerDied as second:
                worker = self._replace(worker)
                raise DataError(
                    f"{job.record.path}: two loader workers died reading this file (at last by {second}): the file or"
                    " the machine's memory is at fault; take it out of the split, or lower workers"
                ) from None
        finally:
            self._idle.put(worker)

    def _replace(self, dead: Worker) -> Worker:
        dead.end()
        with self._lock:
            self._workers.discard(dead)
        return self._start()

    def _start(self) -> Worker:
        with self._lock:  # so that none is started behind the back of `close`
            if self._is_closed:
                raise CancelledError
            worker = Worker(self._setup)
            self._workers.add(worker)
            return worker
