"""Image folders as PPOCRLabel leaves them. Run: pytest tests/unit/prep/test_ppocrlabel.py"""

from __future__ import annotations

import json

import pytest

from pipelines.prep.paddleocr import read_paddleocr
from pipelines.prep.raw import RawImage
from pipelines.records import Fault

BOX = [[10, 10], [50, 10], [50, 20], [10, 20]]


def entry(text: str = "合计", difficult: bool = False) -> dict[str, object]:
    return {"transcription": text, "points": BOX, "difficult": difficult, "key_cls": "total"}


@pytest.fixture
def folder(tmp_path, write_picture):
    """`发票/` with a.jpg and b.jpg labelled and confirmed, drafts and cut-out words beside them."""
    folder = tmp_path / "发票"
    for seed, name in enumerate(("a.jpg", "b.jpg")):
        write_picture(folder / name, seed)
    write_picture(folder / "crop_img" / "a_crop_0.jpg", 9)
    (folder / "rec_gt.txt").write_text("crop_img/a_crop_0.jpg\t合计\n", "utf-8")
    (folder / "Cache.cach").write_text(f"发票/a.jpg\t{json.dumps([entry('draft')])}\n", "utf-8")
    write_labels(folder, "a.jpg", "b.jpg")
    confirm(folder, "a.jpg", "b.jpg")
    return folder


def write_labels(folder, *names) -> None:
    lines = (f"发票/{name}\t{json.dumps([entry(), entry('x', True)], ensure_ascii=False)}\n" for name in names)
    (folder / "Label.txt").write_text("".join(lines), "utf-8")


def confirm(folder, *names) -> None:
    """As Windows writes it: the folder as it was on the machine of whoever labelled."""
    (folder / "fileState.txt").write_text("".join(f"D:\\扫描\\发票\\{name}\t1\n" for name in names), "utf-8")


def read(source):
    found = list(read_paddleocr(source, None))
    return [item for item in found if isinstance(item, RawImage)], [item for item in found if isinstance(item, Fault)]


def test_a_folder_is_read_as_it_is_without_drafts_and_cut_out_words(folder):
    images, faults = read(folder)
    assert [image.image.name for image in images] == ["a.jpg", "b.jpg"] and not faults
    assert [(region.transcription, region.is_ignored) for region in images[0].regions] == [("合计", False), ("x", True)]
    assert not any(image.fault for image in images)


def test_an_image_that_nobody_has_confirmed_is_left_out_and_told(folder):
    confirm(folder, "b.jpg")
    images, faults = read(folder)
    assert {image.image.name: bool(image.fault) for image in images} == {"a.jpg": True, "b.jpg": False}
    assert "not confirmed in fileState.txt" in images[0].fault and "remove" in images[0].fault and not faults


def test_a_confirmed_image_without_a_label_line_is_no_image_without_text(folder, write_picture):
    write_picture(folder / "c.jpg", 2)
    confirm(folder, "a.jpg", "b.jpg", "c.jpg")
    images, (fault,) = read(folder)
    assert len(images) == 2 and fault.file.endswith("c.jpg") and fault.action == "dropped"
    assert "is confirmed in fileState.txt, but has no label line" in fault.reason


@pytest.mark.parametrize("names", [(), ("of_another_folder.jpg",)], ids=["empty", "foreign"])
def test_a_state_file_that_confirms_none_of_the_images_is_told_and_all_labels_count(folder, names):
    confirm(folder, *names)
    images, (fault,) = read(folder)
    assert not any(image.fault for image in images) and len(images) == 2
    assert fault.action == "warning" and "confirms none of the images" in fault.reason


def test_control_a_state_file_says_nothing_about_other_label_files(folder):
    confirm(folder, "b.jpg")
    (folder / "Label.txt").rename(folder / "labels.txt")
    images, faults = read(folder)
    assert not any(image.fault for image in images) and not faults


@pytest.mark.parametrize("written", ["/home/lena/发票/{}", "D:\\扫描\\发票\\{}", "发票\\{}", "./{}"])
def test_paths_of_another_machine_are_found_by_their_last_part(folder, written):
    text = (folder / "Label.txt").read_text("utf-8").replace("发票/", written.format(""))
    (folder / "Label.txt").write_text(text, "utf-8")
    images, faults = read(folder)
    assert [image.image for image in images] == [folder / "a.jpg", folder / "b.jpg"] and not faults


def test_a_label_file_in_gbk_is_read_and_told_once(folder):
    text = (folder / "Label.txt").read_text("utf-8").replace("合计", "增值税发票上海")
    (folder / "Label.txt").write_bytes(text.encode("gbk"))
    images, (fault,) = read(folder)
    assert images[0].regions[0].transcription == "增值税发票上海"
    assert (fault.line, fault.action) == (1, "repaired") and "GBK" in fault.reason
