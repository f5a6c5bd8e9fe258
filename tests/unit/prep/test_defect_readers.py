"""VOC, LabelMe and DeepPCB sources, odd files included. Run: pytest tests/unit/prep/test_defect_readers.py"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pipelines.errors import DataError
from pipelines.prep.raw import ClassList


def xml(*objects: str, filename: str = "", size: str = "<width>80</width><height>60</height>") -> str:
    return f"<annotation><filename>{filename}</filename><size>{size}</size>{''.join(objects)}</annotation>"


def voc_object(name: str = "dent", corners: tuple[object, ...] = (10, 20, 30, 40), more: str = "") -> str:
    box = "".join(f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True))
    return f"<object><name>{name}</name>{more}<bndbox>{box}</bndbox></object>"


@pytest.fixture
def voc(tmp_path, write_picture):
    """`voc(stem, text)`: Annotations/stem.xml and JPEGImages/stem.jpg."""

    def write(stem: str, text: str, image: str | None = None) -> Path:
        (tmp_path / "Annotations").mkdir(exist_ok=True)
        (tmp_path / "Annotations" / f"{stem}.xml").write_text(text, encoding="utf-8")
        write_picture(tmp_path / "JPEGImages" / (image or f"{stem}.jpg"), len(text))
        return tmp_path

    return write


def test_voc_boxes_are_corners_difficult_is_ignored_and_no_object_is_an_ok_image(read, voc):
    voc("b", xml())
    source = voc("a", xml(voc_object(" dent "), voc_object("pit", (1, 2, 3.5, 4), "<difficult>1</difficult>")))
    raws, faults, _ = read("voc", source)
    first, second = raws["a.jpg"].regions
    assert (first.corners, first.class_name, first.is_ignored) == ((10, 20, 30, 40), " dent ", False)
    assert (second.corners, second.is_ignored, second.item) == ((1, 2, 3.5, 4), True, "object 2")
    assert raws["a.jpg"].said_hw == (60, 80) and raws["b.jpg"].regions == () and not faults


def test_a_voc_box_that_can_not_be_read_keeps_its_place_so_that_its_image_is_not_ok(read, voc):
    raws, _, _ = read("voc", voc("a", xml("<object><name>dent</name></object>", voc_object(corners=(1, 2, "x", 4)))))
    assert ["xmin=''" in box.fault or "xmax='x'" in box.fault for box in raws["a.jpg"].regions] == [True, True]


def test_an_xml_that_can_not_be_read_makes_its_image_unusable_and_not_ok(read, voc):
    voc("b", xml(voc_object()))
    raws, _, others = read("voc", voc("a", "<annotation><object>"))
    assert "no valid XML" in raws["a.jpg"].fault and not others


@pytest.mark.parametrize("filename", ["a", "a.jpg", "a.JPG", "C:\\shots\\a.jpg", "../images/a.jpg", ""])
def test_a_filename_that_means_the_same_picture_is_no_finding(read, voc, filename):
    raws, faults, _ = read("voc", voc("a", xml(voc_object(), filename=filename)))
    assert list(raws) == ["a.jpg"] and not faults


def test_a_filename_of_another_picture_that_has_its_own_xml_is_told_and_the_own_name_counts(read, voc):
    voc("b", xml())
    raws, (fault,), _ = read("voc", voc("a", xml(voc_object(), filename="b.jpg")))
    assert len(raws["a.jpg"].regions) == 1 and raws["b.jpg"].regions == ()
    assert fault.action == "repaired" and "names another file, b.jpg: a.jpg of its own name is taken" in fault.reason


def test_a_filename_of_another_picture_without_a_label_file_is_nobodys_to_decide(read, voc, write_picture):
    source = voc("a", xml(voc_object(), filename="b.jpg"))
    voc("c", xml())
    write_picture(source / "JPEGImages" / "b.jpg", 5)
    raws, (fault,), others = read("voc", source)
    assert "a.jpg" not in raws and "which one was labelled?" in fault.reason
    assert {(other.image.name, other.may_be_ok) for other in others} == {("a.jpg", False), ("b.jpg", False)}


def test_an_xml_without_an_image_of_its_name_takes_the_one_it_names(read, voc):
    raws, (fault,), _ = read("voc", voc("0001", xml(voc_object(), filename="shot.png"), image="shot.png"))
    assert list(raws) == ["shot.png"] and "there is no image 0001" in fault.reason


def test_a_stem_with_dots_and_a_doubled_suffix_find_their_image(read, voc):
    voc("plate_1.25", xml(voc_object()))
    raws, faults, _ = read("voc", voc("b.jpg", xml(), image="b.jpg"))
    assert set(raws) == {"plate_1.25.jpg", "b.jpg"} and not faults


def turned_object(centre_x: object, centre_y: object, width: object, height: object, angle: object) -> str:
    """As labelImg2 and roLabelImg write it."""
    values = zip(("cx", "cy", "w", "h", "angle"), (centre_x, centre_y, width, height, angle), strict=True)
    box = "".join(f"<{name}>{value}</{name}>" for name, value in values)
    return f"<object><type>robndbox</type><name>dent</name><difficult>0</difficult><robndbox>{box}</robndbox></object>"


@pytest.mark.parametrize(
    ("angle", "corners"),
    [
        ("0.0", (30, 25, 50, 35)),
        ("1.5707963", (35, 20, 45, 40)),
        # Half the width is 10 cos 30 + 5 sin 30, half the height 10 sin 30 + 5 cos 30, and so at 150 degrees.
        ("0.5235988", (28.8397, 20.6699, 51.1603, 39.3301)),
        ("2.6179939", (28.8397, 20.6699, 51.1603, 39.3301)),
    ],
)
def test_a_turned_voc_box_is_the_upright_box_round_it_and_this_is_told(read, voc, angle, corners):
    raws, _, _ = read("voc", voc("a", xml(turned_object(40, 30, 20, 10, angle), voc_object())))
    box, upright = raws["a.jpg"].regions
    assert box.corners == pytest.approx(corners, abs=1e-3) and not box.fault
    assert bool(box.repairs) == (float(angle) != 0) and not upright.repairs


@pytest.mark.parametrize("angle", ["", "x", "nan", "inf"])
def test_a_turned_voc_box_that_can_not_be_read_keeps_its_place(read, voc, angle):
    raws, _, _ = read("voc", voc("a", xml(turned_object(40, 30, 20, 10, angle))))
    assert raws["a.jpg"].regions[0].fault


def test_an_xml_that_declares_entities_costs_its_image(read, voc):
    voc("b", xml())
    raws, _, _ = read("voc", voc("a", f'<!DOCTYPE a [<!ENTITY x "1">]>{xml(voc_object())}'))
    assert "declares the entity 'x'" in raws["a.jpg"].fault


def test_a_missing_image_and_an_image_without_xml_are_told(read, voc, write_picture):
    source = voc("a", xml(voc_object()))
    voc("b", xml())
    (source / "JPEGImages" / "b.jpg").unlink()
    write_picture(source / "JPEGImages" / "c.jpg", 7)
    raws, (fault,), (unlabelled,) = read("voc", source)
    assert list(raws) == ["a.jpg"] and fault.reason == "image not found: b.jpg" and fault.action == "dropped"
    assert unlabelled.image.name == "c.jpg" and unlabelled.reason == "no label file c.xml"


@pytest.mark.parametrize(
    ("folder", "train", "val"),
    [
        (".", "./JPEGImages/a.jpg ./Annotations/a.xml\n", "JPEGImages\\b.jpg Annotations\\b.xml\n"),
        ("ImageSets/Main", "a\n", "b\n"),
        ("ImageSets/Main", "a.jpg\r\n\r\n", "b.jpg\r\n"),
        (".", "\ufeffAnnotations/a.xml\n", "Annotations/b.xml"),
    ],
    ids=["pairs", "stems", "windows", "xml alone"],
)
def test_lists_of_pairs_stems_or_files_give_the_split(read, voc, folder, train, val):
    voc("a", xml(voc_object()))
    voc("c", xml(voc_object()))
    source = voc("b", xml(voc_object()))
    (source / folder).mkdir(parents=True, exist_ok=True)
    (source / folder / "train.txt").write_text(train, encoding="utf-8")
    (source / folder / "val.txt").write_text(val + "\ngone\na", encoding="utf-8")
    raws, faults, _ = read("voc", source)
    assert (raws["a.jpg"].split, raws["b.jpg"].split) == ("val", "val")
    assert raws["c.jpg"].fault == "is in neither list (train, val): left out"
    told = "\n".join(map(str, faults))
    assert "train.txt:1: a is already listed for val" in told and "no label file gone.xml" in told


def test_a_label_list_gives_the_order_of_classes(read, voc):
    source = voc("a", xml(voc_object()))
    (source / "label_list.txt").write_text("short\n\ndent\n")
    assert read("voc", source)[2] == [ClassList(("short", "dent"))]


def test_a_folder_without_label_files_or_without_images_is_refused(read, tmp_path, voc):
    with pytest.raises(DataError, match=r"no label files; expected NAME\.xml"):
        read("voc", tmp_path)
    source = voc("a", xml(voc_object()))
    shutil.rmtree(source / "JPEGImages")
    with pytest.raises(DataError, match="0 of 1 label files have an image"):
        read("voc", source)


def shape(points: object, kind: str | None = "polygon", label: object = "dent") -> dict[str, object]:
    return {"label": label, "points": points, **({} if kind is None else {"shape_type": kind})}


def labelme(tmp_path: Path, write_picture, *shapes: object, **values: object) -> Path:
    write_picture(tmp_path / "a.jpg", 1)
    content = {"shapes": list(shapes), "imagePath": "a.jpg", "imageHeight": 60, "imageWidth": 80, **values}
    (tmp_path / "a.json").write_text(json.dumps(content))
    return tmp_path


@pytest.mark.parametrize(
    ("points", "kind", "corners"),
    [
        ([[10, 20], [30, 25], [20, 40]], "polygon", (10, 20, 30, 40)),
        ([[10, 20], [30, 40]], "rectangle", (10, 20, 30, 40)),
        ([[30, 40], [10, 20]], "rectangle", (10, 20, 30, 40)),
        ([[30, 20], [10, 40]], "rectangle", (10, 20, 30, 40)),
        ([[10, 40], [30, 20]], "rectangle", (10, 20, 30, 40)),
        ([[20, 30], [23, 34]], "circle", (15, 25, 25, 35)),
        ([[10, 20], [30, 40], [20, 25]], "linestrip", (10, 20, 30, 40)),
        ([[10, 20], [30, 25], [20, 40]], None, (10, 20, 30, 40)),
    ],
)
def test_labelme_shapes_become_boxes_in_any_direction_of_the_drag(read, tmp_path, write_picture, points, kind, corners):
    raws, faults, _ = read("labelme", labelme(tmp_path, write_picture, shape(points, kind)))
    (box,) = raws["a.jpg"].regions
    assert box.corners == corners and box.class_name == "dent" and not faults


@pytest.mark.parametrize("points", [None, [], [[1]], "x", [[1, "y"]], 3])
def test_a_labelme_shape_that_can_not_be_read_keeps_its_place(read, tmp_path, write_picture, points):
    raws, _, _ = read("labelme", labelme(tmp_path, write_picture, shape([[1, 2], [9, 9]]), shape(points)))
    assert [bool(box.fault) for box in raws["a.jpg"].regions] == [False, True]


def test_labelme_without_shapes_is_ok_broken_json_is_not_and_other_json_is_passed_over(read, tmp_path, write_picture):
    source = labelme(tmp_path, write_picture)
    write_picture(source / "b.jpg", 2)
    (source / "b.json").write_text("{")
    (source / "settings.json").write_text('{"theme": 1}')
    raws, faults, _ = read("labelme", source)
    assert raws["a.jpg"].regions == () and not raws["a.jpg"].fault and not faults
    assert "no valid JSON" in raws["b.jpg"].fault


def test_a_windows_path_in_labelme_finds_its_image_in_another_folder(read, tmp_path, write_picture):
    labelme(tmp_path / "json", write_picture, shape([[1, 2], [9, 9]]), imagePath="..\\photos\\x.jpg")
    (tmp_path / "photos").mkdir()
    (tmp_path / "json" / "a.jpg").rename(tmp_path / "photos" / "x.jpg")
    raws, (fault,), _ = read("labelme", tmp_path)
    assert list(raws) == ["x.jpg"] and "there is no image a" in fault.reason


@pytest.fixture
def deeppcb(tmp_path, write_picture):
    for board, number in (("group1", "001"), ("group1", "002"), ("group2", "003")):
        for kind in ("test", "temp"):
            write_picture(tmp_path / board / "b" / f"{number}_{kind}.jpg", int(number) * 2 + (kind == "temp"))
        (tmp_path / board / "b_not").mkdir(parents=True, exist_ok=True)
        (tmp_path / board / "b_not" / f"{number}.txt").write_text("10 20 30 40 3\n1 2 9 9 6\n")
    (tmp_path / "trainval.txt").write_text("".join(f"group1/b/{n}.jpg group1/b_not/{n}.txt\n" for n in ("001", "002")))
    (tmp_path / "test.txt").write_text("group2/b/003.jpg group2/b_not/003.txt\n")
    return tmp_path


def test_deeppcb_gives_both_images_of_a_board_the_template_as_ok(read, deeppcb):
    raws, faults, (classes,) = read("deeppcb", deeppcb)
    assert {name: len(raw.regions) for name, raw in raws.items()} == {
        f"00{n}_{kind}.jpg": 2 * (kind == "test") for n in (1, 2, 3) for kind in ("test", "temp")
    }
    assert {(raw.split, raw.group) for raw in raws.values()} == {("train", "group1"), ("val", "group2")}
    assert [box.class_name for box in raws["001_test.jpg"].regions] == ["mousebite", "pin-hole"]
    assert classes.names[0] == "open" and len(classes.names) == 6 and not faults


def test_what_is_missing_or_wrong_in_deeppcb_is_told_with_its_line(read, deeppcb):
    (deeppcb / "group1" / "b" / "001_temp.jpg").unlink()
    (deeppcb / "group1" / "b_not" / "002.txt").write_text("10 20 30 40 7\n10 20 30\n\n5,5,9,9,1\n")
    (deeppcb / "test.txt").write_text("group2/b/003.jpg group2/b_not/003.txt\ngroup2/b/003.jpg\n")
    raws, faults, _ = read("deeppcb", deeppcb)
    boxes = raws["002_test.jpg"].regions
    assert ["class 7 is none of 1 to 6" in boxes[0].fault, "x1 y1 x2 y2" in boxes[1].fault] == [True, True]
    assert (boxes[2].corners, boxes[2].class_name, boxes[2].line, boxes[2].fault) == ((5, 5, 9, 9), "open", 4, "")
    told = "\n".join(map(str, faults))
    assert "trainval.txt:1: image not found" in told and "test.txt:2: 003 is already listed for val" in told


def test_a_deeppcb_line_that_names_no_file_is_told_with_its_line(read, deeppcb):
    (deeppcb / "test.txt").write_text("/\ngroup2/b/003.jpg group2/b_not/003.txt\n")
    _, faults, _ = read("deeppcb", deeppcb)
    assert "test.txt:1: expected an image and its label file, but got '/'" in "\n".join(map(str, faults))


def test_a_deeppcb_label_file_that_may_mean_anything_costs_its_image(read, deeppcb):
    (deeppcb / "group1" / "b_not" / "002.txt").write_bytes(b"10 20 30 40 3\n" + "合計領収書\n".encode("shift_jis"))
    raws, _, _ = read("deeppcb", deeppcb)
    assert "its label file can't be read: line 2" in raws["002_test.jpg"].fault and not raws["002_temp.jpg"].fault


def test_deeppcb_without_lists_is_refused(read, tmp_path):
    with pytest.raises(DataError, match=r"expected train\.txt"):
        read("deeppcb", tmp_path)
