"""Checkpoints at update boundaries: written whole or not at all, the last k kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import paddle

from pipelines.engine.update import Updater
from pipelines.folders import write_folder

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
