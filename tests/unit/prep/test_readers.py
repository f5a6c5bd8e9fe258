"""One reader a format: what is read, mended, and left out with a reason. Run: pytest tests/unit/prep/test_readers.py"""

from __future__ import annotations

import pytest

from pipelines.errors import DataError
from pipelines.prep.formats import TEXT_FORMATS
from pipelines.prep.raw import RawImage
from pipelines.records import Fault

BOX = [[10, 10], [50, 10], [50, 20], [10, 20]]
CORNERS = "10,10,50,10,50,20,10,20"


def read(format, source, images=None):
    found = list(TEXT_FORMATS[format](source, images))
    return [f for f in found if isinstance(f, RawImage)], [f for f in found if isinstance(f, Fault)]


@pytest.fixture
def receipts(tmp_path, write_picture):
    for seed, key in enumerate(("001", "002", "003")):
        write_picture(tmp_path / "img" / f"{key}.jpg", seed)
        (tmp_path / "box").mkdir(exist_ok=True)
        (tmp_path / "box" / f"{key}.csv").write_text(f"{CORNERS},TOTAL\n")
    return tmp_path


# SROIE


def test_the_text_of_a_receipt_line_may_hold_commas_and_the_file_odd_line_ends(receipts):
    (receipts / "box" / "001.csv").write_bytes(b"\xef\xbb\xbf" + f"{CORNERS},NO. 1, JALAN, 2\r\n\r\n".encode())
    images, faults = read("sroie", receipts)
    (region,) = images[0].regions
    assert region.transcription == "NO. 1, JALAN, 2" and region.points == BOX and region.line == 1
    assert not faults and [image.split for image in images] == ["", "", ""]


def test_a_line_that_is_not_utf8_is_read_and_told(receipts):
    (receipts / "box" / "001.csv").write_bytes(f"{CORNERS},ok\n{CORNERS},5 ".encode() + b"\xa3\n")
    images, (fault,) = read("sroie", receipts)
    assert [region.transcription for region in images[0].regions] == ["ok", "5 £"]
    assert (fault.line, fault.action) == (2, "repaired") and "0xa3" in fault.reason


@pytest.mark.parametrize("line", ["10,10,50,10,50,20,10", "a,b,c,d,e,f,g,h,text", "10 10 50 10 50 20 10 20 text"])
def test_a_line_without_eight_numbers_is_dropped_by_number(receipts, line):
    (receipts / "box" / "002.csv").write_text(f"{CORNERS},ok\n{line}\n")
    images, (fault,) = read("sroie", receipts)
    assert len(images[1].regions) == 1 and (fault.line, fault.action) == (2, "dropped")
    assert fault.file.endswith("002.csv")


def test_an_empty_label_file_is_an_image_without_text_and_told(receipts):
    (receipts / "box" / "002.csv").write_text("\n")
    images, (fault,) = read("sroie", receipts)
    assert images[1].regions == () and fault.action == "warning"


def test_a_star_is_an_ignore_mark_and_told(receipts):
    (receipts / "box" / "002.csv").write_text(f"{CORNERS},*\n")
    images, (fault,) = read("sroie", receipts)
    assert images[1].regions[0].is_ignored and fault.action == "warning" and fault.line == 1


def test_lists_of_ids_are_the_split_and_nothing_is_lost_silently(receipts, write_picture):
    (receipts / "train.txt").write_text("001\n404\n002\n")
    (receipts / "val.txt").write_text("002\n")
    images, faults = read("sroie", receipts)
    assert {image.name: image.split for image in images} == {"img/001.jpg": "train", "img/002.jpg": "val"}
    reasons = "\n".join(map(str, faults))
    assert "train.txt:3: 002 is already listed for val" in reasons
    assert "404" in reasons and "1 ids are in no list and are left out, first 003" in reasons


def test_images_and_labels_without_each_other_are_named(receipts, write_picture):
    (receipts / "box" / "001.csv").unlink()
    (receipts / "img" / "002.jpg").unlink()
    images, faults = read("sroie", receipts)
    assert [image.name for image in images] == ["img/003.jpg"]
    assert "001.jpg: no label file" in str(faults[0]) and "002.csv: image not found" in str(faults[1])


