"""Looking at files: large JPEGs are decoded at a fraction, and the sample stays what it was, in its place."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.batching.looking import decode_reduction, look_at
from pipelines.batching.views import crop_view, tilted, warp
from pipelines.dataset import read_image
from pipelines.errors import DataError


def page(file: Path, size_hw: tuple[int, int] = (1603, 1205)) -> np.ndarray:
    """Dark blocks on paper, grey within a level: what is left of it after decoding, uint8 (h, w, 3)."""
    rng = np.random.default_rng(3)
    image = np.full((*size_hw, 3), 230, np.uint8)
    for x, y, width in zip(
        rng.integers(0, 1000, 60), rng.integers(0, 1500, 60), rng.integers(40, 200, 60), strict=True
    ):
        image[y : y + 24, x : x + width] = rng.integers(20, 120)
    assert cv2.imwrite(str(file), image, [cv2.IMWRITE_JPEG_QUALITY, 95])
    return read_image(file)


@pytest.mark.parametrize(
    ("scale", "expected"), [(1.0, 1), (0.3, 1), (0.25, 2), (0.18, 2), (0.125, 4), (0.0625, 8), (0.01, 8)]
)
def test_two_decoded_pixels_are_left_for_one_of_the_sample(scale: float, expected: int) -> None:
    assert decode_reduction(np.array([[0, -scale, 5], [scale, 0, 7]]), (64, 64)) == expected
    assert (
        decode_reduction(np.array([[scale / 3, 0, 0], [0, scale, 0]]), (64, 64)) == expected
    )  # the finer side decides


@pytest.mark.parametrize("scale", [0.24, 0.12, 0.06])
def test_a_sample_of_a_reduced_jpeg_is_nearly_the_one_of_the_whole(tmp_path: Path, scale: float) -> None:
    whole = page(tmp_path / "page.jpg")
    matrix = crop_view(whole.shape[:2], (128, 96), scale, 2.0, np.random.default_rng(1))
    exact = warp(whole, matrix, (128, 96))
    seen = look_at(tmp_path / "page.jpg", whole.shape[:2], matrix, (128, 96))
    assert decode_reduction(matrix, (128, 96)) > 1 and not np.array_equal(seen, exact)
    assert np.abs(seen.astype(int) - exact).mean() < 4
    assert abs(shift_px(seen, exact)) < 0.1
    moved = warp(whole, np.column_stack([matrix[:, :2], matrix[:, 2] + [1, 0]]), (128, 96))
    assert abs(shift_px(moved, exact)) > 0.3  # the control: a pixel is seen


def test_a_tilted_sample_of_a_reduced_jpeg_is_nearly_the_one_of_the_whole(tmp_path: Path) -> None:
    whole = page(tmp_path / "page.jpg")
    tilt = tilted(whole.shape[:2], np.array([0.2, -0.1]))
    matrix = crop_view(whole.shape[:2], (128, 96), 0.18, 2.0, np.random.default_rng(1), tilt=tilt)
    exact, seen = warp(whole, matrix, (128, 96)), look_at(tmp_path / "page.jpg", whole.shape[:2], matrix, (128, 96))
    assert decode_reduction(matrix, (128, 96)) == 2
    assert np.abs(seen.astype(int) - exact).mean() < 4
    assert abs(shift_px(seen, exact)) < 0.1


def test_where_a_tilt_brings_the_page_nearer_it_is_decoded_finer() -> None:
    """At scale 0.24 half is enough; at the near corner, depth 0.8, the scale is above 0.25, and half is not."""
    flat = np.array([[0.24, 0, 0], [0, 0.24, 0], [0, 0, 1]])
    assert decode_reduction(flat, (240, 240)) == 2
    assert decode_reduction(flat @ tilted((1000, 1000), np.array([0.2, 0.2])), (240, 240)) == 1


def shift_px(one: np.ndarray, other: np.ndarray) -> float:
    """How far one image lies to the right of another."""
    greys = [image[..., 0].astype(np.float64) for image in (other, one)]
    return float(cv2.phaseCorrelate(*greys, cv2.createHanningWindow((96, 128), cv2.CV_64F))[0][0])


def test_without_reduction_the_sample_is_the_warp_of_the_image_bit_for_bit(tmp_path: Path) -> None:
    whole = page(tmp_path / "page.jpg")
    matrix = crop_view(whole.shape[:2], (128, 96), 0.7, 2.0, np.random.default_rng(1))
    seen = look_at(tmp_path / "page.jpg", whole.shape[:2], matrix, (128, 96))
    assert np.array_equal(seen, warp(whole, matrix, (128, 96)))


def test_other_formats_come_whole(tmp_path: Path) -> None:
    page(tmp_path / "page.jpg")
    cv2.imwrite(str(tmp_path / "page.png"), read_image(tmp_path / "page.jpg"))
    assert read_image(tmp_path / "page.png", reduction=4).shape == (1603, 1205, 3)
    assert read_image(tmp_path / "page.jpg", reduction=4).shape == (401, 302, 3)


@pytest.mark.parametrize("scale", [1.0, 0.2])
def test_an_image_of_another_size_than_the_dataset_says_is_refused_by_name(tmp_path: Path, scale: float) -> None:
    page(tmp_path / "page.jpg")
    matrix = np.array([[scale, 0, 0], [0, scale, 0]])
    with pytest.raises(DataError, match=r"page.jpg.*160[34] x 120[56].*1205 x 1603.*prepare"):
        look_at(tmp_path / "page.jpg", (1205, 1603), matrix, (64, 64))


def test_an_image_that_exif_turns_is_reduced_and_upright(tmp_path: Path) -> None:
    from PIL import Image

    whole = page(tmp_path / "page.jpg")
    exif = Image.Exif()
    exif[274] = 6
    Image.open(tmp_path / "page.jpg").save(tmp_path / "turned.jpg", exif=exif, quality=95)
    matrix = np.array([[0.2, 0, 0], [0, 0.2, 0]])
    upright = cv2.rotate(whole, cv2.ROTATE_90_CLOCKWISE)
    seen = look_at(tmp_path / "turned.jpg", (1205, 1603), matrix, (241, 320)).astype(int)
    assert np.abs(seen - warp(upright, matrix, (241, 320))).mean() < 4
