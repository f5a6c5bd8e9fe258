"""YOLO label files and mask pictures: boxes come back where they were put, and nothing odd passes as OK."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.errors import DataError
from pipelines.prep.raw import ClassList, RawImage, Unlabelled
from pipelines.records import Fault

BOXES = {"shot_0": (8, 6, 40, 30), "shot_1": (0, 0, 80, 60), "shot_2": (16, 12, 24, 18)}


@pytest.fixture
def yolo(tmp_path, write_picture) -> Path:
    """Three images of 80 x 60 px with one box each, one that is OK and one without a label file."""
    for number in range(5):
        write_picture(tmp_path / "images" / "train" / f"shot_{number}.png", seed=number)
    labels = tmp_path / "labels" / "train"
    labels.mkdir(parents=True)
    for name, (left, top, right, bottom) in BOXES.items():
        shares = ((left + right) / 160, (top + bottom) / 120, (right - left) / 80, (bottom - top) / 60)
        (labels / f"{name}.txt").write_text("1 " + " ".join(f"{share:.6f}" for share in shares) + "\n")
    (labels / "shot_3.txt").write_text("")
    (tmp_path / "data.yaml").write_text("train: images/train\nnames:\n  0: pit\n  1: scratch\n")
    return tmp_path


def test_yolo_boxes_come_back_where_they_were_put_under_their_names(yolo, read) -> None:
    raws, faults, others = read("yolo", yolo)
    for name, box in BOXES.items():
        (found,) = raws[f"{name}.png"].regions
        assert found.corners == pytest.approx(box, abs=1e-4) and found.class_name == "scratch"
    assert raws["shot_3.png"].regions == () and not faults
    assert [item.image.name for item in others if isinstance(item, Unlabelled)] == ["shot_4.png"]
    assert [item.names for item in others if isinstance(item, ClassList)] == [("pit", "scratch")]


@pytest.mark.parametrize("points", ["0.1 0.1 0.5 0.1 0.5 0.5", "0.1 0.1 0.5 0.1 0.5 0.5 0.1 0.5"])
def test_yolo_polygons_and_turned_boxes_become_the_box_round_them(yolo, read, points) -> None:
    (yolo / "labels" / "train" / "shot_0.txt").write_text(f"0 {points}\n")
    (found,) = read("yolo", yolo)[0]["shot_0.png"].regions
    assert found.corners == pytest.approx((8, 6, 40, 30)) and found.class_name == "pit"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 24 18 32 24", "are these pixels"),
        ("1 0.5 0.5 0.2", "but got 3"),
        ("1 0.5 0.5 0.2 0.2 0.9", "confidence"),
        ("7 0.5 0.5 0.2 0.2", "not among the 2 names"),
        ("pit 0.5 0.5 0.2 0.2", "class number"),
        ("1 nan 0.5 0.2 0.2", "from 0 to 1"),
    ],
)
def test_a_yolo_line_that_is_no_label_is_a_fault_and_not_an_ok_image(yolo, read, line, reason) -> None:
    (yolo / "labels" / "train" / "shot_0.txt").write_text(line + "\n")
    (found,) = read("yolo", yolo)[0]["shot_0.png"].regions
    assert reason in found.fault and found.item == "line 1"


def test_yolo_without_names_calls_the_classes_by_their_numbers_and_says_so(yolo, read) -> None:
    (yolo / "data.yaml").unlink()
    raws, faults, _ = read("yolo", yolo)
    assert raws["shot_0.png"].regions[0].class_name == "1" and "called by their numbers" in faults[0].reason


def test_folders_of_a_yolo_source_are_its_split(yolo, read, write_picture) -> None:
    write_picture(yolo / "images" / "val" / "other.png", seed=9)
    (yolo / "labels" / "val").mkdir()
    (yolo / "labels" / "val" / "other.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    raws = read("yolo", yolo)[0]
    assert raws["other.png"].split == "val" and raws["shot_0.png"].split == "train"


def write_mask(path: Path, *boxes: tuple[int, int, int, int], size_hw: tuple[int, int] = (60, 80)) -> None:
    mask = np.zeros(size_hw, np.uint8)
    for left, top, right, bottom in boxes:
        mask[top:bottom, left:right] = 255
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), mask)


@pytest.fixture
def mvtec(tmp_path, write_picture) -> Path:
    for number, folder in enumerate(("train/good", "test/good", "test/crack", "test/hole")):
        write_picture(tmp_path / folder / "000.png", seed=number)
    write_mask(tmp_path / "ground_truth" / "crack" / "000_mask.png", (8, 6, 40, 30), (50, 40, 60, 50), (70, 2, 71, 3))
    write_mask(tmp_path / "ground_truth" / "hole" / "000_mask.png", (1, 2, 11, 12))
    return tmp_path


def test_spots_of_a_mask_become_boxes_of_their_folders_class(mvtec) -> None:
    from pipelines.prep.masks import read_masks

    items = list(read_masks(mvtec, None))
    raws = {raw.name: raw for raw in items if isinstance(raw, RawImage)}
    found = {name: [(box.class_name, box.corners) for box in raw.regions] for name, raw in raws.items()}
    assert found == {
        "test/crack/000.png": [("crack", (8, 6, 40, 30)), ("crack", (50, 40, 60, 50))],
        "test/hole/000.png": [("hole", (1, 2, 11, 12))],
        "test/good/000.png": [],
        "train/good/000.png": [],
    }
    assert ["1 spots under 4 px" in item.reason for item in items if isinstance(item, Fault)] == [True]


def test_a_mask_of_another_size_or_of_specks_alone_leaves_its_image_out(mvtec, tmp_path) -> None:
    from pipelines.prep.masks import read_masks

    write_mask(mvtec / "ground_truth" / "crack" / "000_mask.png", (8, 6, 40, 30), size_hw=(30, 40))
    write_mask(mvtec / "ground_truth" / "hole" / "000_mask.png", (1, 2, 2, 3))
    raws = {raw.name: raw for raw in read_masks(mvtec, None) if isinstance(raw, RawImage)}
    assert "40 x 30 px" in raws["test/crack/000.png"].fault
    assert "neither a defect nor OK" in raws["test/hole/000.png"].fault


def test_masks_beside_their_images_are_of_one_class(tmp_path, write_picture, read) -> None:
    write_picture(tmp_path / "a.jpg")
    write_mask(tmp_path / "a_mask.png", (8, 6, 40, 30))
    write_picture(tmp_path / "b.jpg", seed=1)
    raws, _, others = read("masks", tmp_path)
    assert [(box.class_name, box.corners) for box in raws["a.jpg"].regions] == [("defect", (8, 6, 40, 30))]
    assert [item.image.name for item in others if isinstance(item, Unlabelled)] == ["b.jpg"]


@pytest.mark.parametrize("format", ["yolo", "masks"])
def test_a_folder_without_any_label_is_refused(format, tmp_path, write_picture, read) -> None:
    write_picture(tmp_path / "a.jpg")
    with pytest.raises(DataError, match="expected"):
        read(format, tmp_path)
