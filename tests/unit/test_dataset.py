"""The prepared dataset on disk: label lines, images and splits. Run: pytest tests/unit/test_dataset.py"""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from pipelines.dataset import format_label_line, image_size_hw, load_split, parse_label_line, read_image
from pipelines.dataset.region_checks import region_fault, region_faults
from pipelines.errors import DataError
from pipelines.records import Record, TextAnnotation, TextRegion

BOX = [[10, 10], [50, 10], [50, 20], [10, 20]]


def write_picture(path: Path, size_hw: tuple[int, int] = (60, 80), seed: int = 0) -> bytes:
    """A noise picture, encoded by the path's suffix; the bytes written."""
    pixels = np.random.default_rng(seed).integers(0, 256, (*size_hw, 3), dtype=np.uint8)
    content = cv2.imencode(path.suffix, pixels)[1].tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return content


def label_line(path: str, *polygons: list[list[float]], transcription: str = "text") -> str:
    entries = [{"transcription": transcription, "points": points} for points in polygons]
    return f"{path}\t{json.dumps(entries)}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_picture(tmp_path / "images" / "a.jpg")
    return tmp_path


# Label lines


def test_a_label_line_survives_writing_and_reading():
    triangle = np.array([[0.25, 1], [9.5, 1], [5, 7.75]], np.float32)
    regions = (TextRegion(triangle, "合计: 1,00\t€\n"), TextRegion(np.array(BOX), "###", is_ignored=True))
    record = Record("images/发票 1.jpg", (60, 80), TextAnnotation(regions))
    line = format_label_line(record)
    path, annotation = parse_label_line(line)
    assert path == record.path and line.count("\t") == 1 and "\n" not in line
    assert [r.transcription for r in annotation.regions] == ["合计: 1,00\t€\n", "###"]
    assert [r.is_ignored for r in annotation.regions] == [False, True]
    np.testing.assert_array_equal(annotation.regions[0].points_px, triangle)


@pytest.mark.parametrize(
    ("entry", "is_ignored"),
    [
        ({"transcription": "###"}, True),
        ({"transcription": "*"}, True),
        ({"transcription": "ok", "difficult": True}, True),
        ({"transcription": "ok", "difficult": False}, False),
        ({}, False),
    ],
)
def test_ignore_marks_are_those_of_paddleocr(entry, is_ignored):
    _, annotation = parse_label_line("a.jpg\t" + json.dumps([{**entry, "points": BOX}]))
    assert annotation.regions[0].is_ignored is is_ignored


def test_a_difficult_region_is_written_as_the_mark_that_paddleocr_reads():
    region = TextRegion(np.array(BOX), "ok", is_ignored=True)
    assert '"###"' in format_label_line(Record("a.jpg", (60, 80), TextAnnotation((region,))))


@pytest.mark.parametrize("written", ["images\\a.jpg", "./images/a.jpg", ".\\images\\a.jpg", "images/a.jpg"])
def test_paths_come_out_with_forward_slashes_and_no_leading_dot(written):
    assert parse_label_line(label_line(written, BOX))[0] == "images/a.jpg"


def test_a_path_that_would_break_the_label_file_is_refused():
    with pytest.raises(ValueError, match="tab or line break"):
        format_label_line(Record("a\tb.jpg", (60, 80), TextAnnotation()))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a.jpg []", "no tab"),
        ("", "blank"),
        ("a.jpg\t{}", "must be a JSON list"),
        ("a.jpg\t[{}]", '"points" is missing'),
        ('a.jpg\t[{"points": [[1, 2], [3, 4]]}]', "at least 3 points, but this has 2"),
        ('a.jpg\t[{"points": [[1, "2"], [3, 4], [5, 6]]}]', "two numbers"),
        ('a.jpg\t[{"points": [[1, NaN], [3, 4], [5, 6]]}]', "finite"),
        ('a.jpg\t[{"points": [[1, 2], [3], [5, 6]]}]', "two numbers"),
    ],
)
def test_a_wrong_label_line_says_what_is_wrong(line, reason):
    with pytest.raises(DataError, match=reason):
        parse_label_line(line)


# Splits


def test_a_plain_paddleocr_folder_loads_with_sizes_from_the_headers(root):
    (root / "train.txt").write_text(label_line("images/a.jpg", BOX))
    (record,) = load_split(root, "train")
    assert (record.path, record.size_hw, record.group) == ("images/a.jpg", (60, 80), "images/a.jpg")


def test_size_and_group_come_from_dataset_yml_where_it_is(root):
    (root / "train.txt").write_text(label_line("images/a.jpg", BOX))
    (root / "dataset.yml").write_text('images:\n  "images/a.jpg": {"size_hw": [61, 81], "group": "roll 7"}\n')
    (record,) = load_split(root, "train")
    assert (record.size_hw, record.group) == ((61, 81), "roll 7")


