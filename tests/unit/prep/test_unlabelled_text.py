"""Lines without a label are found; rules, shades and labelled lines are not.

Run: pytest tests/unit/prep/test_unlabelled_text.py
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.prep import labelled_images, oddities, usual_size
from pipelines.prep.unlabelled_text import unlabelled_text
from pipelines.records import DefectAnnotation, Record

LINES = {"TOTAL 12.50 EUR": (60, 60), "Paid in cash, thank you": (60, 120), "Invoice 2041-77": (60, 180)}


def page(scale: int = 1) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Three printed lines, and the boxes round them (left, top, right, bottom), all `scale` times as large."""
    grey = np.full((300 * scale, 500 * scale), 245, np.uint8)
    boxes = {}
    for text, (x, y) in LINES.items():
        (wide, high), below = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, 0.8 * scale, 2 * scale)
        at = (x * scale, y * scale)
        cv2.putText(grey, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.8 * scale, 30, 2 * scale, cv2.LINE_AA)
        boxes[text] = np.array([at[0], at[1] - high, at[0] + wide, at[1] + below], np.float32)
    return grey, boxes


def covered(place: np.ndarray, box: np.ndarray) -> float:
    """Share of a box that a place covers."""
    sides = np.minimum(place[2:], box[2:]) - np.maximum(place[:2], box[:2])
    return float(np.clip(sides, 0, None).prod() / (box[2:] - box[:2]).prod())


@pytest.mark.parametrize("scale", [1, 3])
def test_the_line_that_nobody_labelled_is_found_at_any_resolution(scale: int) -> None:
    grey, boxes = page(scale)
    forgotten = boxes.pop("TOTAL 12.50 EUR")
    places = unlabelled_text(grey, np.stack(list(boxes.values())), 20.0 * scale)
    assert 1 <= len(places) <= 3  # words may stand far enough apart to be places of their own
    assert sum(covered(place, forgotten) for place in places) > 0.6
    assert all(covered(forgotten, place) > 0.9 for place in places)


def test_a_page_with_all_lines_labelled_has_nothing_to_find() -> None:
    grey, boxes = page()
    assert len(unlabelled_text(grey, np.stack(list(boxes.values())), 20.0)) == 0
    assert len(unlabelled_text(grey, np.zeros((0, 4), np.float32), 20.0)) == 3  # the control


def test_rules_shades_borders_and_blots_are_no_text() -> None:
    grey = np.full((400, 600), 240, np.uint8)
    cv2.line(grey, (50, 50), (550, 50), 20, 2)
    cv2.line(grey, (50, 90), (350, 100), 20, 2)
    cv2.rectangle(grey, (50, 130), (250, 150), 190, -1)
    cv2.rectangle(grey, (300, 130), (500, 150), 20, -1)
    cv2.circle(grey, (100, 220), 9, 30, -1)
    grey[:12] = 30
    noise = np.random.default_rng(0).normal(0, 4, grey.shape)
    assert len(unlabelled_text(np.clip(grey + noise, 0, 255).astype(np.uint8), np.zeros((0, 4), np.float32), 18.0)) == 0


def test_no_more_places_are_named_than_a_person_looks_at() -> None:
    grey = np.full((2400, 500), 245, np.uint8)
    for row in range(70):
        cv2.putText(grey, "item 4711", (40, 40 + 33 * row), cv2.FONT_HERSHEY_SIMPLEX, 0.7, 30, 2)
    assert len(unlabelled_text(grey, np.zeros((0, 4), np.float32), 18.0)) == 50


def test_an_image_with_forgotten_lines_is_odd_and_a_part_with_lettering_is_not(tmp_path: Path) -> None:
    grey, _ = page()
    cv2.imwrite(str(tmp_path / "a.png"), grey)
    (tmp_path / "train.txt").write_text("a.png\t[]\n")
    (tmp_path / "val.txt").write_text("a.png\t[]\n")
    (_, record), _ = labelled_images(tmp_path)
    found = oddities(tmp_path, record, 20.0)
    assert found.reasons == ("3 places that look like text without a label",) and len(found.unlabelled_px) == 3
    part = Record("a.png", record.size_hw, DefectAnnotation())
    assert oddities(tmp_path, part, 20.0).reasons == ()


def test_real_receipts_have_forgotten_lines_and_few_places_are_named(real_data: Path, tmp_path: Path) -> None:
    """`STAR 15X16 AA (1X120)` of receipt 150 has no box in the set."""
    from pipelines.prep import prepare_text

    if not (real_data / "receipts").is_dir():
        pytest.skip("WHOLEBATCH_DATA does not name a folder with receipts/ (see data/README.md)")
    prepare_text(real_data / "receipts", "sroie", tmp_path / "out")
    images = [record for _, record in labelled_images(tmp_path / "out")]
    usual = usual_size(images)
    (record,) = [record for record in images if record.path.endswith("150.jpg")]
    (left, top, right, bottom), *others = oddities(tmp_path / "out", record, usual).unlabelled_px.tolist()
    assert right - left > 150 and 10 < bottom - top < 60 and len(others) <= 1
    num_places = [len(oddities(tmp_path / "out", one, usual).unlabelled_px) for one in images[::4]]
    assert sum(num_places) <= len(num_places)
