"""The command line itself: commands and help, exit codes, JSON files; what commands do is tested where it is done.

Run: pytest tests/unit/test_cli.py
"""

from __future__ import annotations

import json
import runpy
import signal
import sys
from pathlib import Path

import pytest

from pipelines import cli
from pipelines.errors import DataError, Interrupted, UsageError, WeightsError

COMMANDS = ("prepare", "check", "synthesize", "train", "evaluate", "verify", "export", "predict", "report", "doctor")


def exit_code_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    return int(stopped.value.code or 0)


def test_help_lists_every_command(capsys):
    assert exit_code_of("--help") == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert f" {command} " in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    assert exit_code_of(command, "--help") == 0
    assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fault", "exit_code"),
    [
        (UsageError("a wrong option"), 2),
        (DataError("a bad image"), 1),
        (WeightsError("other weights"), 1),
        (Interrupted("stopped after update 3", 2), 130),
        (Interrupted("stopped after update 3", 15), 143),
    ],
)
def test_a_fault_is_one_message_on_stderr_and_its_exit_code(fault, exit_code, monkeypatch, capsys):
    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("pipelines.runs.data.check", fail)
    assert exit_code_of("check", "anything") == exit_code
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"error: {fault}\n")


def test_ctrl_c_outside_a_training_is_130_without_traceback(monkeypatch, capsys):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipelines.runs.data.check", interrupt)
    assert exit_code_of("check", "anything") == 130
    assert "Traceback" not in capsys.readouterr().err


def test_sigterm_unwinds_a_command_so_that_it_can_clear_up_and_is_143(monkeypatch, capsys):
    cleared = []

    def work(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            cleared.append("half a dataset")

    monkeypatch.setattr("pipelines.runs.data.check", work)
    before = signal.getsignal(signal.SIGTERM)
    assert exit_code_of("check", "anything") == 143
    assert cleared and signal.getsignal(signal.SIGTERM) == before
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_the_program_is_not_hidden_as_a_users_mistake(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("pipelines.runs.data.check", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["check", "anything"])


def test_json_is_what_the_command_found_and_the_exit_code_stays(tmp_path, monkeypatch):
    found = {"ok": False, "root": tmp_path, "counts": {"图": 1}}
    monkeypatch.setattr("pipelines.runs.data.check", lambda *_, **__: found)
    assert exit_code_of("check", "anything", "--json", str(tmp_path / "check.json")) == 1
    assert json.loads((tmp_path / "check.json").read_text(encoding="utf-8")) == {**found, "root": str(tmp_path)}


def test_there_is_a_file_under_tools_for_every_command_and_it_runs_that_command(repository, monkeypatch, capsys):
    files = {path.stem for path in (repository / "tools").glob("*.py")}
    # synthesize came with this package: nobody has it in the fingers as a tool
    assert set(COMMANDS) - {"synthesize"} <= files
    monkeypatch.setattr(sys, "argv", ["check.py", "no such dataset"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(repository / "tools" / "check.py"), run_name="__main__")
    assert stopped.value.code == 1
    assert "no such dataset" in capsys.readouterr().err


def test_paths_keep_their_spaces_and_letters(tmp_path: Path, monkeypatch):
    seen: list[Path] = []
    monkeypatch.setattr("pipelines.runs.data.check", lambda root, *_, **__: seen.append(root) or {"ok": True})
    assert exit_code_of("check", str(tmp_path / "发票 2024")) == 0
    assert seen == [tmp_path / "发票 2024"]
