"""Every page of a TIFF becomes the very picture it holds; a damaged page costs itself alone.

Run: pytest tests/unit/prep/test_tiff.py
"""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from pipelines.dataset import read_image
from pipelines.errors import DataError
from pipelines.prep import PagesReport, prepare_text, write_pages

ORIENTATION, NEW_SUBFILE_TYPE = 274, 254
# 2 rows of 3 pixels, red, green, blue above black, grey, white; RGB
PIXELS = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[0, 0, 0], [90, 90, 90], [255, 255, 255]]], np.uint8)


def tiff(*pages: Image.Image, **options: Any) -> bytes:
    """A TIFF of one picture a page, each with the tags in its `info["tags"]`."""
    content = io.BytesIO()
    with TiffImagePlugin.AppendingTiffWriter(content, new=True) as file:
        for page in pages:
            tags = TiffImagePlugin.ImageFileDirectory_v2()
            for tag, value in page.info.pop("tags", {}).items():
                tags[tag] = value
            page.save(file, "TIFF", tiffinfo=tags, **options)
            file.newFrame()
    return content.getvalue()


def page(pixels: np.ndarray = PIXELS, mode: str | None = None, **tags: Any) -> Image.Image:
    picture = Image.fromarray(pixels)
    picture = picture if mode is None else picture.convert(mode)
    picture.info["tags"] = {int(name[1:]): value for name, value in tags.items()}
    return picture


def shade(value: int) -> Image.Image:
    return page(np.full((64, 48), value, np.uint8))


def pages_of(
    content: bytes, folder: Path, **options: Any
) -> tuple[PagesReport, list[np.ndarray], list[dict[str, Any]]]:
    """Report, pictures as RGB and index entries of `pages` of a TIFF."""
    (folder / "scan.tif").write_bytes(content)
    report = write_pages(folder / "scan.tif", folder / "out", **options)
    entries = [json.loads(line) for line in (folder / "out" / "pages.jsonl").read_text("utf-8").splitlines()]
    return report, [read_image(folder / "out" / entry["image"])[..., ::-1] for entry in entries], entries


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_every_page_has_its_own_pixels_size_and_turn(tmp_path: Path, compression: str | None) -> None:
    turned = page(**{f"t{ORIENTATION}": 6})  # to be turned clockwise
    mirrored = page(**{f"t{ORIENTATION}": 3})
    content = tiff(page(), turned, shade(77), mirrored, page(mode="L"), compression=compression)
    report, pictures, entries = pages_of(content, tmp_path)
    assert (report.num_files, report.num_pages, report.faults) == (1, 5, ())
    expected = [
        PIXELS,
        np.array([[PIXELS[1, x], PIXELS[0, x]] for x in range(3)]),
        np.full((64, 48, 3), 77, np.uint8),
        PIXELS[::-1, ::-1],
        np.repeat(np.array([[[76], [150], [29]], [[0], [90], [255]]], np.uint8), 3, axis=2),
    ]
    for seen, meant in zip(pictures, expected, strict=True):
        np.testing.assert_array_equal(seen, meant)
    assert [entry["orientation"] for entry in entries] == [1, 6, 1, 3, 1]
    assert [Path(entry["image"]).name for entry in entries] == [f"scan_p00{number}.png" for number in range(1, 6)]


def test_control_prepare_sees_the_first_page_alone_and_pages_makes_the_same_picture_of_it(tmp_path: Path) -> None:
    content = tiff(shade(10), shade(200))
    pages_of(content, tmp_path)
    assert read_image(tmp_path / "scan.tif").max() == 10
    assert read_image(tmp_path / "out" / "images" / "scan_p002.png").min() == 200


def test_fax_palette_and_sixteen_bits_become_eight_bit_pictures(tmp_path: Path) -> None:
    sixteen = page(np.array([[0, 0x1234], [0x80FF, 0xFFFF]], np.uint16))
    content = tiff(page(np.array([[0, 255], [255, 0]], np.uint8), "1"), sixteen, page(PIXELS[:1], "P"))
    _, pictures, _ = pages_of(content, tmp_path)
    assert pictures[0][..., 0].tolist() == [[0, 255], [255, 0]]
    assert pictures[1][..., 0].tolist() == [[0, 0x12], [0x80, 0xFF]]
    np.testing.assert_array_equal(pictures[2], PIXELS[:1])


@pytest.mark.parametrize(
    ("tags", "dpi"),
    [
        ({"t282": 300.0, "t283": 300.0, "t296": 2}, 300),
        ({"t282": 118.11, "t283": 118.11, "t296": 3}, 299.999),  # a centimetre
        ({"t282": 200.0, "t283": 196.0}, [200, 196]),
        ({"t282": 200.0, "t283": 196.0, f"t{ORIENTATION}": 8}, [196, 200]),
        ({"t282": 1.0, "t283": 1.0, "t296": 1}, None),  # a ratio, no size
        ({}, None),
    ],
)
def test_each_page_says_its_own_resolution(tmp_path: Path, tags: dict[str, Any], dpi: Any) -> None:
    first = page(t282=600.0, t283=600.0, t296=2)
    report, _, entries = pages_of(tiff(first, page(**tags)), tmp_path)
    assert [entry["dpi"] for entry in entries] == [600, dpi] and not report.faults


def test_pixels_that_are_not_square_are_told_once(tmp_path: Path) -> None:
    report, _, _ = pages_of(tiff(*(page(t282=204.0, t283=98.0) for _ in range(3))), tmp_path)
    assert [(fault.item, fault.action) for fault in report.faults] == [("page 1", "warning")]
    assert "204 x 98 dpi" in report.faults[0].reason


