"""Defect datasets on disk: written, read back, classes by name. Run: pytest tests/unit/test_defect_dataset.py"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipelines.dataset import defect_classes, format_coco, format_index, load_defect_split, read_index
from pipelines.dataset.box_checks import box_faults, numeric_box
from pipelines.errors import DataError
from pipelines.records import DefectAnnotation, Record

CLASSES = ("scratch", "凹痕")


def record(number: int, *boxes: tuple[float, float, float, float], ignored: tuple[bool, ...] = ()) -> Record:
    annotation = DefectAnnotation(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.arange(len(boxes)) % 2,
        np.array(ignored or [False] * len(boxes), bool),
    )
    return Record(f"images/{number}.png", (60, 80), annotation, f"images/{number}.png")


RECORDS = [record(0), record(1, (1.234, 2, 79.996, 60), (3, 4, 5, 6)), record(2, (0, 0, 80, 60), ignored=(True,))]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    for number in range(3):
        Image.new("L", (80, 60)).save(tmp_path / "images" / f"{number}.png")
    for split in ("train", "val"):
        (tmp_path / f"{split}.json").write_text(format_coco(RECORDS, CLASSES), encoding="utf-8")
    return tmp_path


def test_records_come_back_as_they_were_written_to_a_hundredth_of_a_pixel(root):
    loaded = load_defect_split(root, "val")
    assert [(r.path, r.size_hw, r.group) for r in loaded] == [(r.path, r.size_hw, r.group) for r in RECORDS]
    for before, after in zip(RECORDS, loaded, strict=True):
        np.testing.assert_allclose(after.annotation.boxes_xyxy_px, before.annotation.boxes_xyxy_px, atol=0.01)
        assert after.annotation.class_ids.tolist() == before.annotation.class_ids.tolist()
        assert after.annotation.is_ignored.tolist() == before.annotation.is_ignored.tolist()
    assert [r.annotation.is_ok for r in loaded] == [True, False, True]


def test_writing_what_was_read_changes_no_byte(root):
    written = (root / "train.json").read_text(encoding="utf-8")
    assert format_coco(load_defect_split(root, "train"), defect_classes(root)) == written


def test_every_number_of_a_written_box_is_what_hand_arithmetic_gives(root):
    first = json.loads((root / "train.json").read_text(encoding="utf-8"))["annotations"][0]
    # 79.996 is written as 80; 80 - 1.23 = 78.77 and 78.77 x 58 = 4568.66
    assert first["bbox"] == [1.23, 2, 78.77, 58] and first["area"] == 4568.66
    assert (first["id"], first["image_id"], first["category_id"], first["iscrowd"]) == (1, 2, 1, 0)


def test_dataset_yml_gives_classes_groups_and_sizes(root):
    images = {r.path: {"group": "roll7", "size_hw": [60, 80]} for r in RECORDS}
    (root / "dataset.yml").write_text(format_index({"classes": list(CLASSES)[::-1]}, images), encoding="utf-8")
    assert read_index(root)["images"] == images and defect_classes(root) == CLASSES[::-1]
    loaded = load_defect_split(root, "train")[1]
    assert loaded.group == "roll7" and loaded.annotation.class_ids.tolist() == [1, 0]


def test_images_may_lie_below_images_without_being_called_so(root):
    for split in ("train", "val"):
        text = (root / f"{split}.json").read_text(encoding="utf-8").replace("images/", ".\\\\")
        (root / f"{split}.json").write_text(text, encoding="utf-8")
    assert [r.path for r in load_defect_split(root, "train")] == [r.path for r in RECORDS]


@pytest.mark.parametrize(
    ("categories", "message"),
    [([], "expected a list of class names"), ([{"id": 1}], "class names"), ([{"name": "a"}, {"name": "a"}], "twice")],
)
def test_unusable_class_lists_are_refused(root, categories, message):
    content = json.loads((root / "train.json").read_text(encoding="utf-8"))
    (root / "train.json").write_text(json.dumps({**content, "categories": categories}))
    with pytest.raises(DataError, match=message):
        defect_classes(root)


@pytest.mark.parametrize(
    "values", [None, "1234", [1, 2, 3], [1, 2, 3, "4"], [1, 2, 3, True], [1, 2, 3, float("nan")], [1, 2, 3, 10**400]]
)
def test_what_is_not_four_finite_numbers_is_no_box(values):
    assert numeric_box(values) is None


def test_only_boxes_with_a_fault_are_named_each_with_its_index():
    boxes = [(0, 0, 80, 60), (5, 5, 5, 9), (9, 9, 1, 1), (-1, 0, 9, 9), (0, 0, 80.01, 60), (0, 0, 9, 60.5)]
    reasons = dict(box_faults(boxes, (60, 80)))
    assert list(reasons) == [1, 2, 3, 5]
    assert "no area" in reasons[1] and "reversed" in reasons[2]
    assert reasons[5] == "reaches outside the image of 80 x 60 px: (0, 0) to (9, 60.5)"
    assert box_faults([], (60, 80)) == []
