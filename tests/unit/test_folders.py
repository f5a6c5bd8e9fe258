"""Folders and files are replaced whole, whatever interrupts.

pytest tests/unit/test_folders.py
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pipelines import folders
from pipelines.folders import recover_folder, restore_previous, write_folder, write_text


def write_version(version: str) -> Any:
    return lambda folder: (folder / "version").write_text(version)


@pytest.mark.parametrize("rename", [0, 1])
def test_a_kill_at_either_rename_leaves_a_whole_version_that_recovery_finds(
    rename: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = tmp_path / "best"
    write_folder(best, write_version("old"))
    renames: list[Any] = []

    class Killed(BaseException):
        """Stands for a process that is gone: nothing after it runs."""

    original = os.replace

    def replace(source: Any, target: Any) -> None:
        if len(renames) == rename:
            raise Killed
        renames.append((source, target))
        original(source, target)

    monkeypatch.setattr(folders.os, "replace", replace)
    monkeypatch.setattr(folders, "recover_folder", lambda target: None)
    with pytest.raises(Killed):
        write_folder(best, write_version("new"))
    monkeypatch.undo()
    recover_folder(best)
    assert (best / "version").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["best"]
    write_folder(best, write_version("new"))
    assert (best / "version").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


def test_a_small_file_is_replaced_whole(tmp_path: Path) -> None:
    for text in ("one", "two"):
        write_text(tmp_path / "metrics.json", text)
    assert (tmp_path / "metrics.json").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]


def test_a_reader_brings_back_the_earlier_version_and_leaves_a_writer_alone(tmp_path: Path) -> None:
    (tmp_path / ".best.previous").mkdir()
    (tmp_path / ".best.partial").mkdir()
    restore_previous(tmp_path / "best")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".best.partial", "best"]
