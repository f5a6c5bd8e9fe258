"""Jobs on any executor: in order, few at a time, a death told. Run: pytest tests/unit/prep/test_executors.py"""

from __future__ import annotations

import multiprocessing
import os
import sys
import types
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from pipelines.errors import DataError
from pipelines.prep import prepare_text
from pipelines.prep.executors import JobPool, WorkerLost, job_pool


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Slow(Executor):
    """Does nothing until a result is asked for; counts jobs in flight."""

    def __init__(self) -> None:
        self.flying = self.most_flying = 0

    def submit(self, fn, /, *args, **kwargs):
        self.flying += 1
        self.most_flying = max(self.most_flying, self.flying)
        executor = self

        class Asked(Future):
            def result(self, timeout=None):
                executor.flying -= 1
                return fn(*args, **kwargs)

        return Asked()


def square(number: int) -> int:
    return number * number


def die_at_three(number: int) -> int:
    if number == 3:
        os._exit(9)
    return number


def named(number: int) -> Path:
    return Path(f"{number}.jpg")


def spawned(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def test_results_come_in_order_and_two_jobs_a_worker_fly_at_most():
    executor = Slow()
    assert list(JobPool(executor, 3).results(square, range(100), named)) == [n * n for n in range(100)]
    assert executor.most_flying == 6


def test_jobs_left_over_when_nobody_wants_more_results_are_cancelled():
    with ThreadPoolExecutor(1) as threads:
        results = JobPool(threads, 50).results(square, iter(range(10**9)), named)
        assert next(results) == 0
        results.close()


def test_an_exception_of_a_job_comes_through_as_it_is():
    def fail(number: int) -> int:
        raise OSError(28, "No space left on device")

    with job_pool(2) as pool, pytest.raises(OSError, match="No space left"):
        list(pool.results(fail, range(5), named))


def test_a_process_that_dies_names_the_files_in_flight():
    with (
        spawned(1) as processes,
        pytest.raises(WorkerLost, match=r"died \(BrokenProcessPool\) at one of .*3\.jpg") as told,
    ):
        list(JobPool(processes, 1).results(die_at_three, range(50), named))
    assert "0.jpg" not in str(told.value) and "9.jpg" not in str(told.value)


def test_processes_write_the_bytes_that_threads_write(labelled, tmp_path):
    Image.new("RGBA", (40, 30), (9, 9, 9, 99)).save(labelled / "odd.png")
    with (labelled / "Label.txt").open("a") as labels:
        labels.write('odd.png\t[{"transcription": "x", "points": [[1, 1], [20, 9], [20, 1], [1, 9]]}]\n')
    prepare_text(labelled, "paddleocr", tmp_path / "threads", workers=2)
    with spawned(2) as processes:
        prepare_text(labelled, "paddleocr", tmp_path / "processes", workers=2, executor=processes)
        assert processes.submit(square, 3).result() == 9, "whoever made the executor closes it"
    assert tree(tmp_path / "processes") == tree(tmp_path / "threads")
    assert len(tree(tmp_path / "threads")) == 15


def test_work_goes_on_after_a_dead_worker(labelled, tmp_path, monkeypatch):
    class Dying(ThreadPoolExecutor):
        num_jobs = 0

        def submit(self, fn, /, *args, **kwargs):
            self.num_jobs += 1
            if self.num_jobs > 4:
                broken: Future = Future()
                broken.set_exception(BrokenExecutor())
                return broken
            return super().submit(fn, *args, **kwargs)

    with Dying(1) as executor, pytest.raises(WorkerLost, match=r"roll2_0\.jpg"):
        prepare_text(labelled, "paddleocr", tmp_path / "out", workers=1, executor=executor)
    assert "4 images examined" in prepare_text(labelled, "paddleocr", tmp_path / "out").resumed


def test_dask_s_own_death_counts_once_dask_is_there(monkeypatch):
    class KilledWorker(Exception):
        pass

    def die(number: int) -> int:
        raise KilledWorker

    monkeypatch.setitem(sys.modules, "distributed", types.SimpleNamespace(KilledWorker=KilledWorker))
    with job_pool(1) as pool, pytest.raises(WorkerLost, match=r"died \(KilledWorker\) at one of 0\.jpg"):
        list(pool.results(die, range(1), named))


def test_a_lost_worker_is_an_error_of_the_data_not_a_traceback():
    assert issubclass(WorkerLost, DataError)
