"""Checkpoints at update boundaries: written whole or not at all, the last k kept."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paddle

from pipelines.engine.update import Updater

_PREFIX = "update_"


def save_checkpoint(
    folder: Path, updater: Updater, network: paddle.nn.Layer, position: dict[str, Any], keep: int
) -> Path:
    """Write `folder/update_N` with everything a run needs to go on, then drop all but the last `keep`.

    Args:
        folder: the run's checkpoints folder.
        updater: its optimizer, loss scale, average and count are stored.
        network: raw weights (`weights.pdparams`); the average goes to `ema.pdparams`.
        position: where the loader stands: epoch, window, seed.
        keep: how many checkpoints stay; at least 1.
    """
    if keep < 1:
        raise ValueError(f"keep must be at least 1, but got {keep}")
    target = folder / f"{_PREFIX}{updater.num_updates}"

    def write(into: Path) -> None:
        paddle.save(network.state_dict(), str(into / "weights.pdparams"))
        paddle.save(updater.optimizer.state_dict(), str(into / "optimizer.pdopt"))
        state = {"update": updater.num_updates, "loss_scale": updater.loss_scale.state(), "position": position}
        if updater.ema is not None:
            with updater.ema.applied():
                paddle.save(network.state_dict(), str(into / "ema.pdparams"))
            state["ema_updates"] = updater.ema.num_updates
        (into / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")

    write_folder(target, write)
    for old in checkpoints(folder)[:-keep]:
        shutil.rmtree(old)
    return target


def save_weights(folder: Path, network: paddle.nn.Layer, description: dict[str, Any]) -> None:
    """Write `folder` with `weights.pdparams` and what they are, replacing an earlier version of the same folder."""

    def write(into: Path) -> None:
        paddle.save(network.state_dict(), str(into / "weights.pdparams"))
        (into / "description.json").write_text(json.dumps(description, indent=1), encoding="utf-8")

    write_folder(folder, write)


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints of a run, oldest first."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if path.name.startswith(_PREFIX) and (path / "state.json").is_file()]
    return sorted(found, key=lambda path: int(path.name.removeprefix(_PREFIX)))


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
