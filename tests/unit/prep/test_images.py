"""Odd image files become upright 8-bit ones, ordinary ones stay. Run: pytest tests/unit/prep/test_images.py"""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest
from PIL import Image

from pipelines.prep.images import examine_image, upright_bytes


def converted(path):
    return Image.open(io.BytesIO(upright_bytes(path)))


@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
def test_an_ordinary_image_is_not_converted(tmp_path, write_picture, name):
    write_picture(tmp_path / name)
    facts = examine_image(tmp_path / name)
    assert (facts.size_hw, facts.fault, facts.conversion, facts.note) == ((60, 80), "", "", "")


def test_a_grey_jpeg_is_not_converted(tmp_path):
    Image.new("L", (80, 60)).save(tmp_path / "a.jpg")
    assert examine_image(tmp_path / "a.jpg").conversion == ""


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_turned_photo_is_written_as_opencv_shows_it(tmp_path, orientation):
    pixels = np.zeros((64, 96, 3), np.uint8)
    pixels[:32, :48] = (250, 30, 30)
    exif = Image.Exif()
    exif[274] = orientation
    Image.fromarray(pixels).save(tmp_path / "a.jpg", exif=exif, quality=100)
    facts, shown = examine_image(tmp_path / "a.jpg"), cv2.imread(str(tmp_path / "a.jpg"))
    assert f"EXIF orientation {orientation}" in facts.conversion and facts.suffix == ""
    upright = converted(tmp_path / "a.jpg")
    assert upright.format == "JPEG" and upright.getexif().get(274, 1) == 1
    assert facts.size_hw == shown.shape[:2] == (upright.height, upright.width)
    assert np.abs(np.asarray(upright)[..., ::-1].astype(int) - shown).mean() < 2


def test_sixteen_bit_grey_keeps_its_upper_eight_bits(tmp_path):
    Image.fromarray(np.array([[0, 0x1234], [0x80FF, 0xFFFF]], np.uint16)).save(tmp_path / "a.png")
    assert "8-bit" in examine_image(tmp_path / "a.png").conversion
    assert np.asarray(converted(tmp_path / "a.png"))[..., 0].tolist() == [[0, 0x12], [0x80, 0xFF]]


def test_sixteen_bit_colour_is_noticed_although_pil_calls_it_rgb(tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), np.full((4, 4, 3), 40000, np.uint16))
    assert "8-bit" in examine_image(tmp_path / "a.png").conversion


def test_transparent_pixels_become_paper(tmp_path):
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(tmp_path / "a.png")
    assert np.asarray(converted(tmp_path / "a.png")).min() == 255


@pytest.mark.parametrize("mode", ["1", "P", "CMYK", "LA"])
def test_other_pixel_kinds_become_rgb(tmp_path, mode):
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    Image.new("RGB", (8, 8), "white").convert(mode).save(path)
    assert examine_image(path).conversion and np.asarray(converted(path)).min() == 255
    assert converted(path).mode == "RGB"


def test_a_tiff_of_three_pages_is_told_to_lose_two(tmp_path):
    pages = [Image.new("L", (8, 8), shade) for shade in (10, 20, 30)]
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    facts = examine_image(tmp_path / "a.tif")
    assert "3 pages and only the first" in facts.note and facts.suffix == ".png"
    assert np.asarray(converted(tmp_path / "a.tif")).max() == 10


def test_a_jpeg_damaged_in_its_header_is_refused(tmp_path, write_picture):
    content = write_picture(tmp_path / "a.jpg")
    (tmp_path / "a.jpg").write_bytes(content[:20] + b"\0" * 300 + content[320:])
    assert examine_image(tmp_path / "a.jpg").fault


def test_pixels_of_32_bits_are_refused_with_the_way_out(tmp_path):
    Image.fromarray(np.zeros((4, 4), np.float32)).save(tmp_path / "a.tif")
    assert "32-bit" in examine_image(tmp_path / "a.tif").fault
