"""An image that does not fit is evaluated at the largest size that does, told once, and remembered by its shape.

Run: pytest tests/unit/runs/text/test_maps.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from pipelines.errors import OutOfMemoryError
from pipelines.runs.text.maps import FittingMaps, sides_down_from
from pipelines.text_detection.resize import ResizeRule

RULE = ResizeRule(960)


class SmallCard:
    """Stands in for a task on a device that takes images up to `most_px` pixels; keeps the shapes it was asked for."""

    def __init__(self, most_px: int, num_refusals: int = 10**6):
        self.most_px, self.num_refusals = most_px, num_refusals
        self.shapes: list[tuple[int, int]] = []

    def probability_map(self, image: np.ndarray, resize: ResizeRule) -> np.ndarray:
        height, width = resize.size_hw(image.shape[:2])
        self.shapes.append((height, width))
        if height * width > self.most_px and self.num_refusals:
            self.num_refusals -= 1
            raise MemoryError
        return np.zeros((height, width), np.float32)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "page.png"
    cv2.imwrite(str(file), np.full((1280, 960, 3), 200, np.uint8))
    return file


def test_the_sides_to_try_are_multiples_of_32_and_end_at_320():
    # 4/5 of 768 is 614.4, of 608 486.4, of 480 384, of 384 307.2, which is below the floor
    assert list(sides_down_from(768)) == [768, 608, 480, 384, 320]
    assert list(sides_down_from(288)) == []


def test_what_fits_is_evaluated_at_the_size_of_deployment(page, recorder):
    task: Any = SmallCard(10**9)
    probability, is_capped = FittingMaps(task, recorder)(page, (1280, 960), RULE)
    assert (probability.shape, is_capped, recorder.warnings) == ((960, 704), False, [])


def test_memory_that_comes_back_changes_nothing(page, recorder):
    task: Any = SmallCard(0, num_refusals=1)
    probability, is_capped = FittingMaps(task, recorder)(page, (1280, 960), RULE)
    assert (probability.shape, is_capped, recorder.warnings) == ((960, 704), False, [])


def test_what_does_not_fit_is_made_smaller_step_by_step_told_once_and_remembered(page, recorder):
    task: Any = SmallCard(500 * 500)
    maps = FittingMaps(task, recorder)
    probability, is_capped = maps(page, (1280, 960), RULE)
    assert task.shapes == [(960, 704), (960, 704), (768, 576), (608, 448), (480, 352)]
    # 608 x 448 is 272384 pixels, above 250000; 480 x 352 is below
    assert (probability.shape, is_capped) == ((480, 352), True)
    assert len(recorder.warnings) == 1
    assert "page.png" in recorder.warnings[0]
    assert "704 x 960 px" in recorder.warnings[0] and "longest side of 480 px" in recorder.warnings[0]
    task.shapes.clear()
    assert maps(page, (1280, 960), RULE)[1]
    assert task.shapes == [(480, 352)]
    assert len(recorder.warnings) == 1


def test_a_cap_holds_for_its_own_shape_only(page, recorder):
    task: Any = SmallCard(500 * 500)
    maps = FittingMaps(task, recorder)
    maps(page, (1280, 960), RULE)
    assert maps(page, (1280, 960), ResizeRule(480))[1] is False


def test_memory_for_nothing_is_an_error_that_names_image_shape_and_way_out(page, recorder):
    task: Any = SmallCard(0)
    with pytest.raises(
        OutOfMemoryError, match=r"page\.png: evaluation at 704 x 960 px .* evaluate\.setting\.limit_side"
    ):
        FittingMaps(task, recorder)(page, (1280, 960), RULE)
    assert min(max(shape) for shape in task.shapes) == 320
