"""Surfaces, harmless structure, marks and optics, each by a property that can be measured on its pixels.

Run: pytest tests/unit/synthesis/test_factory_parts.py
"""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from pipelines.synthesis.factory_images import DEFECTS
from pipelines.synthesis.factory_marks import Mark, Stage
from pipelines.synthesis.factory_optics import BLUR_REACH_PX, Optics, draw_optics
from pipelines.synthesis.factory_structure import SPECK_SIDE_PX, add_structure
from pipelines.synthesis.factory_surfaces import SURFACES, Surface, draw_brushed, lit_slopes, unit_noise

STAGE = Stage((256, 256), light_radians=0.7, strength=30.0)


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("size_hw", [(128, 128), (130, 259), (512, 300)])
@pytest.mark.parametrize("name", SURFACES)
def test_a_surface_has_the_size_asked_for_middle_greys_and_a_texture(name: str, size_hw: tuple[int, int]) -> None:
    for seed in range(4):
        grey = SURFACES[name].draw(rng_of(seed), size_hw, 0.3)
        assert grey.shape == size_hw and grey.dtype == np.float32 and np.isfinite(grey).all()
        assert 50 < grey.mean() < 200 and 1 < grey.std() < 45


def test_brushed_streaks_run_along_one_side() -> None:
    is_upright = []
    for seed in range(12):
        grey = draw_brushed(rng_of(seed), (256, 256), 0.0)
        roughness = sorted(float(np.abs(np.diff(grey, axis=axis)).mean()) for axis in (0, 1))
        assert roughness[1] > 4 * roughness[0]
        is_upright.append(np.abs(np.diff(grey, axis=0)).mean() < np.abs(np.diff(grey, axis=1)).mean())
    assert any(is_upright) and not all(is_upright)


@pytest.mark.parametrize("blur_xy_px", [(0.5, 0.5), (3.0, 3.0), (40.0, 2.0), (60.0, 60.0)])
def test_unit_noise_is_normalised_whatever_its_blur(blur_xy_px: tuple[float, float]) -> None:
    noise = unit_noise(rng_of(0), (200, 300), blur_xy_px)
    assert noise.shape == (200, 300) and noise.dtype == np.float32
    assert noise.mean() == pytest.approx(0, abs=1e-3) and noise.std() == pytest.approx(1, abs=1e-3)


def test_a_slope_towards_the_light_is_bright_by_hand() -> None:
    rise = np.tile(np.arange(8, dtype=np.float32) * 3, (8, 1))  # 3 up a pixel to the right: it faces left
    assert lit_slopes(rise, np.pi)[4, 4] == pytest.approx(3)
    assert lit_slopes(rise, 0.0)[4, 4] == pytest.approx(-3)
    assert lit_slopes(rise, np.pi / 2)[4, 4] == pytest.approx(0, abs=1e-5)


def test_holes_are_drilled_into_metal_alone_and_the_mask_covers_them() -> None:
    num_drilled = 0
    for seed in range(40):
        metal, cloth = (np.full((256, 256), 150, np.float32) for _ in range(2))
        is_hole = add_structure(rng_of(seed), metal, SURFACES["turned"], STAGE)
        assert not add_structure(rng_of(seed), cloth, SURFACES["woven"], STAGE).any()
        num_drilled += bool(is_hole.any())
        is_bore = cv2.medianBlur(metal.astype(np.uint8), 5) < 60  # specks and lines are thinner
        assert not (is_bore & ~is_hole).any() and is_bore.any() == is_hole.any()
    assert 5 <= num_drilled <= 20


def test_dust_is_smaller_than_any_defect() -> None:
    plain = Surface(draw_brushed)
    for seed in range(20):
        scene = np.zeros((256, 256), np.float32)
        add_structure(rng_of(seed), scene, plain, STAGE)
        is_line = [np.median(np.abs(scene), axis=axis, keepdims=True) > 10 for axis in (0, 1)]  # feed marks
        specks = ((np.abs(scene) > 30) & ~is_line[0] & ~is_line[1]).astype(np.uint8)
        *_, boxes, _ = cv2.connectedComponentsWithStats(specks)
        assert (boxes[1:, 2:4] <= 2 * SPECK_SIDE_PX).all()  # two may lie side by side