def test_an_absolute_path_in_a_label_file_is_used_as_it_is(root, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "b.png"
    write_picture(elsewhere)
    (root / "train.txt").write_text(label_line(elsewhere.as_posix(), BOX))
    (record,) = load_split(root, "train")
    assert root / record.path == elsewhere


def test_regions_keep_their_number_behind_one_that_cannot_be_read(root):
    bow_tie = [BOX[0], BOX[2], BOX[1], BOX[3]]
    (root / "train.txt").write_text(label_line("images/a.jpg", [[1, 1]], BOX, bow_tie))
    with pytest.raises(DataError) as caught:
        load_split(root, "train")
    assert "train.txt:1: region 1: a polygon needs at least 3 points" in str(caught.value)
    assert "train.txt:1: region 3: its outline crosses" in str(caught.value)
    assert "region 2" not in str(caught.value)


def test_a_message_lists_twenty_faults_and_counts_the_rest(root):
    (root / "train.txt").write_text("".join(f"images/a.jpg {n}\n" for n in range(33)))
    with pytest.raises(DataError) as caught:
        load_split(root, "train")
    assert "33 faults" in str(caught.value) and "train.txt:20:" in str(caught.value)
    assert "train.txt:21:" not in str(caught.value) and "... and 13 more" in str(caught.value)


def test_a_dataset_yml_that_is_none_is_named(root):
    (root / "train.txt").write_text(label_line("images/a.jpg", BOX))
    (root / "dataset.yml").write_text("images: [1, 2]\n")
    with pytest.raises(DataError, match=r"dataset\.yml.*run prepare again"):
        load_split(root, "train")


# Regions


def test_checking_all_quads_at_once_equals_checking_them_one_by_one():
    rng = np.random.default_rng(7)
    quads = rng.uniform(-10, 110, (600, 4, 2)).astype(np.float32)
    quads[:100] = np.round(quads[:100] / 40) * 40
    quads[100:200, 3] = quads[100:200, 2]
    regions = [TextRegion(quad) for quad in quads]
    one_by_one = {i for i, quad in enumerate(quads) if region_fault(quad, (100, 100))}
    assert {i for i, _ in region_faults(regions, (100, 100))} == one_by_one
    assert 50 < len(one_by_one) < 590


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (BOX, ""),
        ([[0, 0], [80, 0], [80, 60], [0, 60]], ""),
        ([[10, 10], [50, 20], [50, 10], [10, 20]], "crosses"),
        ([[10, 10], [10, 10], [10, 10], [10, 10]], "no area"),
        ([[0, 0], [10, 10], [20, 20]], "no area"),
        ([[70, 10], [81, 10], [81, 20], [70, 20]], "outside the image of 80 x 60 px"),
        ([[-1, 10], [20, 10], [20, 20], [-1, 20]], "outside"),
    ],
)
def test_a_region_is_refused_for_the_right_reason(points, reason):
    fault = region_fault(np.array(points, np.float32), (60, 80))
    assert reason in fault if reason else fault == ""


# Images


@pytest.mark.parametrize("name", ["发票 (1).jpg", "🧾.png", "【全角】.jpg", "with space /a.png"])
def test_images_are_read_whatever_their_path_holds(tmp_path, name):
    write_picture(tmp_path / name, (12, 34))
    image = read_image(tmp_path / name)
    assert image.shape == (12, 34, 3) and image.dtype == np.uint8


def test_a_grey_image_is_read_as_three_channels(tmp_path):
    cv2.imwrite(str(tmp_path / "grey.png"), np.full((5, 7), 9, np.uint8))
    assert read_image(tmp_path / "grey.png").tolist() == [[[9, 9, 9]] * 7] * 5


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_cut_off_image_is_refused_where_opencv_would_return_grey(tmp_path, suffix, share):
    path = tmp_path / f"cut{suffix}"
    content = write_picture(path, (200, 200))
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match=rf"cut{suffix}: the picture is cut off"):
        read_image(path)


def test_bytes_after_the_end_of_a_jpeg_do_no_harm(tmp_path):
    content = write_picture(tmp_path / "a.jpg")
    (tmp_path / "a.jpg").write_bytes(content + b"camera notes\xff\x00")
    assert read_image(tmp_path / "a.jpg").shape == (60, 80, 3)


def test_a_whole_thumbnail_inside_a_cut_off_jpeg_does_not_hide_the_cut(tmp_path):
    thumbnail = write_picture(tmp_path / "small.jpg", (8, 8))
    content = write_picture(tmp_path / "a.jpg", (200, 200))
    segment = b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail
    with_thumbnail = content[:2] + segment + content[2:]
    (tmp_path / "a.jpg").write_bytes(with_thumbnail)
    assert read_image(tmp_path / "a.jpg").shape == (200, 200, 3)
    (tmp_path / "a.jpg").write_bytes(with_thumbnail[: int(len(with_thumbnail) * 0.6)])
    with pytest.raises(DataError, match="cut off"):
        read_image(tmp_path / "a.jpg")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"<html><body>404</body></html>", "HTML"),
        (b"%PDF-1.4", "a PDF"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00", "HEIC"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"GARBAGE" * 9, "can't be decoded"),
    ],
)
def test_a_foreign_file_with_an_image_name_is_called_what_it_is(tmp_path, content, reason):
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(DataError, match=rf"a\.jpg.*{reason}"):
        read_image(tmp_path / "a.jpg")
    with pytest.raises(DataError, match=r"a\.jpg"):
        image_size_hw(tmp_path / "a.jpg")


def test_a_missing_image_is_named(tmp_path):
    with pytest.raises(DataError, match=r"missing\.jpg"):
        read_image(tmp_path / "missing.jpg")
    with pytest.raises(DataError, match=r"missing\.jpg: no such file"):
        image_size_hw(tmp_path / "missing.jpg")


@pytest.mark.parametrize(("orientation", "size_hw"), [(1, (60, 80)), (3, (60, 80)), (6, (80, 60)), (8, (80, 60))])
def test_header_and_pixels_agree_about_a_turned_photo(tmp_path, orientation, size_hw):
    exif = Image.Exif()
    exif[274] = orientation
    Image.new("RGB", (80, 60)).save(tmp_path / "a.jpg", exif=exif)
    assert image_size_hw(tmp_path / "a.jpg") == read_image(tmp_path / "a.jpg").shape[:2] == size_hw
