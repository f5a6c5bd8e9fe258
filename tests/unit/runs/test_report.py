"""From a run folder to its page: what is missing is told, what is half written is passed over.

Run: pytest tests/unit/runs/test_report.py
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.config import dump_config, load_config
from pipelines.errors import UsageError
from pipelines.runs.report import report
from pipelines.runs.reporter import Quiet
from tests.unit.report.run_values import log_line
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
