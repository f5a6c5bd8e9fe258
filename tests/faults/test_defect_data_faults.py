"""The faults people's defect labels really have: refused by name when training would start from them, listed in one
pass by `check`, and repaired, dropped or told by `prepare`; an image whose labels are lost never passes as OK.

Run: pytest tests/faults/test_defect_data_faults.py
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from pipelines.dataset import defect_classes, load_defect_split
from pipelines.errors import DataError
from pipelines.prep import check_dataset, prepare_defect

Coco = dict[str, list[dict[str, Any]]]
SIZE_HW = (60, 80)


def write_picture(path: Path, seed: int, size_hw: tuple[int, int] = SIZE_HW) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (*size_hw, 3), dtype=np.uint8)
    path.write_bytes(cv2.imencode(path.suffix, pixels)[1].tobytes())


def coco(numbers: range) -> Coco:
    """One image a number; every second one is OK, the others have a box of 20 x 10 px, of class dent or scratch."""
    images = [{"id": n, "file_name": f"images/{n}.jpg", "height": 60, "width": 80} for n in numbers]
    boxes = [
        {"id": n, "image_id": n, "category_id": 3 + n % 4, "bbox": [10, 20, 20, 10], "area": 200, "iscrowd": 0}
        for n in numbers
        if n % 2 == 0
    ]
    categories = [{"id": 5, "name": "dent"}, {"id": 3, "name": "scratch"}]
    return {"images": images, "annotations": boxes, "categories": categories}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A sound COCO dataset, category ids with a gap: eight training and four validation images, half of them OK."""
    root = tmp_path / "缺陷 2024"
    for seed in range(12):
        write_picture(root / "images" / f"{seed}.jpg", seed)
    (root / "train.json").write_text(json.dumps(coco(range(8))))
    (root / "val.json").write_text(json.dumps(coco(range(8, 12))))
    return root


Fault = Callable[[Path], None]


def changed(change: Callable[[Coco], Any]) -> Fault:
    """Change the content of train.json."""

    def apply(root: Path) -> None:
        content = json.loads((root / "train.json").read_text())
        change(content)
        (root / "train.json").write_text(json.dumps(content))

    return apply


def box(**values: Any) -> Fault:
    """Change train.json's second annotation: of image 2, class dent; `None` takes a key away."""

    def change(content: Coco) -> None:
        entry = content["annotations"][1]
        entry.update(values)
        for name in [name for name, value in values.items() if value is None]:
            del entry[name]

    return changed(change)


def picture(number: int, **values: Any) -> Fault:
    return changed(lambda content: content["images"][number].update(values))


def added(name: str, entry: dict[str, Any]) -> Fault:
    return changed(lambda content: content[name].append(entry))


