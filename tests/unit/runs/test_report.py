"""From a run folder to its page: what is missing is told, what is half written is passed over.

Run: pytest tests/unit/runs/test_report.py
"""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.config import dump_config, load_config
from pipelines.dataset import format_coco
from pipelines.errors import OutOfMemoryError, UsageError
from pipelines.records import DefectPrediction, Record
from pipelines.report import RunResult
from pipelines.runs.defects.page import DefectPage
from pipelines.runs.report import changed_images, report
from pipelines.runs.reporter import Quiet
from tests.unit.report.run_values import log_line
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
from tests.unit.runs.stand_ins import Detector
from tests.unit.runs.text.text_metrics import metrics


class Notes(Quiet):
    """Keeps the warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def run(tmp_path: Path, repository: Path) -> Path:
    """A run folder whose dataset is gone; training won, the last log line was cut off."""
    config = load_config(
        repository / "configs" / "text_detection" / "smoke.yml",
        [f"data.root={json.dumps(str(tmp_path / 'gone'))}", "data.synthetic=null", "train.updates=16"],
    )
    setting = config.evaluate.setting.model_dump()
    tuned = {**setting, "unclip_ratio": 1.2}
    content = {
        "shipped": metrics(0.7, 0.6, setting),
        "baseline": metrics(0.8, 0.7, tuned),
        "best": metrics(0.9, 0.8, tuned, update=8),
        "evaluations": [metrics(0.9, 0.8, update=8)],
    }
    folder = tmp_path / "run"
    (folder / "model").mkdir(parents=True)
    (folder / "config.yml").write_text(dump_config(config), encoding="utf-8")
    (folder / "metrics.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "log.jsonl").write_text(json.dumps(log_line(1)) + '\n{"update": 2, "loss"', encoding="utf-8")
    return folder


def test_without_the_dataset_the_page_is_written_and_says_why_it_has_no_pictures(run: Path) -> None:
    notes = Notes()
    file = report(run, notes)
    text = file.read_text(encoding="utf-8")
    assert file == run / "report.html"
    assert "Training added +0.100" in text
    assert "60 configured, 1 done" not in text
    assert "16 updates configured, 1 done" in text
    assert "No pictures:" in text
    assert len(notes.warnings) == 1
    assert "gone" in notes.warnings[0]


def test_the_parity_of_a_model_exported_below_the_run_is_shown(run: Path) -> None:
    assert "Not exported yet" in report(run, Quiet()).read_text(encoding="utf-8")
    parity = {"num_ours": 7, "num_theirs": 7, "num_equal": 7, "share": 1.0, "min_iou": 0.99, "min_share": 0.98}
    (run / "model" / "parity.json").write_text(json.dumps({**parity, "ok": True}), encoding="utf-8")
    assert "7 pairs with IoU of at least 0.99 of 7 boxes" in report(run, Quiet()).read_text(encoding="utf-8")


def test_a_folder_that_is_no_run_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no run folder: it has no metrics\.json"):
        report(tmp_path, Quiet())


def by_grey(found: dict[int, DefectPrediction]) -> Detector:
    """Its findings follow from the grey of an image; in any other it finds nothing."""
    return Detector(lambda image: found.get(int(image[0, 0, 0]), prediction_of([])))


class Wiring:
    """Stands in for a wiring of two tasks: the untouched weights, and those of the run."""

    def __init__(self, root: Path, records: list[Record], untouched: Detector, trained: Detector):
        self.config = config_of(data={"root": root})
        self.page = DefectPage(self.config)
        self._records, self._untouched, self._trained = records, untouched, trained

    def records(self, split: str) -> list[Record]:
        assert split == "val"
        return self._records

    def setting_from(self, values: dict[str, object]) -> dict[str, object]:
        return values

    def build_task(self, setting: object, weights: str | None = None) -> Detector:
        return self._untouched if weights is None else self._trained


@pytest.fixture
def four_images(tmp_path: Path) -> list[Record]:
    """Grey 10 and 20 have defects, 30 and 40 are OK."""
    (tmp_path / "images").mkdir()
    records = []
    for number, labels in enumerate(LABELS):
        image = np.full((*SIZE_HW, 3), 10 * (number + 1), np.uint8)
        cv2.imwrite(str(tmp_path / "images" / f"{number}.png"), image)
        records.append(Record(f"images/{number}.png", SIZE_HW, annotation_of(labels)))
    (tmp_path / "val.json").write_text(format_coco(records, CLASSES), encoding="utf-8")
    (tmp_path / "train.json").write_text(format_coco(records[:1], CLASSES), encoding="utf-8")
    return records


def test_images_whose_labels_changed_come_first_then_those_with_other_false_alarms(tmp_path, four_images):
    two = prediction_of([(box, class_id, 0.9) for box, class_id in LABELS[1]])
    alarm = prediction_of([((0, 0, 20, 20), 0, 0.9)])
    unsure = prediction_of([((0, 0, 20, 20), 0, 0.3)])
    untouched = by_grey({30: alarm, 40: unsure})
    wiring = Wiring(tmp_path, four_images, untouched, by_grey({20: two}))
    stage = {"setting": {}, "threshold": 0.5, "per_class": dict.fromkeys(CLASSES)}
    metrics = {"shipped": stage, "baseline": stage, "best": {**stage, "update": 8}}
    result = RunResult({}, metrics, "AP50", [], 0.001)
    first, second = changed_images(tmp_path, wiring, result, Quiet())
    # both labels of image 1 found; the alarm of image 2 gone; the unsure box of image 3 was never shown
    assert (first.name, second.name) == ("images/1.png", "images/2.png")
    assert first.before.counts("defects") == "0 of 2 defects found, 0 boxes fit none"
    assert first.after.counts("defects") == "2 of 2 defects found, 0 boxes fit none"
    assert first.image[0, 0, 0] == 20
    assert (second.before.is_wrong.sum(), second.after.is_wrong.sum()) == (1, 0)


def test_two_models_that_find_the_same_leave_nothing_to_show(tmp_path, four_images):
    same = by_grey({10: prediction_of([((0, 0, 20, 20), 0, 0.9)])})
    stage = {"setting": {}, "threshold": 0.5, "per_class": dict.fromkeys(CLASSES)}
    result = RunResult({}, {"shipped": stage, "baseline": stage, "best": {**stage, "update": 8}}, "AP50", [], 0.001)
    assert changed_images(tmp_path, Wiring(tmp_path, four_images, same, same), result, Quiet()) == []


def test_pictures_that_find_no_memory_are_a_typed_error_which_the_page_says_instead(tmp_path, four_images):
    def refuse(image: np.ndarray) -> DefectPrediction:
        raise MemoryError

    full = Detector(refuse)
    stage = {"setting": {}, "threshold": 0.5, "per_class": dict.fromkeys(CLASSES)}
    result = RunResult({}, {"shipped": stage, "baseline": stage, "best": {**stage, "update": 8}}, "AP50", [], 0.001)
    with pytest.raises(OutOfMemoryError, match=r"\.png: drawing what the model finds needs more memory"):
        changed_images(tmp_path, Wiring(tmp_path, four_images, full, full), result, Quiet())


def test_the_page_of_a_defect_run_comes_the_same_way(tmp_path: Path):
    config = config_of(data={"root": tmp_path / "gone"}, run={"root": tmp_path})
    (tmp_path / "config.yml").write_text(dump_config(config), encoding="utf-8")
    content = {"shipped": BASELINE, "baseline": BASELINE, "best": BEST, "evaluations": [BEST]}
    (tmp_path / "metrics.json").write_text(json.dumps(content), encoding="utf-8")
    notes = Notes()
    text = report(tmp_path, notes).read_text(encoding="utf-8")
    assert "to the AP50 of the starting weights" in text
    assert "No pictures:" in text and "gone" in notes.warnings[0]
