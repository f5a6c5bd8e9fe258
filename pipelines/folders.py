"""Folders and small files that are there as a whole or not at all, also when an earlier version is replaced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path


def write_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Fill a sibling folder, then put it in `target`'s place: a kill at any moment leaves a whole version.

    No file system call swaps two folders portably, so replacing takes two renames; a kill right between them leaves
    the earlier version as `.NAME.previous`, and `recover_folder` (called here too) puts it back.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    recover_folder(target)
    fresh, previous = _sibling(target, "partial"), _sibling(target, "previous")
    fresh.mkdir()
    try:
        write(fresh)
        _flush(fresh)
        if target.exists():
            os.replace(target, previous)
        os.replace(fresh, target)
    except BaseException:
        recover_folder(target)
        raise
    shutil.rmtree(previous, ignore_errors=True)


def recover_folder(target: Path) -> None:
    """Undo what an interrupted `write_folder` left: bring back the earlier version, drop what is not whole."""
    restore_previous(target)
    for leftover in (_sibling(target, "previous"), _sibling(target, "partial")):
        if leftover.exists():
            shutil.rmtree(leftover)


def restore_previous(target: Path) -> None:
    """Bring back the earlier version if a kill left nothing in its place; safe beside a run that is writing."""
    previous = _sibling(target, "previous")
    if previous.exists() and not target.exists():
        os.replace(previous, target)


def write_text(path: Path, text: str) -> None:
    """Write a small file whole or not at all."""
    fresh = path.with_name(f".{path.name}.partial")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


def _sibling(target: Path, role: str) -> Path:
    return target.parent / f".{target.name}.{role}"


def _flush(folder: Path) -> None:
    """Have the disk hold the files before a rename says that it does."""
    for path in folder.iterdir():
        with path.open("rb") as handle:
            os.fsync(handle.fileno())
