"""Boxes are measured again here, on the difference of the image with and without its defects.

Run: pytest tests/unit/synthesis/test_factory_images.py
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from pipelines.synthesis import factory_images
from pipelines.synthesis.factory_images import (
    CLASSES,
    CLEAR_RATIO,
    MIN_BOX_SIDE_PX,
    VISIBLE_CONTRASTS,
    FactoryImage,
    draw_factory_image,
)
from pipelines.synthesis.factory_marks import Mark, Stage

SIZES_HW = [(256, 256), (128, 160), (160, 480)]


def draw(seed: int, class_ids: list[int], size_hw: tuple[int, int] = (256, 256)) -> FactoryImage:
    return draw_factory_image(np.random.default_rng(seed), size_hw, class_ids)


def change_of(drawn: FactoryImage) -> np.ndarray:
    """Grey levels by which defects changed a pixel, the largest of the three channels; float32 (height, width)."""
    return np.abs(drawn.marked - drawn.clean).max(axis=2)


def assert_boxes_are_the_change(drawn: FactoryImage, boxes: np.ndarray) -> None:
    """Every visibly changed pixel lies in a box, and every box has one on each of its four sides."""
    is_changed = change_of(drawn) >= drawn.visible_contrast
    in_a_box = np.zeros_like(is_changed)
    for left, top, right, bottom in boxes.astype(int):
        inside = is_changed[top:bottom, left:right]
        assert inside.shape == (bottom - top, right - left)  # the box lies in the image
        assert inside[0].any() and inside[-1].any() and inside[:, 0].any() and inside[:, -1].any()
        in_a_box[top:bottom, left:right] = True
    assert not (is_changed & ~in_a_box).any()


@pytest.mark.parametrize("size_hw", SIZES_HW)
@pytest.mark.parametrize("class_id", range(len(CLASSES)), ids=CLASSES)
@pytest.mark.parametrize("seed", range(4))
def test_the_box_of_a_defect_is_the_extent_of_the_pixels_it_changed(
    seed: int, class_id: int, size_hw: tuple[int, int]
) -> None:
    drawn = draw(seed, [class_id], size_hw)
    assert drawn.annotation.class_ids.tolist() == [class_id]
    assert_boxes_are_the_change(drawn, drawn.annotation.boxes_xyxy_px)


@pytest.mark.parametrize("seed", range(8))
def test_several_defects_keep_their_own_boxes(seed: int) -> None:
    drawn = draw(seed, [0, 1, 2, 3])
    assert len(drawn.annotation.boxes_xyxy_px) == 4
    assert_boxes_are_the_change(drawn, drawn.annotation.boxes_xyxy_px)


@pytest.mark.parametrize("seed", range(8))
def test_a_further_defect_leaves_the_pixels_of_the_earlier_ones_as_they_were(seed: int) -> None:
    # the chance that draws the surface and the first defects is the same, so the last one can be told apart
    fewer, more = draw(seed, [2, 3, 1]), draw(seed, [2, 3, 1, 0])
    np.testing.assert_array_equal(fewer.clean, more.clean)
    was_changed = change_of(fewer) > 1
    difference = np.abs(more.marked - fewer.marked).max(axis=2)
    assert difference[was_changed].max() <= 0.5 < difference.max()  # half a grey level is no change


@pytest.mark.parametrize("shift_px", [(1, 0, 1, 0), (0, 1, 0, 1), (-1, 0, 0, 0), (0, 0, 0, 1)])
def test_the_check_of_boxes_fails_for_a_box_one_pixel_off(shift_px: tuple[int, int, int, int]) -> None:
    drawn = draw(2, [1])
    with pytest.raises(AssertionError):
        assert_boxes_are_the_change(drawn, drawn.annotation.boxes_xyxy_px + np.array(shift_px))


@pytest.mark.parametrize("class_id", range(len(CLASSES)), ids=CLASSES)
@pytest.mark.parametrize("seed", range(6))
def test_every_defect_stands_out_and_none_is_a_sliver(seed: int, class_id: int) -> None:
    drawn = draw(100 + seed, [class_id])
    left, top, right, bottom = drawn.annotation.boxes_xyxy_px[0].astype(int)
    assert min(right - left, bottom - top) >= MIN_BOX_SIDE_PX
    change = change_of(drawn)[top:bottom, left:right]
    visible = change[change >= drawn.visible_contrast]
    # exposing a window and the whole image differ in the last bits
    assert np.quantile(visible, 0.9) >= CLEAR_RATIO * drawn.visible_contrast - 0.01
    assert VISIBLE_CONTRASTS[0] <= drawn.visible_contrast <= VISIBLE_CONTRASTS[1]


def faded(draw_mark: Callable[[np.random.Generator, Stage], Mark], share: float) -> Callable[..., Mark]:
    def draw_faded(rng: np.random.Generator, stage: Stage) -> Mark:
        mark = draw_mark(rng, stage)
        return Mark(mark.left_px, mark.top_px, mark.offset * np.float32(share), mark.gain_bgr)

    return draw_faded


def test_a_defect_that_nobody_could_see_gets_no_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the contrast bound: a pit of a hundredth of its depth is refused, at every try."""
    pit = factory_images.DEFECTS["pit"]
    monkeypatch.setattr(factory_images, "DEFECTS", {**factory_images.DEFECTS, "pit": faded(pit, 0.01)})
    with pytest.raises(ValueError, match="no room for another pit"):
        draw(0, [1])


