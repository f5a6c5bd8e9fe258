"""Which boxes are right, by the rules of the scorer, and how text is shown.

Run: pytest tests/unit/runs/text/test_pictures.py
"""

from __future__ import annotations

import json

import numpy as np

from pipelines.records import Record, TextAnnotation, TextPrediction, TextRegion
from pipelines.report import window_of_change
from pipelines.runs.text.pictures import TextPresentation, changed_image, findings
from tests.unit.report.run_values import square

BOX = np.array([[10, 20], [60, 20], [60, 40], [10, 40]], np.float32)
FOUND = TextPrediction((BOX,), np.array([0.87654321], np.float32))


def test_the_outline_is_drawn_on_a_copy_where_the_box_is():
    page = np.full((50, 80, 3), 255, np.uint8)
    drawn = TextPresentation().draw(page, FOUND)
    assert (page == 255).all()
    assert (drawn[20, 10:61] != 255).any(axis=-1).all() and (drawn[30, 30] == 255).all()


def test_points_are_source_pixels_and_confidences_plain_numbers():
    assert json.loads(json.dumps(TextPresentation().as_json(FOUND))) == [
        {"points": [[10.0, 20.0], [60.0, 20.0], [60.0, 40.0], [10.0, 40.0]], "confidence": 0.8765}
    ]


def test_a_confidence_asked_for_leaves_less_certain_text_out():
    both = TextPrediction((BOX, BOX + 100), np.array([0.9, 0.6], np.float32))
    assert TextPresentation().confident(both) is both
    (kept,) = TextPresentation(0.8).confident(both).polygons_px
    assert kept is BOX


def test_the_window_of_a_scan_is_forty_lines_wide():
    # text 40 px high: a window of 1600 px
    labels = TextAnnotation(tuple(TextRegion(square(x, y)) for x, y in ((100, 100), (2400, 3500))))
    nothing = findings(TextPrediction((), np.zeros(0, np.float32)), labels)
    record = Record("page.jpg", (7000, 5000), labels)
    left, top, right, bottom = window_of_change(
        changed_image(record, np.zeros((7000, 5000, 3), np.uint8), nothing, nothing)
    )
    assert (right - left, bottom - top) == (1600, 1600)


def test_boxes_are_judged_as_the_scorer_judges_them() -> None:
    # Labels at x = 0 and 100; an ignore region at 200. Boxes: exact; half beside (IoU 1/3); on the ignore region.
    labels = TextAnnotation(
        (TextRegion(square(0, 0)), TextRegion(square(100, 0)), TextRegion(square(200, 0), is_ignored=True))
    )
    boxes = (square(0, 0), square(120, 0), square(205, 0))
    found = findings(TextPrediction(boxes, np.ones(3, np.float32)), labels, iou=0.7)
    assert found.is_right.tolist() == [True, False, False]
    assert found.is_ignored.tolist() == [False, False, True]
    assert found.is_found.tolist() == [True, False]
    # Control: at a lower IoU the second box fits.
    assert findings(TextPrediction(boxes, np.ones(3, np.float32)), labels, iou=0.3).is_found.tolist() == [True, True]


def test_a_page_without_labels_or_boxes_is_judged_too() -> None:
    nothing = TextPrediction((), np.zeros(0, np.float32))
    found = findings(nothing, TextAnnotation(()))
    assert found.counts("lines") == "0 of 0 lines found, 0 boxes fit none"
    false = findings(TextPrediction((square(0, 0),), np.ones(1, np.float32)), TextAnnotation(()))
    assert false.counts("lines") == "0 of 0 lines found, 1 box fits none"
