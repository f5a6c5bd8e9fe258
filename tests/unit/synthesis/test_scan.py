"""A scan moves the page and its labels by one map, and only light and grain come after it."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from pipelines.records import TextRegion
from pipelines.synthesis.scan import ScanEffects, age, draw_homography, keep_inside, project_points, smear, warp

PAPER = (255, 255, 255)


def page_with_block(box_xyxy: tuple[int, int, int, int]) -> tuple[np.ndarray, TextRegion]:
    left, top, right, bottom = box_xyxy
    image = np.full((300, 200, 3), 255, dtype=np.uint8)
    image[top:bottom, left:right] = 0
    return image, TextRegion(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]))


def darkness_inside(image: np.ndarray, quad: np.ndarray) -> tuple[float, float]:
    """Shares of the dark and of the light area that a quad holds, by 8 x 8 supersampling of its outline."""
    mask = np.zeros((image.shape[0] * 8, image.shape[1] * 8), dtype=np.uint8)
    cv2.fillPoly(mask, [np.rint(quad * 8 - 0.5).astype(np.int32)], 1)
    inside = mask.reshape(image.shape[0], 8, image.shape[1], 8).mean(axis=(1, 3))
    darkness = 1 - image[..., 0] / 255
    return float((darkness * inside).sum() / darkness.sum()), float((darkness * inside).sum() / inside.sum())


@pytest.mark.parametrize("seed", range(5))
def test_block_and_label_move_together_under_rotation_and_perspective(seed: int) -> None:
    image, region = page_with_block((60, 80, 150, 100))
    strong = ScanEffects(max_rotation_degrees=20, max_perspective=0.05)
    homography = draw_homography(np.random.default_rng(seed), (300, 200), strong)
    warped, (moved,) = warp(image, [region], homography, PAPER)
    assert min(darkness_inside(warped, moved.points_px)) > 0.97
    assert min(darkness_inside(warped, moved.points_px + 0.5)) < 0.97  # the control: half a pixel off shows


def test_doubling_map_is_worked_by_hand() -> None:
    image, region = page_with_block((10, 20, 30, 26))
    double = np.diag([2.0, 2.0, 1.0])
    warped, (moved,) = warp(image, [region], double, PAPER)
    assert moved.points_px.tolist() == [[20, 40], [60, 40], [60, 52], [20, 52]]
    # Pixel corners map to pixel corners: the 20 x 6 block covers just 40 x 12 pixels, none shared with its edge.
    rows, columns = np.nonzero(warped[..., 0] < 128)
    assert (columns.min(), columns.max() + 1, rows.min(), rows.max() + 1) == (20, 60, 40, 52)


def test_points_that_would_leave_the_frame_shrink_it_just_enough() -> None:
    points = np.array([[0, 0], [200, 0], [200, 300], [0, 300]], dtype=float)
    turned = draw_homography(np.random.default_rng(0), (300, 200), ScanEffects(30, 0.0))
    assert (project_points(points, turned) < 0).any()
    kept = project_points(points, keep_inside(turned, points, (300, 200)))
    assert (kept >= 0).all() and (kept <= [200, 300]).all()
    assert min(kept.min(), (np.array([200, 300]) - kept).min()) < 0.5  # and no further


def test_points_inside_are_left_alone() -> None:
    points = np.array([[50, 50], [150, 250]], dtype=float)
    turned = draw_homography(np.random.default_rng(0), (300, 200), ScanEffects(2, 0.0))
    np.testing.assert_array_equal(keep_inside(turned, points, (300, 200)), turned)


def test_ageing_moves_nothing_and_strength_zero_leaves_the_page() -> None:
    image, _ = page_with_block((60, 80, 150, 100))
    aged = age(image, np.random.default_rng(1), 1.0)
    shift, _ = cv2.phaseCorrelate(image[..., 0].astype(np.float64), aged[..., 0].astype(np.float64))
    assert np.abs(shift).max() < 0.2 and aged.dtype == np.uint8
    assert (aged != image).mean() > 0.5
    untouched = age(image, np.random.default_rng(1), 0.0)
    assert np.abs(untouched.astype(int) - image).max() <= 2  # JPEG at quality 100


def test_smear_leaves_no_letter_edges() -> None:
    stripes = np.tile(np.array([0, 255], dtype=np.uint8).repeat(3), 20)[None, :, None].repeat(12, 0).repeat(3, 2)
    assert np.ptp(smear(stripes)[:, 20:-20]) < 40 < np.ptp(stripes)
