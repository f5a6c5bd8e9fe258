"""`make demo`, shrunk: every command is shown and run, an earlier run is kept, a failure is passed on.

Run: pytest tests/end_to_end/test_demo.py
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.end_to_end.tiny_run import REPOSITORY, TINY, as_options

DEMO = REPOSITORY / "tools" / "demo.py"
COMMANDS = ("train", "evaluate", "export", "predict", "report")


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The demo's functions, with an empty working folder."""
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "demo", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_demo_shows_and_runs_every_command_and_leaves_a_checked_model(tmp_path):
    done = subprocess.run(
        [sys.executable, DEMO, "text", *as_options(TINY)], cwd=tmp_path, env=os.environ, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800,
    )  # fmt: skip
    shown = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("$ wholebatch ")]
    assert shown == list(COMMANDS), done.stdout
    run = tmp_path / "runs" / "demo"
    has_won = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["best"]["update"] > 0
    # three updates on tiny crops may or may not help; whichever it is, the demo says so
    assert done.returncode == (0 if has_won else 1), done.stdout
    assert ("did not beat what it started from, so" in done.stdout) is not has_won
    assert json.loads((run / "model" / "parity.json").read_text(encoding="utf-8"))["ok"]
    assert (run / "report.html").is_file() and len(list((run / "predictions").glob("*.jpg"))) == 3
    assert "GiB of memory" in done.stdout and "Traceback" not in done.stdout


def test_earlier_runs_are_numbered_and_kept(demo, capsys):
    run_folder = demo.DEMOS["text"].run
    for content in ("first", "second", "third"):
        demo.set_aside(run_folder)
        run_folder.mkdir(parents=True)
        (run_folder / "notes.txt").write_text(content)
    kept = {path.name: (path / "notes.txt").read_text() for path in run_folder.parent.iterdir()}
    assert kept == {"demo.1": "first", "demo.2": "second", "demo": "third"}
    assert f"the earlier {run_folder} is now {run_folder}.2" in capsys.readouterr().out


def test_the_first_command_that_fails_ends_the_demo_with_its_exit_code(demo, monkeypatch, capsys):
    ran: list[str] = []

    def run(command: list[object]) -> int:
        ran.append(str(command[0]))
        return 2 if command[0] == "evaluate" else 0

    monkeypatch.setattr(demo, "run", run)
    assert demo.main(["text"]) == 2
    assert ran == ["train", "evaluate"]
    assert "`wholebatch evaluate` ended with exit code 2" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["tekst"]])
def test_a_demo_of_no_known_task_is_refused_with_the_known_ones(arguments, demo, capsys):
    assert demo.main(arguments) == 2
    assert "expected text or defect first" in capsys.readouterr().err
