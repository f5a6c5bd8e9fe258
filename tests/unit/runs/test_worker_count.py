"""Workers are lowered to what cores, memory and open files allow, and the user is told why.

Run: pytest tests/unit/runs/test_worker_count.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.batching.image_cache import DEFAULT_BYTES
from pipelines.runs import worker_count as module
from pipelines.runs.worker_count import WORKER_BYTES, Room, affordable, worker_count

PLENTY = Room(cores=16, memory_bytes=2**36, files=10**4)


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (PLENTY, 8),
        (Room(16, None, None), 8),  # nothing known is nothing short
        (Room(4, 2**36, 10**4), 4),
        (Room(16, DEFAULT_BYTES + 3 * WORKER_BYTES, 10**4), 3),
        (Room(16, DEFAULT_BYTES + WORKER_BYTES - 1, 10**4), 0),
        (Room(16, 0, 10**4), 0),
        (Room(16, 2**36, 40 + 2 * 5), 5),
        (Room(16, 2**36, 41), 0),
        (Room(4, DEFAULT_BYTES + 3 * WORKER_BYTES, 40 + 2 * 2), 2),  # the scarcest decides
    ],
)
def test_the_scarcest_of_cores_memory_and_files_decides(room: Room, expected: int) -> None:
    assert affordable(8, room)[0] == expected


def test_enough_room_is_not_talked_about(recorder, monkeypatch):
    monkeypatch.setattr(module, "room_here", lambda: PLENTY)
    assert worker_count(8, recorder) == 8
    assert recorder.warnings == []


def test_fewer_workers_are_told_with_the_reason_and_the_way_out(recorder, monkeypatch):
    monkeypatch.setattr(module, "open_files_limit", lambda: 256)
    monkeypatch.setattr(module, "num_open_files", lambda: 206)
    monkeypatch.setattr(module, "num_cores", lambda: 16)
    monkeypatch.setattr(module, "usable_memory_bytes", lambda: 2**36)
    assert worker_count(8, recorder) == 5
    assert recorder.warnings == [
        "batching.workers: 5 instead of 8 loader workers, because only 50 more files may be open (ulimit -n 4096"
        " raises that); samples and results stay the same"
    ]


def test_no_room_for_one_loads_in_the_training_process(recorder, monkeypatch):
    monkeypatch.setattr(module, "room_here", lambda: Room(16, 2**20, 10**4))
    assert worker_count(2, recorder) == 0
    assert "images are loaded in this process, because 1 MiB of memory are free" in recorder.warnings[0]


def test_no_workers_asked_is_no_question(recorder, monkeypatch):
    monkeypatch.setattr(module, "room_here", lambda: pytest.fail("nothing to look at"))
    assert worker_count(0, recorder) == 0


LOW_LIMIT = """
import resource, sys
from pathlib import Path
import cv2
import numpy as np
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
from pipelines.batching.loader import WindowLoader
from pipelines.batching.shapes import ShapePlan
from pipelines.batching.text import TextAugmentation
from pipelines.records import Record, TextAnnotation
from pipelines.runs import worker_count as module
from pipelines.runs.reporter import Quiet
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.targets import TextTargets

module.num_cores = lambda: 64
module.usable_memory_bytes = lambda: None
asked = 30
workers = module.worker_count(asked, Quiet()) if sys.argv[3] == "probed" else asked
root = Path(sys.argv[1])
cv2.imwrite(str(root / "page.png"), np.zeros((64, 64, 3), np.uint8))
records = [Record("page.png", (64, 64), TextAnnotation())] * 4
plan = ShapePlan(((32, 32),))
augmentation = TextAugmentation(ResizeRule(64).size_hw)
with WindowLoader(records, root, TextTargets(), augmentation, plan, effective_batch=4, workers=workers) as loader:
    print("WORKERS", workers, next(iter(loader)).num_samples)
"""


def _with_low_limit(folder: Path, limit: int, mode: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LOW_LIMIT, str(folder), str(limit), mode]
    repository = Path(__file__).resolve().parents[3]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)


def test_a_process_with_few_files_starts_as_many_workers_as_it_can_and_loads(tmp_path: Path) -> None:
    done = _with_low_limit(tmp_path, 50, "probed")
    assert done.returncode == 0, done.stderr
    _, workers, num_samples = done.stdout.split()
    assert 1 <= int(workers) <= 5 and num_samples == "4"


def test_without_the_probe_the_same_process_runs_out_of_files(tmp_path: Path) -> None:
    done = _with_low_limit(tmp_path, 50, "as asked")
    assert done.returncode != 0
    assert "Too many open files" in done.stderr