def test_smaller_copies_and_masks_are_no_pages(tmp_path: Path) -> None:
    content = tiff(shade(1), page(**{f"t{NEW_SUBFILE_TYPE}": 1}), page(**{f"t{NEW_SUBFILE_TYPE}": 4}), shade(4))
    report, _, entries = pages_of(content, tmp_path)
    assert [entry["page"] for entry in entries] == [1, 4]
    assert ["smaller copy" in fault.reason for fault in report.faults] == [True, False]


def test_a_page_over_the_budget_and_one_of_floats_are_named_and_the_others_kept(tmp_path: Path) -> None:
    large, floats = page(np.zeros((200, 100), np.uint8)), page(np.zeros((4, 4), np.float32))
    report, _, entries = pages_of(tiff(shade(1), large, floats, shade(4)), tmp_path, max_pixels=10_000)
    assert [entry["page"] for entry in entries] == [1, 4]
    assert [fault.item for fault in report.faults] == ["page 2", "page 3"]
    assert "100 x 200 px" in report.faults[0].reason and "32-bit" in report.faults[1].reason


def directories(content: bytes) -> list[int]:
    """Where the directories of a little-endian TIFF begin."""
    places = [struct.unpack_from("<I", content, 4)[0]]
    while places[-1]:
        (length,) = struct.unpack_from("<H", content, places[-1])
        places.append(struct.unpack_from("<I", content, places[-1] + 2 + 12 * length)[0])
    return places[:-1]


def pixels_of(content: bytes, number: int) -> int:
    """Where the pixels of a page begin (tag 273, StripOffsets)."""
    place = directories(content)[number - 1]
    for entry in range(struct.unpack_from("<H", content, place)[0]):
        tag, _, _, value = struct.unpack_from("<HHII", content, place + 2 + 12 * entry)
        if tag == 273:
            return int(value)
    raise AssertionError("no pixels")


@pytest.mark.parametrize("damaged", [1, 2, 3])
def test_a_page_of_damaged_pixels_costs_itself_alone(tmp_path: Path, damaged: int) -> None:
    content = bytearray(tiff(shade(1), shade(2), shade(3), compression="tiff_lzw"))
    at = pixels_of(bytes(content), damaged)
    content[at : at + 12] = b"\xff" * 12
    report, pictures, entries = pages_of(bytes(content), tmp_path)
    kept = [number for number in (1, 2, 3) if number != damaged]
    assert [entry["page"] for entry in entries] == kept
    assert [(picture.min(), picture.max()) for picture in pictures] == [(number, number) for number in kept]
    assert [fault.item for fault in report.faults] == [f"page {damaged}"]
    assert "can't be decoded" in report.faults[0].reason


def test_a_file_cut_off_keeps_the_pages_before_the_cut(tmp_path: Path) -> None:
    content = tiff(shade(1), shade(2), shade(3))
    report, pictures, _ = pages_of(content[: directories(content)[2] + 5], tmp_path)
    assert [picture.max() for picture in pictures] == [1, 2]
    assert report.faults[0].item == "page 3" and "copy it again" in report.faults[0].reason


def test_pages_that_run_in_a_circle_come_once(tmp_path: Path) -> None:
    content = bytearray(tiff(shade(1), shade(2)))
    first, last = directories(bytes(content))
    (length,) = struct.unpack_from("<H", content, last)
    struct.pack_into("<I", content, last + 2 + 12 * length, first)
    report, pictures, _ = pages_of(bytes(content), tmp_path)
    assert [picture.max() for picture in pictures] == [1, 2]
    assert "circle" in report.faults[0].reason


@pytest.mark.parametrize("content", [b"II*\0", b"II*\0\x08\0\0\0", b"MM\0+" + b"\xff" * 12, b"II*\0\0\0\0\0"])
def test_a_header_alone_is_one_message(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match=r"scan\.tif: .*(can't be read as a TIFF|page 1: is not)"):
        pages_of(content, tmp_path)
    assert not (tmp_path / "out").exists()


def test_pdfs_and_tiffs_of_one_folder_go_together_and_prepare_reads_them(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "fax.TIF").write_bytes(tiff(shade(1), shade(2)))
    (tmp_path / "in" / "renamed.pdf").write_bytes(tiff(shade(3)))
    assert write_pages(tmp_path / "in", tmp_path / "out").num_pages == 3
    label = tmp_path / "out" / "Label.txt"
    lines = label.read_text("utf-8").replace(
        "[]", '[{"transcription": "a", "points": [[1, 1], [40, 1], [40, 20], [1, 20]]}]'
    )
    label.write_text(lines, "utf-8")
    report = prepare_text(tmp_path / "out", "paddleocr", tmp_path / "set", val_share=0.4)
    assert sum(counts.images for counts in report.counts.values()) == 3


def test_a_long_file_is_decoded_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.prep import pages

    held: list[np.ndarray] = []
    write = pages.cv2.imencode

    def counting(suffix: str, picture: np.ndarray) -> Any:
        held.append(picture)
        assert len(list(tmp_path.rglob("scan_p*.png"))) == len(held) - 1  # each is on disk before the next is read
        return write(suffix, picture)

    monkeypatch.setattr(pages.cv2, "imencode", counting)
    assert pages_of(tiff(*map(shade, range(30))), tmp_path)[0].num_pages == 30
