"""Comparing boxes: shares worked out by hand, and a report that fails when it should.

pytest tests/unit/export/test_parity.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipelines.export.parity import compare_defect_predictions, compare_predictions, equal_defects, equal_pairs
from pipelines.records import DefectPrediction, TextPrediction

LEFT, RIGHT = (0, 0, 50, 50), (200, 0, 250, 50)


def _boxes(*corners: tuple[float, float, float, float], confidence: float = 0.9) -> TextPrediction:
    polygons = tuple(
        np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32)
        for left, top, right, bottom in corners
    )
    return TextPrediction(polygons, np.full(len(corners), confidence, np.float32))


def test_boxes_count_as_equal_from_an_iou_of_99_percent() -> None:
    # 1000 wide: one pixel shorter is IoU 0.999, eleven shorter 0.989.
    box = _boxes((0, 0, 1000, 50))
    assert equal_pairs(box, _boxes((0, 0, 999, 50))) == [(0, 0)]
    assert equal_pairs(box, _boxes((0, 0, 989, 50))) == []


def test_share_is_equal_pairs_over_the_larger_count() -> None:
    three = _boxes((0, 0, 10, 10), (20, 0, 30, 10), (40, 0, 50, 10), confidence=0.9)
    two = _boxes((0, 0, 10, 10), (20, 0, 30, 10), confidence=0.8)
    report = compare_predictions([three, two], [two, two])
    assert (report.num_ours, report.num_theirs, report.num_equal) == (5, 4, 4)
    assert report.share == pytest.approx(0.8)
    assert report.images_with_other_count == (0,)
    assert report.max_confidence_difference == pytest.approx(0.1)
    assert not report.ok
    assert report.to_json()["share"] == pytest.approx(0.8)
    assert report.to_json()["ok"] is False
    assert report.render().startswith("paddleocr DIFFERS: 4 boxes with IoU >= 0.99 of 5 ours and 4 theirs (80.0%")


def test_blank_pages_agree_and_a_box_on_one_side_only_does_not() -> None:
    assert compare_predictions([_boxes()], [_boxes()]).ok
    assert not compare_predictions([_boxes((0, 0, 9, 9))], [_boxes()]).ok
    assert not compare_predictions([_boxes()], [_boxes((0, 0, 9, 9))]).ok


def test_a_shift_of_all_boxes_by_one_pixel_is_seen() -> None:
    lines = [(10.0, 30.0 * row, 110.0, 30.0 * row + 20) for row in range(20)]
    shifted = [(left + 1, top, right + 1, bottom) for left, top, right, bottom in lines]
    assert compare_predictions([_boxes(*lines)], [_boxes(*lines)]).ok
    assert not compare_predictions([_boxes(*lines)], [_boxes(*shifted)]).ok


def test_another_number_of_images_is_refused() -> None:
    with pytest.raises(ValueError, match="as many predictions of both, but got 1 and 0"):
        compare_predictions([_boxes()], [])


def _defects(*boxes: tuple[float, float, float, float], class_id: int = 0, confidence: float = 0.9) -> DefectPrediction:
    return DefectPrediction(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.full(len(boxes), class_id, np.int64),
        np.full(len(boxes), confidence, np.float32),
    )


def test_defects_are_equal_from_an_iou_of_99_percent_and_in_one_class_only() -> None:
    # 100 x 100 against 100 x 99.5: IoU 0.995; against 100 x 98.5: 0.985.
    box = _defects((0, 0, 100, 100))
    assert equal_defects(box, _defects((0, 0, 100, 99.5))) == [(0, 0)]
    assert equal_defects(box, _defects((0, 0, 100, 98.5))) == []
    assert equal_defects(box, _defects((0, 0, 100, 100), class_id=1)) == []
    assert equal_defects(box, _defects()) == []


@pytest.mark.parametrize(("boxes", "pairs"), [(_boxes, equal_pairs), (_defects, equal_defects)])
def test_order_does_not_matter_and_each_box_has_one_partner(boxes: Any, pairs: Any) -> None:
    assert pairs(boxes(LEFT, RIGHT), boxes(RIGHT, LEFT)) == [(0, 1), (1, 0)]
    assert pairs(boxes(LEFT, LEFT), boxes(LEFT)) == [(0, 0)]
    assert pairs(boxes(LEFT, LEFT), boxes(LEFT, LEFT)) == [(0, 0), (1, 1)]


def test_the_report_on_defects_names_its_program() -> None:
    three = _defects((0, 0, 10, 10), (20, 0, 30, 10), (40, 0, 50, 10), confidence=0.9)
    report = compare_defect_predictions([three], [_defects((0, 0, 10, 10), confidence=0.7)])
    assert (report.num_ours, report.num_theirs, report.num_equal) == (3, 1, 1)
    assert report.max_confidence_difference == pytest.approx(0.2)
    assert report.render().startswith("paddlex DIFFERS: 1 boxes with IoU >= 0.99 of 3 ours and 1 theirs (33.3%")
    assert report.to_json()["program"] == "paddlex"
    assert compare_defect_predictions([three], [three], program="the graph").render().startswith("the graph agrees: 3")


def test_a_comparison_without_any_box_says_that_it_compared_nothing() -> None:
    report = compare_defect_predictions([_defects()], [_defects()])
    assert report.ok
    assert report.render() == (
        "paddlex: neither the network nor the exported model found a box, so nothing was compared"
    )