OUTLINE = [[10, 20, 30, 20, 30, 30, 10, 30]]
# 80 x 60 px, columns first: 10 empty columns and 20 rows, then 20 columns of 10 rows each.
RUNS = {"size": [60, 80], "counts": [10 * 60 + 20, 10, *[50, 10] * 19, 50 * 60 - 30]}
SECOND = "annotations[1]"
# name: (fault, where the message points, what it says when training starts)
FAULTS: dict[str, tuple[Fault, str, str]] = {
    "point box": (box(bbox=[10, 20, 0, 0]), SECOND, "no area"),
    "box of 0.4 px": (box(bbox=[10, 20, 0.4, 9]), SECOND, "no area"),
    "reversed corners": (box(bbox=[30, 30, -20, -10]), SECOND, "reversed"),
    "left of the image": (box(bbox=[-3, 20, 20, 10]), SECOND, "outside the image of 80 x 60"),
    "below the image": (box(bbox=[10, 55, 20, 10]), SECOND, "outside the image of 80 x 60"),
    "wholly outside": (box(bbox=[90, 20, 20, 10]), SECOND, "outside the image of 80 x 60"),
    "box of the turned image": (box(bbox=[10, 65, 20, 14]), SECOND, "outside the image of 80 x 60"),
    "not a number": (box(bbox=[float("nan"), 20, 20, 10]), SECOND, "four numbers"),
    "infinite": (box(bbox=[10, 20, float("inf"), 10]), SECOND, "four numbers"),
    "coordinates as text": (box(bbox=["10", "20", "20", "10"]), SECOND, "four numbers"),
    "three numbers": (box(bbox=[10, 20, 20]), SECOND, "four numbers"),
    "no bbox": (box(bbox=None), SECOND, "four numbers"),
    "outline alone": (box(bbox=None, segmentation=OUTLINE), SECOND, "four numbers"),
    "mask alone": (box(bbox=None, segmentation=RUNS), SECOND, "four numbers"),
    "unknown category": (box(category_id=7), SECOND, "category_id 7"),
    "category id as text": (box(category_id="5"), SECOND, "category_id '5'"),
    "unknown image": (box(image_id=99), SECOND, "image_id 99"),
    "image id as text": (picture(2, id="2"), "images[2]", "whole number"),
    "image id twice": (picture(2, id=1), "images[2]", "belongs to another image"),
    "one file twice": (picture(2, file_name="images/1.jpg"), "images[2]", "twice"),
    "missing image": (picture(2, file_name="images/gone.jpg"), "images[2]", "image not found"),
    "no file name": (picture(2, file_name=None), "images[2]", "file_name"),
    "size swapped": (picture(2, height=80, width=60), "images[2]", "labels of another picture"),
    "another size": (picture(2, height=600, width=800), "images[2]", "labels of another picture"),
    "category id twice": (added("categories", {"id": 5, "name": "scratch"}), "categories[2]", "belongs to 'dent'"),
    "category without a name": (added("categories", {"id": 6}), "categories[2]", "None"),
}
# the same names: (what prepare does, then boxes and images in the prepared training split, of 4 and 8)
PREPARED: dict[str, tuple[str, int, int]] = {
    "point box": ("dropped", 3, 7),
    "box of 0.4 px": ("dropped", 3, 7),
    "reversed corners": ("repaired", 4, 8),
    "left of the image": ("repaired", 4, 8),
    "below the image": ("repaired", 4, 8),
    "wholly outside": ("dropped", 3, 7),
    "box of the turned image": ("dropped", 3, 7),
    "not a number": ("dropped", 3, 7),
    "infinite": ("dropped", 3, 7),
    "coordinates as text": ("repaired", 4, 8),
    "three numbers": ("dropped", 3, 7),
    "no bbox": ("dropped", 3, 7),
    "outline alone": ("repaired", 4, 8),
    "mask alone": ("repaired", 4, 8),
    "unknown category": ("dropped", 3, 7),
    "category id as text": ("repaired", 4, 8),
    "unknown image": ("dropped", 3, 8),
    "image id as text": ("repaired", 4, 8),
    "image id twice": ("dropped", 3, 6),
    "one file twice": ("dropped", 3, 6),
    "missing image": ("dropped", 3, 7),
    "no file name": ("dropped", 3, 7),
    "size swapped": ("warning", 4, 8),
    "another size": ("dropped", 3, 7),
    "category id twice": ("dropped", 2, 6),
    "category without a name": ("dropped", 4, 8),
}


@pytest.mark.parametrize("name", FAULTS)
def test_check_names_the_fault_with_its_place(root, name):
    fault, where, reason = FAULTS[name]
    assert check_dataset(root).ok
    fault(root)
    report = check_dataset(root)
    assert not report.ok
    assert any(where in found.item and reason in found.reason for found in report.faults), report.faults


@pytest.mark.parametrize("name", FAULTS)
def test_training_never_starts_from_it(root, name):
    fault, where, reason = FAULTS[name]
    fault(root)
    with pytest.raises(DataError) as caught:
        load_defect_split(root, "train")
    assert f"train.json: {where}" in str(caught.value) and reason in str(caught.value)


@pytest.mark.parametrize("name", FAULTS)
def test_prepare_makes_a_sound_dataset_of_it_and_says_how(root, tmp_path, name):
    FAULTS[name][0](root)
    action, num_boxes, num_images = PREPARED[name]
    report = prepare_defect(root, "coco", tmp_path / "out")
    assert action in {found.action for found in report.faults}
    assert check_dataset(tmp_path / "out").ok
    records = load_defect_split(tmp_path / "out", "train")
    assert (sum(len(record.annotation.class_ids) for record in records), len(records)) == (num_boxes, num_images)


@pytest.mark.parametrize("name", FAULTS)
def test_no_image_becomes_ok_because_its_labels_were_lost(root, tmp_path, name):
    FAULTS[name][0](root)
    prepare_defect(root, "coco", tmp_path / "out")
    ok = {Path(record.path).stem for record in load_defect_split(tmp_path / "out", "train") if record.annotation.is_ok}
    # A box that names another image takes image 2's only label away: that can't be seen from here.
    assert ok <= {"1", "3", "5", "7"} | ({"2"} if name == "unknown image" else set())


@pytest.mark.parametrize("segmentation", [OUTLINE, RUNS], ids=["polygon", "mask"])
def test_an_outline_gives_the_very_box_it_encloses(root, tmp_path, segmentation):
    box(bbox=None, segmentation=segmentation)(root)
    prepare_defect(root, "coco", tmp_path / "out")
    record = next(r for r in load_defect_split(tmp_path / "out", "train") if r.path == "images/2.jpg")
    assert record.annotation.boxes_xyxy_px.tolist() == [[10, 20, 30, 30]]


