"""Workers that are killed, files that can't be read, targets that raise, and ends without leftovers.

The targets below run inside worker processes, so they are functions of this module.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.batching.defects import DefectAugmentation
from pipelines.batching.loader import WindowLoader
from pipelines.batching.shapes import ShapePlan
from pipelines.batching.text import TextAugmentation
from pipelines.errors import DataError
from pipelines.records import DefectAnnotation, Record, Sample, TextAnnotation
from pipelines.text_detection.resize import ResizeRule

CULPRIT = "page_3.png"


def plain(image: np.ndarray, annotation: TextAnnotation, source: str) -> Sample:
    return Sample(image, {}, source)


def noisy(image: np.ndarray, annotation: TextAnnotation, source: str) -> Sample:
    print("a library that prints to standard output")
    os.write(1, b"and one that does so from C\n")
    return plain(image, annotation, source)


def kill_once(marker: Path, image: np.ndarray, annotation: TextAnnotation, source: str) -> Sample:
    if source == CULPRIT and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(image, annotation, source)


def kill_always(image: np.ndarray, annotation: TextAnnotation, source: str) -> Sample:
    if source == CULPRIT:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(image, annotation, source)


def raise_always(image: np.ndarray, annotation: TextAnnotation, source: str) -> Sample:
    if source == CULPRIT:
        raise ZeroDivisionError("a bug in the targets")
    return plain(image, annotation, source)


@pytest.fixture
def dataset(tmp_path: Path) -> tuple[Path, list[Record]]:
    for index in range(8):
        cv2.imwrite(str(tmp_path / f"page_{index}.png"), np.full((64, 64, 3), 10 * index, np.uint8))
    return tmp_path, [Record(f"page_{index}.png", (64, 64), TextAnnotation()) for index in range(8)]


def loader(dataset: tuple[Path, list[Record]], targets, workers: int) -> WindowLoader:
    root, records = dataset
    plan, augmentation = ShapePlan(((32, 32),)), TextAugmentation(ResizeRule(64).size_hw)
    return WindowLoader(records, root, targets, augmentation, plan, effective_batch=8, workers=workers)


def worker_pids(windows: WindowLoader) -> list[int]:
    return [worker._process.pid for worker in windows._pool._workers]


def is_running(pid: int) -> bool:
    """Whether a process lives; one that has ended but waits to be reaped by the system's init does not."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")
        return not status.parent.parent.is_dir() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_one_death_is_survived_with_all_samples_and_reported_with_the_file(dataset, tmp_path, caplog) -> None:
    with loader(dataset, plain, 0) as here:
        expected = next(iter(here)).micro_batches
    with caplog.at_level(logging.WARNING), loader(dataset, partial(kill_once, tmp_path / "marker"), 2) as windows:
        window = next(iter(windows))
    assert (tmp_path / "marker").exists()
    assert [one.sources for one in window.micro_batches] == [one.sources for one in expected]
    assert all(np.array_equal(one.images, two.images) for one, two in zip(window.micro_batches, expected, strict=True))
    assert CULPRIT in caplog.text and "SIGKILL" in caplog.text


def test_a_file_that_kills_two_workers_is_named(dataset) -> None:
    with loader(dataset, kill_always, 2) as windows, pytest.raises(DataError, match=f"{CULPRIT}.*SIGKILL"):
        next(iter(windows))


def test_an_idle_worker_killed_from_outside_is_replaced(dataset) -> None:
    with loader(dataset, plain, 1) as windows:
        produced = iter(windows)
        next(produced)
        for pid in worker_pids(windows):
            os.kill(pid, signal.SIGKILL)
        assert [window.num_samples for window in islice(produced, 3)] == [8, 8, 8]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_bug_in_the_targets_names_the_file(dataset, workers: int) -> None:
    words = f"{CULPRIT}.*ZeroDivisionError: a bug in the targets"
    with loader(dataset, raise_always, workers) as windows, pytest.raises(DataError, match=words) as caught:
        next(iter(windows))
    assert caught.value.__cause__ is not None  # the worker's own traceback, for who mends it


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("content", [None, b"", b"<html>", b"\x89PNG\r\n\x1a\n cut off"])
def test_an_unreadable_file_is_named_and_never_replaced_by_another(dataset, workers: int, content) -> None:
    path = dataset[0] / CULPRIT
    path.unlink() if content is None else path.write_bytes(content)
    with loader(dataset, plain, workers) as windows, pytest.raises(DataError, match=CULPRIT):
        next(iter(windows))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_image_whose_size_is_not_the_one_its_boxes_were_drawn_on_is_named(dataset, workers: int) -> None:
    root, _ = dataset
    records = [Record(f"page_{index}.png", (64, 64 + (index == 3)), DefectAnnotation()) for index in range(8)]
    plan = ShapePlan(((64, 64),))
    windows = WindowLoader(records, root, plain, DefectAugmentation(), plan, effective_batch=8, workers=workers)
    with windows, pytest.raises(DataError, match=f"{CULPRIT}.*64 x 64.*64 x 65.*prepare the dataset again"):
        next(iter(windows))


def test_what_libraries_print_does_not_disturb_the_answers(dataset) -> None:
    with loader(dataset, noisy, 1) as windows:
        assert next(iter(windows)).num_samples == 8


def test_closing_leaves_no_process_behind_even_in_the_middle_of_a_window(dataset) -> None:
    with loader(dataset, plain, 2) as windows:
        next(iter(windows))
        pids = worker_pids(windows)
        assert all(map(is_running, pids))
    assert len(pids) == 2
    for pid in pids:  # reaped too: not even a zombie is left
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    windows.close()  # twice is fine


PROGRAM = """
import signal, sys, time
from pathlib import Path
from test_loader_faults import loader, plain, worker_pids
from pipelines.records import Record, TextAnnotation
# a shell's background jobs, and so their children, ignore SIGINT
signal.signal(signal.SIGINT, signal.default_int_handler)
root = Path(sys.argv[1])
records = [Record(f"page_{i}.png", (64, 64), TextAnnotation()) for i in range(8)]
try:
    with loader((root, records), plain, 2) as windows:
        for window in windows:
            print(*worker_pids(windows), flush=True)
            time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_interrupted_or_killed_training_leaves_no_worker(dataset, sent: signal.Signals, status: int) -> None:
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(dataset[0])],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    process.send_signal(sent)
    assert process.wait(timeout=60) == status
    process.stdout.close()
    assert len(pids) == 2
    deadline = time.monotonic() + 30
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, pids))
