"""Which defects count as found, and how they are drawn and written, whatever their classes are called.

Run: pytest tests/unit/runs/defects/test_pictures.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from pipelines.records import DefectAnnotation, DefectPrediction, Record
from pipelines.report import window_of_change
from pipelines.runs.defects import captions as captions_module
from pipelines.runs.defects.captions import Captions, captions_of
from pipelines.runs.defects.pictures import DefectPresentation, changed_image, findings
from pipelines.synthesis.fonts import Fonts, find_fonts

NAMES = ("scratch", "pit")
FOUND = DefectPrediction(
    np.array([[10, 20, 50, 60], [100, 100, 140, 130], [60, 150, 90, 190]], np.float32),
    np.array([0, 1, 0]),
    np.array([0.3, 0.9, 0.5], np.float32),
)


@pytest.fixture
def latin_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a Chinese font."""
    monkeypatch.setattr(captions_module, "find_fonts", lambda: Fonts(find_fonts().latin))
    captions_of.cache_clear()
    yield
    captions_of.cache_clear()


def test_what_is_less_confident_than_the_threshold_is_not_shown():
    shown = DefectPresentation(NAMES, 0.5).confident(FOUND)
    assert shown.confidences.tolist() == pytest.approx([0.9, 0.5])  # the threshold itself is in
    assert shown.class_ids.tolist() == [1, 0]
    assert len(DefectPresentation(NAMES, 0.95).confident(FOUND)) == 0


def test_a_defect_is_written_with_its_class_confidence_and_box():
    assert json.loads(json.dumps(DefectPresentation(NAMES, 0.0).as_json(FOUND)))[1] == {
        "class": "pit",
        "confidence": 0.9,
        "box": [100.0, 100.0, 140.0, 130.0],
    }


@pytest.mark.parametrize(
    ("counts", "said"),
    [([0, 2, 3], "2 of 3 images have a finding, 5 defects in all"), ([0, 1], "1 of 2 images has a finding, 1 defect")],
)
def test_the_summary_counts_images_with_a_finding_and_names_the_threshold(counts, said):
    summary = DefectPresentation(NAMES, 0.4125).summary(counts)
    assert summary.startswith(said) and summary.endswith("at confidence 0.412 and above")


@pytest.mark.parametrize("size_hw", [(200, 160), (2000, 1600), (24, 30)])
def test_boxes_are_drawn_on_a_copy_in_lines_that_suit_the_image(size_hw):
    image = np.full((*size_hw, 3), 120, np.uint8)
    scale = size_hw[0] / 200
    scaled = DefectPrediction(FOUND.boxes_xyxy_px * scale, FOUND.class_ids, FOUND.confidences)
    drawn = DefectPresentation(NAMES, 0.0).draw(image, scaled)
    assert drawn.shape == image.shape
    assert (image == 120).all()
    left, _, right, bottom = np.round(scaled.boxes_xyxy_px[1]).astype(int)
    assert (drawn[bottom, left : right + 1] != 120).any(axis=-1).all()  # the lower edge, far from the sign
    share = (drawn != 120).any(axis=-1).mean()
    assert share < 0.3 or size_hw == (24, 30)  # a sign of readable letters fills a tiny image


def test_the_sign_of_a_box_at_the_image_edge_lies_inside():
    image = np.full((100, 100, 3), 120, np.uint8)
    corner = DefectPrediction(np.array([[80, 0, 100, 20]], np.float32), np.array([0]), np.array([0.5], np.float32))
    drawn = DefectPresentation(NAMES, 0.0).draw(image, corner)
    assert (drawn[2:10, 20:79] != 120).any()  # moved to the left, over what is beside the box


def test_an_image_without_findings_is_drawn_as_it_is():
    image = np.arange(300, dtype=np.uint8).reshape(10, 10, 3)
    nothing = DefectPresentation(NAMES, 0.95).confident(FOUND)
    assert (DefectPresentation(NAMES, 0.95).draw(image, nothing) == image).all()


def test_a_name_that_no_font_can_draw_is_counted_in_drawings_and_said(latin_only):
    presentation = DefectPresentation(("划痕", "Kratzer über"), 0.0)
    assert presentation.captions.names == ("class 1", "Kratzer über")
    assert presentation.note == "no font here has all letters of the class names; in the drawings 划痕 is class 1"
    assert presentation.as_json(FOUND)[0]["class"] == "划痕"  # the file is not concerned
    assert (presentation.draw(np.zeros((200, 200, 3), np.uint8), FOUND) > 0).any()


def test_names_that_can_be_drawn_need_no_note(latin_only):
    assert captions_of(NAMES) == Captions(NAMES, find_fonts().latin[0].regular)


def test_boxes_are_judged_as_the_scorer_judges_them():
    # Labels: a scratch that the third box covers exactly, a pit without a box, an ignored scratch under the first.
    boxes = np.array([[60, 150, 90, 190], [0, 0, 9, 9], [10, 20, 50, 60]], np.float32)
    labels = DefectAnnotation(boxes, np.array([0, 1, 0]), np.array([False, False, True]))
    found = findings(FOUND, labels, 0.0, NAMES)
    # by falling confidence: pit .9 on nothing, scratch .5 right, scratch .3 on the ignore region
    assert found.captions == ["pit 0.90", "scratch 0.50", "scratch 0.30"]
    assert found.outlines_px[1].tolist() == [[60, 150], [90, 150], [90, 190], [60, 190]]
    assert found.is_right.tolist() == [False, True, False]
    assert found.is_ignored.tolist() == [False, False, True]
    assert found.is_found.tolist() == [True, False]
    assert found.counts("defects") == "1 of 2 defects found, 1 box fits none"
    # Control: at a threshold above its confidence the scratch is missed.
    assert findings(FOUND, labels, 0.6, NAMES).is_found.tolist() == [False, False]


def test_a_box_of_the_right_place_and_the_wrong_class_is_wrong():
    labels = DefectAnnotation(FOUND.boxes_xyxy_px[:1], np.array([1]), np.array([False]))
    found = findings(FOUND, labels, 0.0, NAMES)
    assert not found.is_right.any() and not found.is_found.any()


@pytest.mark.parametrize(("size_px", "window"), [(640, (640, 640)), (4000, (640, 640))])
def test_the_window_of_a_large_image_is_sixteen_defects_wide(size_px, window):
    # defects of 40 x 40 px: 16 x 40 = 640
    boxes = np.array([[100, 100, 140, 140], [300, 200, 340, 240]], np.float32)
    labels = DefectAnnotation(boxes, np.array([0, 1]), np.array([False, False]))
    before, after = findings(FOUND, labels, 0.95, NAMES), findings(FOUND, labels, 0.0, NAMES)
    record = Record("a.png", (size_px, size_px), labels)
    image = np.zeros((size_px, size_px, 3), np.uint8)
    changed = changed_image(record, image, before, after, captions_of(NAMES))
    left, top, right, bottom = window_of_change(changed)
    assert (right - left, bottom - top) == window
    assert changed.captions == ["scratch", "pit"] and changed.noun == "defects"
