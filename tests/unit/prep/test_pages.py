"""Pages of PDFs: turned and cropped as a reader shows them, text where its ink is, boxes that find their way back.

TIFFs: test_tiff.py. Run: pytest tests/unit/prep/test_pages.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pypdfium2
import pytest
from PIL import Image

from pipelines.dataset import load_split, read_image
from pipelines.errors import DataError, UsageError
from pipelines.prep import prepare_text, write_pages
from pipelines.prep.pdf import page_view, rendered, text_lines
from tests.faults.tiny_documents import pdf
from tests.faults.tiny_images import pages_tiff

CROP = (30, 50, 290, 200)


@pytest.mark.parametrize("crop", [None, CROP, (0, 0, 1000, 1000)])
@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a_known_square_lies_where_the_map_says_however_the_page_is_turned_and_cropped(rotation, crop) -> None:
    page = pypdfium2.PdfDocument(pdf(rotation=rotation, crop=crop, text=[]))[0]
    view = page_view(page, 144, 10**8)
    picture = rendered(page, view, 144)
    rows, columns = np.nonzero(picture[..., 0] < 128)
    seen = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    corners = view.to_pixels(np.array([[100.0, 60.0], [110.0, 70.0]]))
    np.testing.assert_allclose([*corners.min(axis=0), *corners.max(axis=0)], seen, atol=1)
    sides = (150, 260) if crop == CROP else (200, 300)
    assert view.size_hw == tuple(2 * side for side in (sides if rotation in (0, 180) else sides[::-1]))


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_boxes_find_their_way_back_to_points(rotation) -> None:
    view = page_view(pypdfium2.PdfDocument(pdf(rotation=rotation, crop=CROP))[0], 300, 10**8)
    points = np.array([[30.0, 50.0], [290.0, 200.0], [123.4, 77.7]])
    np.testing.assert_allclose(view.to_points(view.to_pixels(points)), points, atol=1e-9)
    assert (view.to_pixels(points) >= -1e-3).all()  # PDFium places boxes in single precision


def test_text_lines_lie_on_their_ink_columns_stay_apart_and_cropped_text_is_not_there() -> None:
    page = pypdfium2.PdfDocument(pdf(crop=CROP))[0]
    view = page_view(page, 144, 10**8)
    lines = text_lines(page, view)
    assert [line.text for line in lines] == ["Invoice 4711", "Total", "3,50 EUR"]
    ink = rendered(page, view, 144)[..., 0] < 128
    for line in lines:
        left, top, right, bottom = (round(side) for side in line.box_xyxy_px)
        assert ink[top:bottom, left:right].any()
        ink[top - 2 : bottom + 2, left - 2 : right + 2] = False
    assert int(ink.sum()) == 20 * 20  # the square alone is outside of all lines


def test_drafts_prepare_as_they_are_and_pages_know_where_they_come_from(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "发票 1.pdf").write_bytes(pdf(pages=2))
    (tmp_path / "in" / "b.pdf").write_bytes(pdf(rotation=90))
    report = write_pages(tmp_path / "in", tmp_path / "out", dpi=150, draft_labels=True)
    assert (report.num_files, report.num_pages, report.num_with_text, report.num_drafts) == (2, 3, 3, 12)
    entries = [json.loads(line) for line in (tmp_path / "out" / "pages.jsonl").read_text("utf-8").splitlines()]
    assert [(Path(entry["file"]).name, entry["page"], entry["dpi"]) for entry in entries] == [
        ("b.pdf", 1, 150),
        ("发票 1.pdf", 1, 150),
        ("发票 1.pdf", 2, 150),
    ]
    assert read_image(tmp_path / "out" / entries[0]["image"]).shape == (625, 417, 3)
    prepared = prepare_text(tmp_path / "out", "paddleocr", tmp_path / "set", val_share=0.4, group_by=None)
    assert sum(counts.images for counts in prepared.counts.values()) == 3


@pytest.mark.parametrize("is_known", [True, False])
def test_pages_of_one_document_never_straddle_the_splits_unless_nobody_knows(tmp_path: Path, is_known: bool) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        sheets = [Image.new("RGB", (64, 48), (60 * number, 20 * page, 9)) for page in range(6)]
        sheets[0].save(tmp_path / "in" / f"inv {number}.tif", save_all=True, append_images=sheets[1:])
    write_pages(tmp_path / "in", tmp_path / "out")
    label_all(tmp_path / "out")
    if not is_known:
        (tmp_path / "out" / "pages.jsonl").unlink()
    prepare_text(tmp_path / "out", "paddleocr", tmp_path / "set", val_share=0.34)
    train, val = (
        {Path(record.path).stem.rpartition("_p")[0] for record in load_split(tmp_path / "set", split)}
        for split in ("train", "val")
    )
    assert bool(train & val) != is_known


def label_all(pages: Path) -> None:
    """A region on every page, as a person would draw one."""
    label = pages / "Label.txt"
    entry = '[{"transcription": "a", "points": [[1, 1], [40, 1], [40, 20], [1, 20]]}]'
    label.write_text(label.read_text("utf-8").replace("[]", entry), "utf-8")


def test_pages_of_a_single_document_are_split_and_told(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pages = tmp_path / "out"
    (tmp_path / "a.tif").write_bytes(pages_tiff(4))
    write_pages(tmp_path / "a.tif", pages)
    label_all(pages)
    report = prepare_text(pages, "paddleocr", tmp_path / "set", val_share=0.5)
    assert [counts.images for counts in report.counts.values()] == [2, 2]
    assert "all pages are of one document" in "".join(fault.reason for fault in report.faults)


def test_without_drafts_every_page_has_an_empty_line_to_fill(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf())
    report = write_pages(tmp_path / "a.pdf", tmp_path / "out", dpi=72)
    assert report.num_drafts == 0 and report.num_with_text == 1
    assert (tmp_path / "out" / "Label.txt").read_text() == "images/a_p001.png\t[]\n"


def test_two_files_whose_names_would_meet_keep_their_pages_apart(tmp_path: Path) -> None:
    (tmp_path / "in" / "a").mkdir(parents=True)
    for name in ("a/b.pdf", "a_b.pdf", "A_B.pdf", f"{'发' * 83}.pdf"):
        (tmp_path / "in" / name).write_bytes(pdf())
    report = write_pages(tmp_path / "in", tmp_path / "out", dpi=72)
    assert report.num_pages == 4
    names = [path.name for path in (tmp_path / "out" / "images").iterdir()]
    assert sorted(names)[:3] == ["A_B_p001.png", "a_b___p001.png", "a_b__p001.png"]
    assert all(len(name.encode()) < 255 for name in names)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty"), (b"\x89PNG\r\n\x1a\n", "neither a PDF nor a TIFF: it starts with b'.x89PNG")],
)
def test_a_file_that_only_is_called_pdf_is_named_for_what_it_is(tmp_path: Path, content, reason) -> None:
    (tmp_path / "a.pdf").write_bytes(content)
    with pytest.raises(DataError, match=reason):
        write_pages(tmp_path / "a.pdf", tmp_path / "out")


def test_broken_files_and_large_pages_are_named_and_the_others_written(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.pdf").write_bytes(pdf())
    (tmp_path / "in" / "torn.pdf").write_bytes(b"%PDF-1.4 and nothing else")
    report = write_pages(tmp_path / "in", tmp_path / "out", dpi=72)
    assert report.num_pages == 1 and report.faults[0].file.endswith("torn.pdf")
    with pytest.raises(DataError, match=r"page 1: would be 300 x 200 px at 72 dpi.*--dpi.*--max-megapixels"):
        write_pages(tmp_path / "in" / "good.pdf", tmp_path / "large", dpi=72, max_pixels=50_000)
    assert not (tmp_path / "large").exists()


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"dpi": 0}, "--dpi"),
        ({"dpi": 5000}, "--dpi"),
        ({"dpi": float("nan")}, "--dpi"),
        ({"max_pixels": 0}, "--max-megapixels"),
        ({"max_pixels": 2 * 10**9}, "--max-megapixels"),
    ],
)
def test_impossible_resolutions_and_budgets_are_refused(tmp_path: Path, options, option) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf())
    with pytest.raises(UsageError, match=option):
        write_pages(tmp_path / "a.pdf", tmp_path / "out", **options)
