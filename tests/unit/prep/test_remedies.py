"""What `check` says mends a fault is what `prepare` does. Run: pytest tests/unit/prep/test_remedies.py"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.prep import check_dataset, prepare_defect, prepare_text
from pipelines.prep.remedies import remedy_of
from pipelines.records import Fault

SOUND = [[10, 10], [50, 10], [50, 20], [10, 20]]


def entry(points: object) -> str:
    return json.dumps([{"transcription": "a", "points": SOUND}, {"transcription": "b", "points": points}])


TEXT = {
    "bow-tie": ("NAME\t" + entry([[10, 30], [50, 40], [50, 30], [10, 40]]), "reorders four points", "repaired"),
    "outside": ("NAME\t" + entry([[10, 30], [99, 30], [99, 40], [10, 40]]), "cuts it at the border", "repaired"),
    "no area": ("NAME\t" + entry([[10, 30], [50, 30], [50, 30], [10, 30]]), "drops it", "dropped"),
    "two points": ("NAME\t" + entry([[10, 30], [50, 30]]), "drops it", "dropped"),
    "numbers as text": ("NAME\t" + entry([["10", 30], [50, 30], [50, 40], [10, 40]]), "reads numbers", "repaired"),
    "spaces for the tab": ("NAME    " + entry(SOUND), "finds where the path ends", "repaired"),
    "no JSON": ("NAME\t[{", "joins a line that was cut, or drops it", "dropped"),
    "no list": ("NAME\t3", "drops the line", "dropped"),
    "Windows line ends": ("NAME\t" + entry(SOUND) + "\r", "writes line feeds", "repaired"),
}


@pytest.fixture
def text_dataset(labelled: Path) -> Path:
    """A PaddleOCR dataset folder, never prepared; its third training image is `roll1_0.jpg`."""
    lines = (labelled / "Label.txt").read_text().splitlines(keepends=True)
    (labelled / "train.txt").write_text("".join(lines[:8]))
    (labelled / "val.txt").write_text("".join(lines[8:]))
    (labelled / "Label.txt").unlink()
    return labelled


@pytest.mark.parametrize("kind", TEXT)
def test_prepare_does_to_text_what_check_promises(text_dataset: Path, tmp_path: Path, kind: str) -> None:
    line, promise, action = TEXT[kind]
    lines = (text_dataset / "train.txt").read_text().splitlines(keepends=True)
    lines[2] = line.replace("NAME", "roll1_0.jpg") + "\n"
    (text_dataset / "train.txt").write_text("".join(lines), newline="")
    (fault,) = check_dataset(text_dataset).faults
    assert promise in fault.repair and str(fault).endswith(f"[error]; {fault.repair}")
    done = prepare_text(text_dataset, "paddleocr", tmp_path / "out")
    assert action in {one.action for one in done.faults}
    assert check_dataset(tmp_path / "out").ok


@pytest.mark.parametrize(
    ("bbox", "promise", "action"),
    [
        ([50, 40, -20, -10], "swaps them", "repaired"),
        ([70, 50, 30, 30], "cuts it at the border", "repaired"),
        ([10, 10, 0.2, 10], "drops it", "dropped"),
        (["a", 10, 5, 5], "takes the outline where there is one, else drops the object", "dropped"),
    ],
)
def test_prepare_does_to_boxes_what_check_promises(
    write_picture, tmp_path: Path, bbox: list[object], promise: str, action: str
) -> None:
    root = tmp_path / "coco"
    for split, number in (("train", 0), ("val", 10)):
        write_picture(root / f"{split}.jpg", number)
        boxes = [[10, 10, 20, 20], *([bbox] if split == "train" else [])]
        objects = [{"id": i, "image_id": 1, "category_id": 1, "bbox": box} for i, box in enumerate(boxes)]
        images = [{"id": 1, "file_name": f"{split}.jpg", "height": 60, "width": 80}]
        coco = {"images": images, "annotations": objects, "categories": [{"id": 1, "name": "dent"}]}
        (root / f"{split}.json").write_text(json.dumps(coco))
    (fault,) = [fault for fault in check_dataset(root).faults if fault.action == "error"]
    assert promise in fault.repair and fault.image == "train.jpg"
    done = prepare_defect(root, "coco", tmp_path / "out")
    assert action in {one.action for one in done.faults}


def test_a_fault_of_a_label_line_knows_its_image(text_dataset: Path) -> None:
    lines = (text_dataset / "train.txt").read_text().splitlines(keepends=True)
    broken = TEXT["bow-tie"][0].replace("NAME", "roll1_0.jpg") + "\n"
    (text_dataset / "train.txt").write_text("".join([*lines[:2], broken, *lines[3:], "no line\n"]))
    (text_dataset / "roll0_0.jpg").write_bytes(b"")
    found = [fault for fault in check_dataset(text_dataset).faults if fault.file.endswith("train.txt")]
    assert [(one.line, one.image) for one in found] == [(1, "roll0_0.jpg"), (3, "roll1_0.jpg"), (9, "")]
    assert found[0].repair == "convert or replace it, or prepare leaves the image out"


def test_what_has_no_known_remedy_is_told_without() -> None:
    assert remedy_of("something never seen") == ""
    assert str(Fault("a.txt", "odd", "warning", 3)) == "a.txt:3: odd [warning]"
