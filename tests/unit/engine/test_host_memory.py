"""Five hundred updates with two loader workers leave the resident size where it was after a hundred.

Run: pytest tests/unit/engine/test_host_memory.py
"""

from __future__ import annotations

import mmap
from pathlib import Path
from statistics import median

import cv2
import numpy as np
import psutil
import pytest

from pipelines.batching.loader import WindowLoader
from pipelines.batching.shapes import ShapePlan
from pipelines.batching.text import TextAugmentation
from pipelines.engine.loop import run_updates
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.records import Record, Sample, TextAnnotation
from pipelines.text_detection.resize import ResizeRule
from tests.factories import toy_task

NUM_UPDATES = 500
BOUND_BYTES = 12 << 20


def bright_pixels(image: np.ndarray, annotation: TextAnnotation, source: str) -> Sample:
    """Targets of the toy task; runs in loader workers, so it is a function of this module."""
    return Sample(image, {"mask": (image[..., 0] > 128).astype(np.uint8)}, source)


@pytest.fixture
def loader(tmp_path: Path) -> WindowLoader:
    rng = np.random.default_rng(0)
    for index in range(8):
        cv2.imwrite(str(tmp_path / f"{index}.png"), rng.integers(0, 255, (48, 48, 3), dtype=np.uint8))
    records = [Record(f"{index}.png", (48, 48), TextAnnotation()) for index in range(8)]
    plan = ShapePlan(((32, 32), (32, 64), (64, 32)))
    augmentation = TextAugmentation(ResizeRule(64).size_hw)
    return WindowLoader(records, tmp_path, bright_pixels, augmentation, plan, effective_batch=4, workers=2)


def resident_sizes(loader: WindowLoader, kept: list[object] | None = None) -> list[int]:
    """Bytes of this process and its workers after each update, each of which leaves 40 kB in `kept` if there is one."""
    task = toy_task("replay")
    groups = [ParameterGroup("all", task.network.parameters())]
    updater = Updater(task, groups, LearningRateSchedule(1e-3, NUM_UPDATES))
    this = psutil.Process()
    sizes = []
    with loader:
        for _ in run_updates(updater, loader, NUM_UPDATES):
            workers = sum(child.memory_info().rss for child in this.children())
            sizes.append(this.memory_info().rss + workers)
            if kept is not None:
                leak = mmap.mmap(-1, 40_000)  # memory of its own: an array may lie in what was freed before
                leak.write(b"x" * 40_000)
                kept.append(leak)
    return sizes


def growth(sizes: list[int]) -> float:
    """Bytes from a hundred updates to the end, each the median of ten."""
    return median(sizes[-10:]) - median(sizes[95:105])


def test_the_resident_size_is_flat(loader: WindowLoader) -> None:
    assert growth(resident_sizes(loader)) < BOUND_BYTES


def test_a_leak_of_40_kilobytes_an_update_is_seen(loader: WindowLoader) -> None:
    # 400 updates x 40 kB are 16 MB, a sixtieth of what process and workers have
    assert growth(resident_sizes(loader, kept=[])) > BOUND_BYTES
