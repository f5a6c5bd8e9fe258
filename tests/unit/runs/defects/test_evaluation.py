"""A detector with other classes than the dataset is scored by name, not by number; the judge blends and sorts.

Run: pytest tests/unit/runs/defects/test_evaluation.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from pipelines.records import Record
from pipelines.runs.defects import judge as judge_module
from pipelines.runs.defects.evaluation import evaluate_records, translated
from pipelines.runs.defects.judge import DefectJudge
from tests.unit.runs.defects.defect_runs import (
    BASELINE,
    BEST,
    CLASSES,
    LABELS,
    SIZE_HW,
    annotation_of,
    config_of,
    prediction_of,
)
from tests.unit.runs.stand_ins import Detector, Weights


@pytest.fixture
def records(tmp_path: Path) -> list[Record]:
    """The four images of `LABELS`, grey."""
    for number in range(len(LABELS)):
        cv2.imwrite(str(tmp_path / f"{number}.png"), np.full((*SIZE_HW, 3), 120, np.uint8))
    return [Record(f"{number}.png", SIZE_HW, annotation_of(labels)) for number, labels in enumerate(LABELS)]


def perfect(class_names: Sequence[str]) -> Detector:
    """Finds every defect, called by its name."""
    positions = [class_names.index(name) for name in CLASSES]
    found = iter([prediction_of([(box, positions[i], 0.9) for box, i in labels]) for labels in LABELS])
    return Detector(lambda _: next(found), class_names)


@pytest.mark.parametrize("class_names", [["scratch", "pit"], ["pit", "scratch"], ["stain", "pit", "dent", "scratch"]])
def test_classes_are_scored_by_name_whatever_their_number(class_names, records, tmp_path, recorder):
    metrics = evaluate_records(perfect(class_names), tmp_path, records, CLASSES, 0.1, recorder)
    assert metrics["ap_50"] == 1.0
    assert [one["recall"] for one in metrics["per_class"].values()] == [1.0, 1.0]


def test_a_class_that_the_dataset_does_not_have_is_left_out_and_said(records, tmp_path, recorder):
    box = (40, 40, 60, 60)
    detector = Detector(lambda _: prediction_of([(box, 1, 0.9)]), ["pit", "stain", "scratch"])
    metrics = evaluate_records(detector, tmp_path, records, CLASSES, 0.1, recorder)
    assert metrics["num_predictions"] == 0
    assert recorder.warnings == ["the model also finds stain, which the dataset does not have: not scored"]


def test_a_detector_of_the_same_classes_gets_no_warning(records, tmp_path, recorder):
    evaluate_records(perfect(["pit", "scratch"]), tmp_path, records, CLASSES, 0.1, recorder)
    assert recorder.warnings == []


def test_translating_keeps_boxes_and_confidences_together():
    found = prediction_of([((0, 0, 5, 5), 0, 0.9), ((1, 1, 6, 6), 1, 0.8), ((2, 2, 7, 7), 2, 0.7)])
    other = translated(found, np.array([1, -1, 0]))
    assert other.class_ids.tolist() == [1, 0]
    assert other.boxes_xyxy_px[:, 0].tolist() == [0, 2]
    assert other.confidences.tolist() == pytest.approx([0.9, 0.7])


@pytest.mark.parametrize(("objective", "preferred"), [("ap_50", 0.5), ("map", 1.0)])
def test_the_blend_with_the_better_objective_is_preferred(objective, preferred, recorder, monkeypatch):
    weights = Weights()
    on_val = {0.5: {"ap_50": 0.8, "map": 0.3}, 1.0: {"ap_50": 0.7, "map": 0.4}}
    monkeypatch.setattr(judge_module, "evaluate_records", lambda *_: on_val[weights.share])
    config = config_of(evaluate={"objective": objective, "blend": [0.5, 1.0]})
    task: Any = SimpleNamespace()
    verdict = DefectJudge(config, task, CLASSES, [], recorder).trained(weights, "evaluation")
    assert verdict.blend == preferred
    assert verdict.objective == on_val[preferred][objective]
    assert verdict.entry(7)["setting"]["tile"] == 256


def test_an_undefined_objective_never_wins(recorder, monkeypatch):
    found = iter([BASELINE, {**BEST, "ap_50": None}])
    monkeypatch.setattr(judge_module, "evaluate_records", lambda *_: next(found))
    task: Any = SimpleNamespace()
    judge = DefectJudge(config_of(), task, CLASSES, [], recorder)
    baseline = judge.baseline(judge.as_shipped())
    assert judge.preference(judge.trained(Weights(), "evaluation")) < judge.preference(baseline)
