"""Targets: boxes in arrays of one length, ignore regions told apart, what can't be trained on refused by file.

pytest tests/unit/defect_detection/test_targets.py
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from pipelines.defect_detection.targets import DEFECT, IGNORED, PADDING, DefectTargets
from pipelines.errors import DataError
from pipelines.records import DefectAnnotation

IMAGE = np.zeros((32, 64, 3), np.uint8)
TWO = DefectAnnotation(np.array([[1, 2, 3, 4], [5, 6, 60, 30]]), np.array([2, 1]), np.array([False, True]))


def test_boxes_come_first_and_the_rest_is_padding() -> None:
    sample = DefectTargets(4, 3)(IMAGE, TWO, "a.png")
    assert sample.targets["boxes"].tolist() == [[1, 2, 3, 4], [5, 6, 60, 30], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert sample.targets["class_ids"].tolist() == [2, 1, 0, 0]
    assert sample.targets["kinds"].tolist() == [DEFECT, IGNORED, PADDING, PADDING]
    assert [value.dtype for value in sample.targets.values()] == [np.float32, np.int64, np.int64]
    assert sample.image is IMAGE and sample.source == "a.png"


def test_an_ok_image_is_padding_only() -> None:
    sample = DefectTargets(2, 3)(IMAGE, DefectAnnotation(), "ok.png")
    assert sample.targets["kinds"].tolist() == [PADDING, PADDING] and not sample.targets["boxes"].any()


def test_more_boxes_than_announced_are_refused_by_file() -> None:
    assert len(DefectTargets(2, 3)(IMAGE, TWO, "a.png").targets["boxes"]) == 2
    with pytest.raises(DataError, match=r"board/a.png: 2 boxes, but at most 1 were announced"):
        DefectTargets(1, 3)(IMAGE, TWO, "board/a.png")


@pytest.mark.parametrize("class_ids", [[0, 3], [-1, 0]])
def test_a_class_the_network_does_not_have_is_refused_by_file(class_ids: list[int]) -> None:
    annotation = DefectAnnotation(TWO.boxes_xyxy_px, np.array(class_ids), TWO.is_ignored)
    with pytest.raises(DataError, match=rf"board/a.png: class ids must be 0 to 2, but are {re.escape(str(class_ids))}"):
        DefectTargets(4, 3)(IMAGE, annotation, "board/a.png")
