"""The split and the names that lie beside YOLO's labels. Run: pytest tests/unit/prep/test_yolo_data.py"""

from __future__ import annotations

import pytest

from pipelines.prep.raw import ClassList, RawImage
from pipelines.prep.yolo import read_yolo
from pipelines.records import Fault

NAMES = "names: [pit, scratch]\n"


@pytest.fixture
def source(tmp_path, write_picture):
    """Four images `images/SET/N.png` of two sets, and a box of class 1 in each."""
    for seed, name in enumerate(("one/0", "one/1", "two/0", "two/2")):
        write_picture(tmp_path / "images" / f"{name}.png", seed)
        label = tmp_path / "labels" / f"{name}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text("1 0.5 0.5 0.2 0.2\n")
    return tmp_path


def read(source):
    items = list(read_yolo(source, None))
    images = {item.name.removeprefix("images/"): item for item in items if isinstance(item, RawImage)}
    return images, [item for item in items if isinstance(item, Fault)]


def splits(images) -> dict[str, str]:
    return {name.removesuffix(".png"): image.split for name, image in images.items()}


BY_SET = {"one/0": "train", "one/1": "train", "two/0": "val", "two/2": "val"}


@pytest.mark.parametrize(
    "written",
    [
        "train: images/one\nval: images/two\n",
        "path: .\ntrain: [images/one]\nvalid: images/two\n",
        "path: ../elsewhere\ntrain: ../images/one\nval: ./images/two\n",  # as Roboflow writes it
        "train: images\ntest: images/two\n",  # the inner folder counts
        "train: one.txt\nval: two.txt\n",
    ],
)
def test_folders_and_lists_of_data_yaml_are_the_split(source, written):
    (source / "data.yaml").write_text(NAMES + written)
    (source / "one.txt").write_text("./images/one/0.png\n./images/one/1.png\n")
    (source / "two.txt").write_text("D:\\data\\images\\two\\0.png\nD:\\data\\images\\two\\2.png\n")
    if "one.txt" not in written:
        (source / "one.txt").unlink()
        (source / "two.txt").unlink()
    images, faults = read(source)
    assert splits(images) == BY_SET and not any(image.fault for image in images.values()) and not faults


def test_lists_beside_are_the_split_where_data_yaml_has_none_and_names_repeat_in_folders(source):
    (source / "data.yaml").write_text(NAMES)
    (source / "train.txt").write_text("data/images/one/0.png\ndata/images/one/1.png\n")
    (source / "val.txt").write_text("data/images/two/0.png\ndata/images/one/1.png\n")
    images, (fault,) = read(source)
    assert splits(images) == {"one/0": "train", "one/1": "val", "two/0": "val", "two/2": ""}
    assert "neither train nor val" in images["two/2.png"].fault
    assert (fault.line, "already listed for val" in fault.reason) == (2, True)


def test_an_entry_of_data_yaml_that_is_not_there_is_told_and_gives_no_split(source):
    (source / "data.yaml").write_text(NAMES + "train: images/one\nval: images/three\n")
    images, (fault,) = read(source)
    assert set(splits(images).values()) == {""} and not any(image.fault for image in images.values())
    assert fault.action == "warning" and "val: images/three: no such folder" in fault.reason


def test_one_folder_for_both_sides_is_no_split_and_told(source):
    (source / "data.yaml").write_text(NAMES + "train: images\nval: images\n")
    images, (fault,) = read(source)
    assert set(splits(images).values()) == {""} and "already listed for val" in fault.reason


@pytest.mark.parametrize(
    ("file", "content", "name"),
    [
        ("data.yaml", "names: {0: pit, 1: scratch}\n", "scratch"),
        ("data.yaml", "nc: 2\nnames:\n- pit\n- 发票\n", "发票"),
        ("classes.txt", "pit\r\nscratch\r\n\r\n", "scratch"),
        ("classes.txt", "\nscratch\n", "scratch"),  # a blank line names nothing, but counts
        ("obj.names", "pit\nscratch", "scratch"),
    ],
)
def test_names_are_found_wherever_tools_leave_them(source, file, content, name):
    (source / file).write_text(content, "utf-8")
    images, faults = read(source)
    assert images["one/0.png"].regions[0].class_name == name and not faults


@pytest.mark.parametrize("content", ["names: [[a, b], [c]]\n", "names: 3\n", "names: {pit: 0}\n", "a: [\n", "\x00"])
def test_names_that_are_no_plain_words_are_passed_over_and_told(source, content):
    (source / "data.yaml").write_text(content)
    images, faults = read(source)
    assert images["one/0.png"].regions[0].class_name == "1"
    assert any("called by their numbers" in fault.reason for fault in faults)


def test_names_that_refer_to_each_other_are_never_written_out(source):
    ninefold = (f"{b}: &{b} [{', '.join(9 * ['*' + a])}]\n" for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    bomb = "a: &a [x, x]\n" + "".join(ninefold)
    (source / "data.yaml").write_text(bomb + "names: *j\n")
    assert read(source)[0]["one/0.png"].regions[0].class_name == "1"


def test_a_count_of_classes_that_differs_from_the_names_is_told(source):
    (source / "data.yaml").write_text("nc: 3\n" + NAMES)
    assert "nc says 3 classes, but names has 2" in read(source)[1][0].reason


def test_key_points_after_a_box_are_no_polygon(source):
    (source / "labels" / "one" / "0.txt").write_text("1 0.5 0.5 0.2 0.2 0.1 0.1 0.9 0.9\n")
    (source / "data.yaml").write_text(NAMES + "kpt_shape: [2, 2]\n")
    (box,) = read(source)[0]["one/0.png"].regions
    assert box.corners == pytest.approx((32, 24, 48, 36))
    (source / "data.yaml").write_text(NAMES)  # control: without the key it is one
    (polygon,) = read(source)[0]["one/0.png"].regions
    assert polygon.corners == pytest.approx((8, 6, 72, 54))


def test_class_names_come_in_their_order(source):
    (source / "data.yaml").write_text("names: {1: scratch, 0: pit, 2: stain}\n")
    lists = [item.names for item in read_yolo(source, None) if isinstance(item, ClassList)]
    assert lists == [("pit", "scratch", "stain")]