def test_a_clipped_and_a_swapped_box_have_the_coordinates_that_are_right(root, tmp_path):
    box(bbox=[30, 65, -40, -15])(root)
    prepare_defect(root, "coco", tmp_path / "out")
    record = next(r for r in load_defect_split(tmp_path / "out", "train") if r.path == "images/2.jpg")
    assert record.annotation.boxes_xyxy_px.tolist() == [[0, 50, 30, 60]]


def test_all_of_them_at_once_are_listed_in_one_pass(root, tmp_path):
    for name in ("unknown category", "image id twice", "category without a name"):
        FAULTS[name][0](root)
    (root / "images" / "4.jpg").unlink()
    (root / "val.json").write_text("{")
    errors = "\n".join(map(str, check_dataset(root).faults))
    for expected in (SECOND, "images[2]", "categories[2]", "images/4.jpg", "val.json: no valid JSON"):
        assert expected in errors
    (root / "val.json").write_text(json.dumps(coco(range(8, 12))))
    told = "\n".join(map(str, prepare_defect(root, "coco", tmp_path / "out", dry_run=True).faults))
    for expected in ("id 1 belongs to images/1.jpg and images/2.jpg", "categories[2]", "images/4.jpg"):
        assert expected in told


@pytest.mark.parametrize("side", [{"train": 1, "val": 2}, {"train": 2, "val": 1}], ids=str)
def test_classes_meet_by_name_whatever_ids_and_order_each_split_has(root, side):
    for split, dent in side.items():
        content = json.loads((root / f"{split}.json").read_text())
        names = ["dent", "scratch"] if dent == 1 else ["scratch", "dent"]
        content["categories"] = [{"id": 10 * n, "name": name} for n, name in enumerate(names, 1)]
        for entry in content["annotations"]:
            entry["category_id"] = {5: 10 * dent, 3: 10 * (3 - dent)}[entry["category_id"]]
        (root / f"{split}.json").write_text(json.dumps(content))
    classes = defect_classes(root)
    found = {r.path: [classes[i] for i in r.annotation.class_ids] for s in side for r in load_defect_split(root, s)}
    assert {path: names for path, names in found.items() if names} == {
        f"images/{n}.jpg": ["dent" if n % 4 == 2 else "scratch"] for n in range(0, 12, 2)
    }


def test_a_class_of_val_that_train_does_not_know_is_refused_by_name(root):
    text = (root / "val.json").read_text().replace("dent", "pit")
    (root / "val.json").write_text(text)
    with pytest.raises(DataError, match=r"categories\[0\] \(id 5\): category 'pit' is no class of this dataset"):
        load_defect_split(root, "val")


def test_a_crowd_is_an_ignore_region_and_its_image_stays_ok(root, tmp_path):
    box(iscrowd=1)(root)
    prepare_defect(root, "coco", tmp_path / "out")
    for folder in (root, tmp_path / "out"):
        record = load_defect_split(folder, "train")[2]
        assert record.annotation.is_ignored.tolist() == [True] and record.annotation.is_ok
    assert check_dataset(tmp_path / "out").counts["train"].ignored == 1


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_split_of_ok_images_alone_is_refused(root, split):
    content = json.loads((root / f"{split}.json").read_text())
    (root / f"{split}.json").write_text(json.dumps({**content, "annotations": []}))
    with pytest.raises(DataError, match="no defect to learn or score"):
        load_defect_split(root, split)
    with pytest.raises(DataError, match=f"{split} has . images but no defect to learn or score"):
        prepare_defect(root, "coco", root.parent / "out")
    assert not (root.parent / "out").exists()


def test_a_wrong_root_is_one_message_and_not_one_an_image(root):
    shutil.rmtree(root / "images")
    for action in (
        lambda: load_defect_split(root, "train"),
        lambda: prepare_defect(root, "coco", root.parent / "out"),
    ):
        with pytest.raises(DataError, match=r"0 of \d+ images found under .*first tried.*images/0\.jpg") as caught:
            action()
        assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize(
    "content", ["", "[]", '{"images": 3}', '{"images": [3], "categories": []}', "\x00", '{"a": 1}']
)
def test_a_file_that_is_no_coco_is_one_message(root, content):
    (root / "train.json").write_text(content)
    with pytest.raises(DataError, match=r"train\.json"):
        load_defect_split(root, "train")
    with pytest.raises(DataError, match=r"train\.json"):
        prepare_defect(root / "train.json", "coco", root.parent / "out")
    assert not check_dataset(root).ok