@pytest.mark.parametrize("name", DEFECTS)
def test_a_mark_has_died_away_at_the_border_of_its_patch(name: str) -> None:
    for seed in range(60):
        mark = DEFECTS[name](rng_of(seed), STAGE)
        border = np.ones(mark.offset.shape, dtype=bool)
        border[1:-1, 1:-1] = False
        assert np.abs(mark.offset[border]).max() <= 0.5
        if mark.gain_bgr is not None:
            assert np.abs(mark.gain_bgr[border] - 1).max() * 150 <= 0.5


def test_a_mark_that_sticks_out_is_cut_by_the_scene_worked_by_hand() -> None:
    mark = Mark(-1, 2, np.full((2, 3), 5, np.float32), np.full((2, 3, 3), 0.5, np.float32))
    scene = np.full((4, 4, 3), 10, np.float32)
    mark.draw_on(scene)
    expected = np.full((4, 4), 10)
    expected[2:4, 0:2] = 10 * 0.5 + 5
    np.testing.assert_array_equal(scene, np.where(expected[..., None] == 10, 10, expected[..., None].repeat(3, 2)))
    assert mark.window_xyxy((4, 4)) == (0, 2, 2, 4)
    assert mark.window_xyxy((4, 4), margin_px=1) == (0, 1, 3, 4)


def test_a_mark_outside_the_scene_changes_nothing() -> None:
    scene = np.full((4, 4, 3), 10, np.float32)
    Mark(9, 9, np.ones((2, 2), np.float32)).draw_on(scene)
    assert (scene == 10).all()
    left, top, right, bottom = Mark(9, 9, np.ones((2, 2), np.float32)).window_xyxy((4, 4))
    assert right - left <= 0 or bottom - top <= 0


def test_a_stain_changes_colour_and_adds_nothing() -> None:
    mark = DEFECTS["stain"](rng_of(1), STAGE)
    assert mark.gain_bgr is not None and not mark.offset.any()
    assert np.abs(mark.gain_bgr - 1).max() > 0.1


def test_a_pit_is_dark_in_the_middle_and_bright_on_the_rim_away_from_the_light() -> None:
    from_left = Stage((256, 256), light_radians=np.pi, strength=30.0)
    for seed in range(10):
        offset = DEFECTS["pit"](rng_of(seed), from_left).offset
        assert offset.min() < -40 and offset.max() > 8
        assert np.argmax(offset.max(axis=0)) > offset.shape[1] // 2


def test_a_window_is_exposed_as_in_the_whole_image() -> None:
    optics = draw_optics(rng_of(0), (200, 180))
    scene = rng_of(1).uniform(0, 255, (200, 180, 3)).astype(np.float32)
    left, top, right, bottom = window = (40, 50, 120, 140)
    part, whole = optics.exposed(scene[top:bottom, left:right], window), optics.exposed(scene)
    inner = slice(BLUR_REACH_PX, -BLUR_REACH_PX)
    np.testing.assert_allclose(part[inner, inner], whole[top:bottom, left:right][inner, inner], atol=1e-3)


def test_light_is_uneven_and_darker_in_the_corners() -> None:
    lights = np.stack([draw_optics(rng_of(seed), (128, 192)).light for seed in range(30)])
    corners = np.mean([lights[:, y, x].mean() for y in (3, -4) for x in (3, -4)])
    assert lights[:, 54:74, 86:106].mean() - corners > 0.1
    assert lights.min() > 0.4 and lights.max() < 1.3 and np.ptp(lights, axis=(1, 2)).min() > 0.05


def test_bright_pixels_are_noisier_by_the_law_of_photons() -> None:
    optics = Optics(np.ones((400, 400), np.float32), 0.5, read_noise=2.0, shot_noise=0.04)
    for grey, deviation in ((50.0, 6.0**0.5), (200.0, 12.0**0.5)):  # 4 + 0.04 x 50 and 4 + 0.04 x 200
        sensed = optics.sensed(rng_of(0), np.full((400, 400, 3), grey, np.float32))
        rounding = 1 / 12
        assert sensed[..., 1].std() == pytest.approx((deviation**2 + rounding) ** 0.5, rel=0.02)
        assert sensed.mean() == pytest.approx(grey, abs=0.05)
