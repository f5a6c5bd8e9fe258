"""Tuning gives what evaluating setting by setting gives, with the network run once a limit side and one map alive.

Run: pytest tests/unit/runs/text/test_evaluation.py
"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import paddle
import pytest

from pipelines.config import PostProcessSection, TuneSection
from pipelines.records import Record, TextAnnotation, TextRegion
from pipelines.runs.text import maps as maps_module
from pipelines.runs.text.evaluation import evaluate_records, tune_setting
from pipelines.runs.text.maps import FittingMaps
from pipelines.runs.text.parts import setting_of
from pipelines.text_detection.resize import ResizeRule

SHIPPED = PostProcessSection(limit_side=128)
OPTIONS = TuneSection(limit_sides=[128, 192], unclip_ratios=[1.5, 2.0], box_thresholds=[0.4, 0.6])


class BrightnessTask:
    """Stands in for a detector: an image's brightness is its probability map. Counts maps made and maps alive."""

    def __init__(self) -> None:
        self.network = paddle.nn.Identity()
        self.setting = setting_of(SHIPPED)
        self.num_maps, self.most_alive = 0, 0
        self._maps: list[weakref.ref[np.ndarray]] = []

    def probability_map(self, image: np.ndarray, resize: ResizeRule) -> np.ndarray:
        resized, _ = resize.apply(image)
        probability: np.ndarray = resized[..., 0].astype(np.float32) / 255
        self._maps.append(weakref.ref(probability))
        self.num_maps += 1
        self.most_alive = max(self.most_alive, sum(one() is not None for one in self._maps))
        return probability


@pytest.fixture
def records(tmp_path: Path) -> list[Record]:
    """Three images, each with a bright bar in a dark surround and a box a few pixels round it."""
    found = []
    for index in range(3):
        image = np.zeros((192, 160, 3), np.uint8)
        top, bottom = 30 + 10 * index, 60 + 10 * index
        image[top:bottom, 30:130] = 150 + 40 * index
        cv2.imwrite(str(tmp_path / f"{index}.png"), image)
        margin = 5 + 2 * index
        left, right, above, below = 30 - margin, 130 + margin, top - margin, bottom + margin
        box = np.array([(left, above), (right, above), (right, below), (left, below)], np.float32)
        found.append(Record(f"{index}.png", (192, 160), TextAnnotation((TextRegion(box),))))
    return found


def test_tuning_gives_what_evaluating_one_setting_after_the_other_gives(records, tmp_path, recorder):
    task: Any = BrightnessTask()
    result = tune_setting(task, tmp_path, records, SHIPPED, OPTIONS, [], recorder)
    assert len(result.table) == 8 and result.table[0].setting == SHIPPED
    # the network runs once an image and limit side, not once a setting
    assert task.num_maps == 2 * 3
    for trial in result.table:
        task.setting = setting_of(trial.setting)
        assert evaluate_records(task, tmp_path, records, [], recorder) == trial.metrics
    assert len({trial.objective for trial in result.table}) > 1


def test_one_map_is_alive_at_a_time_however_many_images_there_are(records, tmp_path, recorder):
    task: Any = BrightnessTask()
    tune_setting(task, tmp_path, records, SHIPPED, OPTIONS, [], recorder)
    assert task.most_alive <= 2  # the one being made, and the one before it until its name is taken


def test_what_was_evaluated_smaller_is_counted_in_the_metrics_and_known_to_the_next_evaluation(
    records, tmp_path, recorder, monkeypatch
):
    monkeypatch.setattr(maps_module, "_LEAST_SIDE_PX", 64)
    task: Any = BrightnessTask()
    full_size = task.probability_map

    def small_card(image: np.ndarray, resize: ResizeRule) -> np.ndarray:
        if resize.limit_side > 100:
            raise MemoryError
        return full_size(image, resize)

    task.probability_map = small_card
    maps = FittingMaps(task, recorder)
    metrics = [evaluate_records(task, tmp_path, records, [], recorder, "evaluation", maps) for _ in range(2)]
    assert [one["capped_images"] for one in metrics] == [3, 3]
    assert metrics[0] == metrics[1]
    # which image and shape: once; how many: after each evaluation
    assert sum("found no memory, twice" in warning for warning in recorder.warnings) == 1
    assert recorder.warnings[1:] == ["evaluation: 3 of 3 images smaller than in deployment, for lack of memory"] * 2