def test_a_thin_mark_gets_no_box(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw_hair(rng: np.random.Generator, stage: Stage) -> Mark:
        offset = np.zeros((1, 40), np.float32)
        offset[:, 3:-3] = -90
        return Mark(60, 60, offset)

    monkeypatch.setattr(factory_images, "DEFECTS", {**factory_images.DEFECTS, "scratch": draw_hair})
    monkeypatch.setattr(factory_images, "MIN_BOX_SIDE_PX", 1)
    assert draw(0, [0]).annotation.boxes_xyxy_px.shape == (1, 4)  # dark enough, if thin ones were let through
    monkeypatch.setattr(factory_images, "MIN_BOX_SIDE_PX", 8)
    with pytest.raises(ValueError, match="no room for another scratch"):
        draw(0, [0])


def test_an_ok_image_has_no_box_and_is_not_smooth() -> None:
    for seed in range(10):
        drawn = draw(seed, [])
        assert drawn.annotation.is_ok and drawn.annotation.boxes_xyxy_px.shape == (0, 4)
        assert drawn.marked is drawn.clean
        assert drawn.image.std() > 4


def test_noise_comes_after_the_labels_and_moves_nothing() -> None:
    drawn = draw(4, [0, 1])
    noise = drawn.image.astype(np.float32) - drawn.marked
    assert 0.8 < noise.std() < 4.5 and abs(noise.mean()) < 0.1
    shift, _ = cv2.phaseCorrelate(*(image[..., 1].astype(np.float64) for image in (drawn.marked, drawn.image)))
    assert np.abs(shift).max() < 0.05


@pytest.mark.parametrize("num_threads", [1, 2])
def test_same_seed_same_pixels_whatever_the_number_of_threads(num_threads: int) -> None:
    before = cv2.getNumThreads()
    first = draw(7, [0, 1, 2])
    try:
        cv2.setNumThreads(num_threads)
        again = draw(7, [0, 1, 2])
    finally:
        cv2.setNumThreads(before)
    np.testing.assert_array_equal(first.image, again.image)
    np.testing.assert_array_equal(first.annotation.boxes_xyxy_px, again.annotation.boxes_xyxy_px)
    assert (draw(8, [0, 1, 2]).image != first.image).any()


def test_sizes_of_scratches_vary_widely_and_reach_over_tiles() -> None:
    boxes = np.concatenate([draw(seed, [0], (160, 768)).annotation.boxes_xyxy_px for seed in range(25)])
    longest = np.diff(boxes.reshape(-1, 2, 2), axis=1)[:, 0].max(axis=1)
    assert longest.min() < 40 and longest.max() > 320  # more than a 256 px tile with any overlap


def test_an_image_too_small_for_defects_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at least 128 on each side, but got \(127, 256\)"):
        draw(0, [], (127, 256))
