"""Augmentation: evaluation's scale, shapes as asked, most crops with text, nothing changed that came in."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from pipelines.batching.colour import ColourJitter
from pipelines.batching.order import sample_rng
from pipelines.batching.shapes import ShapeChoice
from pipelines.batching.text import TextAugmentation
from pipelines.batching.views import Look, warp
from pipelines.errors import UsageError
from pipelines.geometry import equivalent_height
from pipelines.records import Record, TextAnnotation, TextRegion
from pipelines.text_detection.resize import ResizeRule

RULE = ResizeRule(640)


def look(image: np.ndarray) -> Look:
    return partial(warp, image)


def lone_line() -> tuple[np.ndarray, Record]:
    """A page of 2000 x 1600 px with one line of 40 px height in a corner; evaluation sees it at 0.32."""
    image = np.full((2000, 1600, 3), 235, np.uint8)
    image[1800:1840, 100:500] = 30
    line = TextRegion(np.array([[100, 1800], [500, 1800], [500, 1840], [100, 1840]]))
    return image, Record("page.png", (2000, 1600), TextAnnotation((line,)))


def test_text_is_seen_at_evaluations_scale_times_the_jitter() -> None:
    image, record = lone_line()
    augmentation = TextAugmentation(RULE.size_hw, scale_jitter=(0.8, 1.25), rotation_degrees=0, text_share=1.0)
    scale = augmentation.evaluation_scale((2000, 1600))
    assert scale == pytest.approx(0.32)  # 2000 -> 640
    heights = []
    for index in range(60):
        _, seen = augmentation.apply(look(image), record, ShapeChoice((256, 256)), sample_rng(0, 0, index))
        heights += [equivalent_height(region.points_px) for region in seen.regions]
    assert len(heights) == 60
    assert 0.8 * 12.8 - 0.01 <= min(heights) < 11 and 15 < max(heights) <= 1.25 * 12.8 + 0.01


def test_share_of_crops_with_text_is_as_asked_and_some_stay_without() -> None:
    image, record = lone_line()
    augmentation = TextAugmentation(RULE.size_hw, text_share=0.7)
    views = [augmentation.apply(look(image), record, ShapeChoice((96, 96)), sample_rng(0, 0, i))[1] for i in range(200)]
    with_text = np.mean([any(not region.is_ignored for region in seen.regions) for seen in views])
    assert 0.62 < with_text < 0.85  # 0.7 and the lucky ones among the others


def test_shapes_are_as_asked_and_pages_follow_the_rule() -> None:
    image, record = lone_line()
    augmentation = TextAugmentation(RULE.size_hw, scale_jitter=(1.0, 1.0), rotation_degrees=0, colour=None)
    crop, _ = augmentation.apply(look(image), record, ShapeChoice((224, 352)), sample_rng(0, 0, 0))
    page, seen = augmentation.apply(look(image), record, ShapeChoice((64, 64), is_page=True), sample_rng(0, 0, 0))
    assert crop.shape == (224, 352, 3)
    assert page.shape[:2] == RULE.size_hw((2000, 1600)) == (640, 512)
    np.testing.assert_allclose(seen.regions[0].points_px, record.annotation.regions[0].points_px * 0.32, rtol=1e-5)


def test_page_over_the_budget_is_scaled_down_within_the_jitter_or_cropped() -> None:
    image, record = lone_line()
    for budget, is_page in ((640 * 512 - 1, True), (200 * 200, False)):
        augmentation = TextAugmentation(RULE.size_hw, page_max_pixels=budget)
        for index in range(10):
            page, _ = augmentation.apply(look(image), record, ShapeChoice((64, 96), True), sample_rng(0, 0, index))
            assert page.shape[0] * page.shape[1] <= budget
            assert all(side % 32 == 0 for side in page.shape[:2])
            assert (page.shape != (64, 96, 3)) == is_page


def test_same_randomness_gives_the_same_bytes_and_inputs_stay_as_they_were() -> None:
    image, record = lone_line()
    before, points = image.copy(), record.annotation.regions[0].points_px.copy()
    augmentation = TextAugmentation(RULE.size_hw)
    choice = ShapeChoice((128, 128))
    one, two, other = (augmentation.apply(look(image), record, choice, sample_rng(0, 0, i))[0] for i in (1, 1, 2))
    assert np.array_equal(one, two) and not np.array_equal(one, other)
    assert np.array_equal(image, before) and np.array_equal(record.annotation.regions[0].points_px, points)


@pytest.mark.parametrize("size_hw", [(20, 30), (1, 1), (5, 3000), (33, 31)])
def test_odd_source_sizes_and_blank_pages_make_samples(size_hw: tuple[int, int]) -> None:
    image, record = np.full((*size_hw, 3), 255, np.uint8), Record("page.png", size_hw, TextAnnotation())
    for choice in (ShapeChoice((96, 64)), ShapeChoice((96, 64), is_page=True)):
        seen, annotation = TextAugmentation(RULE.size_hw).apply(look(image), record, choice, sample_rng(0, 0, 0))
        assert all(side % 32 == 0 and side > 0 for side in seen.shape[:2])
        assert annotation.regions == ()


def test_colour_jitter_of_strength_zero_changes_nothing_and_is_mild_by_default() -> None:
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    off = ColourJitter(0, 0, 0, 0, 0, 0)
    assert np.array_equal(off.apply(image, np.random.default_rng(0)), image)
    shifts = [
        np.abs(ColourJitter().apply(np.full((32, 32, 3), 128, np.uint8), np.random.default_rng(seed)).mean() - 128)
        for seed in range(50)
    ]  # fmt: skip
    assert 1 < np.mean(shifts) < 40


@pytest.mark.parametrize(
    "wrong", [{"scale_jitter": (1.2, 0.8)}, {"text_share": 2.0}, {"min_visible": -1.0}, {"perspective": 0.6}]
)
def test_impossible_settings_are_refused_by_name(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        TextAugmentation(RULE.size_hw, **wrong)