def test_a_folder_of_another_layout_is_refused_with_the_expected_one(tmp_path):
    with pytest.raises(DataError, match=r"img/ID\.jpg and .*box/ID\.csv"):
        read("sroie", tmp_path)


# ICDAR 2015


def test_icdar_files_are_read_with_their_mark_for_unreadable_text(tmp_path, write_picture):
    write_picture(tmp_path / "img_1.png")
    (tmp_path / "gt_img_1.txt").write_bytes(b"\xef\xbb\xbf" + f"{CORNERS},a,b\r\n{CORNERS},###\r\n".encode())
    (image,), faults = read("icdar2015", tmp_path)
    assert [(r.transcription, r.is_ignored) for r in image.regions] == [("a,b", False), ("###", True)]
    assert not faults


def test_the_folders_of_the_original_download_are_the_split_although_names_repeat(tmp_path, write_picture):
    for part, labels in (("ch4_training_images", "ch4_training_gt"), ("ch4_test_images", "Challenge4_Test_GT")):
        write_picture(tmp_path / part / "img_1.jpg", seed=len(part))
        (tmp_path / labels).mkdir()
        (tmp_path / labels / "gt_img_1.txt").write_text(f"{CORNERS},text\n")
    images, faults = read("icdar2015", tmp_path)
    assert {image.name: image.split for image in images} == {
        "ch4_training_images/img_1.jpg": "train",
        "ch4_test_images/img_1.jpg": "val",
    }
    assert not faults


def test_an_image_name_that_fits_twice_is_not_guessed(tmp_path, write_picture):
    for folder in ("a", "b"):
        write_picture(tmp_path / folder / "img_1.jpg")
    (tmp_path / "gt_img_1.txt").write_text(f"{CORNERS},text\n")
    images, (fault,) = read("icdar2015", tmp_path)
    assert not images and "2 images are called img_1" in fault.reason and "--images" in fault.reason
    images, _ = read("icdar2015", tmp_path, images=tmp_path / "b")
    assert images[0].name == "b/img_1.jpg"


def test_icdar_images_without_label_file_are_named(tmp_path, write_picture):
    write_picture(tmp_path / "img_1.jpg")
    write_picture(tmp_path / "img_2.jpg")
    (tmp_path / "gt_img_1.txt").write_text(f"{CORNERS},text\n")
    images, (fault,) = read("icdar2015", tmp_path)
    assert len(images) == 1 and "img_2.jpg: no label file gt_img_2.txt" in str(fault)


# PaddleOCR


def test_every_damaged_line_is_mended_or_named_in_one_pass(tmp_path, write_picture, label_line):
    for name in ("a b.jpg", "b.jpg", "c.jpg"):
        write_picture(tmp_path / name)
    good = label_line("b.jpg", BOX)
    spaced = label_line("a b.jpg", BOX).replace("\t", "    ")
    cut = label_line("c.jpg", BOX, text="one@two").replace("@", "\n")
    text = good + "\n" + spaced + cut + "d.jpg\t[{]\n" + "e.jpg\t[]\n"
    (tmp_path / "Label.txt").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    images, faults = read("paddleocr", tmp_path)
    assert [image.name for image in images] == ["b.jpg", "a b.jpg", "c.jpg"]
    assert images[2].regions[0].transcription == "one\ntwo"
    assert [fault.line for fault in faults if fault.action == "repaired"] == [1, 1, 2, 3, 4]
    assert [fault.line for fault in faults if fault.action == "dropped"] == [6, 7]


@pytest.mark.parametrize(
    "written", ["a.jpg", "./a.jpg", "发票 集/a.jpg", "发票 集\\a.jpg", r"D:\scans\2024\a.jpg"], ids=str
)
def test_an_image_is_found_beside_its_label_file_or_one_folder_up(tmp_path, write_picture, label_line, written):
    folder = tmp_path / "发票 集"
    write_picture(folder / "a.jpg")
    (folder / "Label.txt").write_text(label_line("X", BOX).replace("X", written))
    (image,), faults = read("paddleocr", folder)
    assert image.image.samefile(folder / "a.jpg") and not faults


