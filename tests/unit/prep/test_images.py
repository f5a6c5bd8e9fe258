"""Odd image files become upright 8-bit ones, ordinary ones stay. Run: pytest tests/unit/prep/test_images.py"""

from __future__ import annotations

import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from PIL import Image, ImageFile

from pipelines.dataset import image_size_hw, read_image
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


FORMATS = {"JPEG": "a.jpg", "MPO": "a.jpg", "PNG": "a.png", "TIFF": "a.tif", "WEBP": "a.webp"}


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("kind", FORMATS)
def test_header_training_and_prepare_see_one_upright_picture_in_every_format(tmp_path, kind, orientation):
    pixels = np.zeros((64, 96, 3), np.uint8)
    pixels[:32, :48], pixels[32:, 48:] = (250, 30, 30), (30, 250, 30)
    exif, path = Image.Exif(), tmp_path / FORMATS[kind]
    exif[274] = orientation
    Image.fromarray(pixels).save(path, kind, exif=exif, quality=100)
    turns = {2: pixels[:, ::-1], 3: pixels[::-1, ::-1], 4: pixels[::-1], 5: pixels.transpose(1, 0, 2)}
    turns |= {6: turns[5][:, ::-1], 7: turns[5][::-1, ::-1], 8: turns[5][::-1]}
    facts, upright = examine_image(path), converted(path)
    assert f"EXIF orientation {orientation}" in facts.conversion and facts.orientation == orientation
    assert facts.stored_hw == (64, 96) and upright.getexif().get(274, 1) == 1
    assert (upright.format == "JPEG") == (facts.suffix == "")
    assert facts.size_hw == image_size_hw(path) == turns[orientation].shape[:2]
    for seen in (read_image(path)[..., ::-1], np.asarray(upright)):
        assert np.abs(seen.astype(int) - turns[orientation]).mean() < 3


def test_a_cut_picture_stays_a_fault_whatever_another_library_told_pil(tmp_path, monkeypatch):
    (tmp_path / "cut.bmp").write_bytes(_bmp(tmp_path)[:4000])
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)  # as importing ppdet does
    assert "can't be decoded" in examine_image(tmp_path / "cut.bmp").fault


def _bmp(folder):
    Image.effect_noise((96, 64), 50).save(folder / "whole.bmp")
    return (folder / "whole.bmp").read_bytes()


def test_a_picture_over_the_budget_is_refused_from_its_header_with_the_option(tmp_path):
    Image.new("1", (400, 300)).save(tmp_path / "a.png")
    assert (
        "400 x 300 px, more than 0.1 megapixels: raise --max-megapixels"
        in examine_image(tmp_path / "a.png", max_pixels=100_000).fault
    )
    assert examine_image(tmp_path / "a.png", max_pixels=120_000).fault == ""  # the control


@pytest.mark.parametrize("size_wh", [(60_000, 60_000), (1, 2_000_000)])
def test_a_header_that_promises_more_than_opencv_decodes_is_no_picture_to_raise_the_budget_for(tmp_path, size_wh):
    content = io.BytesIO()
    Image.new("L", (8, 8)).save(content, "PNG")
    header = b"IHDR" + struct.pack(">II", *size_wh) + content.getvalue()[24:29]
    png = content.getvalue()[:12] + header + struct.pack(">I", zlib.crc32(header)) + content.getvalue()[33:]
    (tmp_path / "a.png").write_bytes(png)
    fault = examine_image(tmp_path / "a.png").fault
    assert f"{size_wh[0]} x {size_wh[1]} px, and OpenCV decodes no more than" in fault and "--max" not in fault


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
