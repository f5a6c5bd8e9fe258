"""A tile that is refused once costs a second try, twice an error that names image, tile and what to set.

Run: pytest tests/unit/runs/defects/test_memory.py
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.errors import OutOfMemoryError
from pipelines.records import DefectPrediction, Record
from pipelines.runs.defects.evaluation import evaluate_records
from tests.unit.runs.defects.defect_runs import CLASSES, LABELS, SIZE_HW, annotation_of, prediction_of
from tests.unit.runs.stand_ins import Detector


class Refusing:
    """Finds every defect of the image that it is asked for, after a number of refusals."""

    def __init__(self, num_refusals: int):
        self.num_refusals, self.num_calls = num_refusals, 0

    def __call__(self, view: np.ndarray) -> DefectPrediction:
        self.num_calls += 1
        if self.num_calls <= self.num_refusals:
            raise MemoryError("Unable to allocate")
        return prediction_of([(box, class_id, 0.9) for box, class_id in LABELS[0]])


@pytest.fixture
def records(tmp_path: Path) -> list[Record]:
    cv2.imwrite(str(tmp_path / "board.png"), np.full((*SIZE_HW, 3), 120, np.uint8))
    return [Record("board.png", SIZE_HW, annotation_of(LABELS[0]))]


def test_memory_that_comes_back_changes_no_number(records, tmp_path, recorder):
    calm, troubled = Refusing(0), Refusing(1)
    metrics = [
        evaluate_records(Detector(find, CLASSES), tmp_path, records, CLASSES, 0.1, recorder)
        for find in (calm, troubled)
    ]
    assert metrics[0] == metrics[1]
    assert (calm.num_calls, troubled.num_calls) == (1, 2)


def test_a_tile_that_is_refused_twice_is_named_with_what_to_set(records, tmp_path, recorder):
    find = Refusing(2)
    with pytest.raises(OutOfMemoryError) as caught:
        evaluate_records(Detector(find, CLASSES), tmp_path, records, CLASSES, 0.1, recorder)
    said = str(caught.value)
    assert f"board.png: evaluation of a tile of {SIZE_HW[1]} x {SIZE_HW[0]} px" in said
    assert "evaluate.view.tile (it is 640)" in said and "Unable to allocate" in said
    assert find.num_calls == 2