def test_an_images_folder_comes_first(tmp_path, write_picture, label_line):
    write_picture(tmp_path / "elsewhere" / "a.jpg")
    (tmp_path / "Label.txt").write_text(label_line("wrong/a.jpg", BOX))
    (image,), _ = read("paddleocr", tmp_path, images=tmp_path / "elsewhere")
    assert image.image == tmp_path / "elsewhere" / "a.jpg"


def test_train_and_val_files_are_the_split_and_other_texts_are_not_labels(tmp_path, write_picture, label_line):
    for seed, name in enumerate(("a.jpg", "b.jpg")):
        write_picture(tmp_path / name, seed)
    (tmp_path / "train_label.txt").write_text(label_line("a.jpg", BOX))
    (tmp_path / "test_label.txt").write_text(label_line("b.jpg", BOX))
    (tmp_path / "fileState.txt").write_text("/home/a.jpg\t1\n")
    (tmp_path / "rec_gt.txt").write_text("crop_0.jpg\ttext\n")
    images, faults = read("paddleocr", tmp_path)
    assert {image.name: image.split for image in images} == {"a.jpg": "train", "b.jpg": "val"} and not faults


def test_a_wrong_root_is_told_once_with_the_first_path_tried(tmp_path, label_line):
    (tmp_path / "Label.txt").write_text("".join(label_line(f"set/{n}.jpg", BOX) for n in range(50)))
    with pytest.raises(DataError, match=r"0 of 50 images found under .*first tried path: .*set/0\.jpg.*--images"):
        read("paddleocr", tmp_path)


# ICDAR 2013


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('10 10 50 20 "Tiredness"', "Tiredness"),
        ('10, 10, 50, 20, "5, 6, 7, 8"', "5, 6, 7, 8"),
        ('10,10,50,20,"say ""hi"""', 'say ""hi""'),
        ("10 10 50 20 Total", "Total"),
        ('10, 10, 50, 10, 50, 20, 10, 20, "of CVAT"', "of CVAT"),
        ("10 10 50 20", ""),
    ],
)
def test_icdar_2013_boxes_have_blanks_or_commas_and_a_quoted_text(tmp_path, write_picture, line, text):
    write_picture(tmp_path / "img_1.jpg")
    (tmp_path / "gt_img_1.txt").write_bytes(b"\xef\xbb\xbf" + f"{line}\r\n".encode())
    (image,), faults = read("icdar2013", tmp_path)
    assert [(region.points, region.transcription) for region in image.regions] == [(BOX, text)] and not faults


@pytest.mark.parametrize("line", ['10 10 50 "three"', '10 ten 50 20 "x"', "10 10 50 20 30 40", "10;10;50;20;x"])
def test_an_icdar_2013_line_that_is_none_is_a_fault_with_what_was_expected(tmp_path, write_picture, line):
    write_picture(tmp_path / "img_1.jpg")
    (tmp_path / "gt_img_1.txt").write_text(f'10 10 50 20 "x"\n{line}\n')
    (image,), (fault,) = read("icdar2013", tmp_path)
    assert len(image.regions) == 1 and (fault.line, fault.action) == (2, "dropped")
    assert "expected x1 y1 x2 y2" in fault.reason and line in fault.reason


# Corner files that can't be read


@pytest.mark.parametrize("content", [b"no label\nat all\n", "10,10,50,10,50,20,10,20,合計領収書\n".encode("shift_jis")])
def test_a_label_file_of_which_nothing_can_be_read_is_no_image_without_text(receipts, content):
    (receipts / "box" / "002.csv").write_bytes(content)
    images, faults = read("sroie", receipts)
    assert [bool(image.fault) for image in images] == [False, True, False]
    assert all(fault.file.endswith("002.csv") and fault.line for fault in faults) and faults


@pytest.mark.parametrize("encoding", ["gbk", "utf-16"])
def test_receipts_in_other_encodings_are_read_and_told(receipts, encoding):
    (receipts / "box" / "001.csv").write_bytes(f"{CORNERS},增值税发票 上海有限公司\r\n".encode(encoding))
    images, (fault,) = read("sroie", receipts)
    assert images[0].regions[0].transcription == "增值税发票 上海有限公司" and images[0].regions[0].points == BOX
    assert (fault.line, fault.action) == (1, "repaired")
