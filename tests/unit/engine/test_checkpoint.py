"""Checkpoints are whole or not there, the last k are kept, and they hold what a run needs to go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest

from pipelines.engine import checkpoint
from pipelines.engine.checkpoint import checkpoints, save_checkpoint, save_weights
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater
from tests.factories import ToyTask, split, toy_samples, toy_task


def trained(num_updates: int = 1, **options: Any) -> tuple[ToyTask, Updater]:
    task = toy_task("labels", dtype="float32")
    group = ParameterGroup("all", task.network.parameters())
    updater = Updater(task, [group], LearningRateSchedule(1e-2, 10), **options)
    for seed in range(num_updates):
        updater.run(split(toy_samples(4, seed=seed), (2, 2)))
    return task, updater


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_checkpoint_holds_weights_optimizer_average_scale_and_position(tmp_path: Path) -> None:
    task, updater = trained(3, ema_decay=0.9)
    target = save_checkpoint(tmp_path, updater, task.network, {"epoch": 1, "window": 2}, keep=2)
    assert target == tmp_path / "update_3"
    state = json.loads((target / "state.json").read_text())
    assert (state["update"], state["ema_updates"], state["position"]) == (3, 3, {"epoch": 1, "window": 2})
    assert state["loss_scale"] == updater.loss_scale.state()
    raw, average = paddle.load(str(target / "weights.pdparams")), paddle.load(str(target / "ema.pdparams"))
    for name, value in task.network.state_dict().items():
        assert np.array_equal(raw[name].numpy(), value.numpy())
    with updater.averaged():
        for name, value in task.network.state_dict().items():
            assert np.array_equal(average[name].numpy(), value.numpy())
    assert not np.array_equal(raw["last.weight"].numpy(), average["last.weight"].numpy())
    # two moments and two powers of beta a parameter
    assert len([name for name in paddle.load(str(target / "optimizer.pdopt")) if "moment" in name]) == 2 * 4


def test_only_the_last_k_stay_in_order_of_updates_not_of_names(tmp_path: Path) -> None:
    task, updater = trained()
    for updater.num_updates in (8, 9, 10, 11):
        save_checkpoint(tmp_path, updater, task.network, {}, keep=2)
    assert [path.name for path in checkpoints(tmp_path)] == ["update_10", "update_11"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["update_10", "update_11"]


def test_keeping_none_is_refused_not_taken_for_all(tmp_path: Path) -> None:
    task, updater = trained()
    with pytest.raises(ValueError, match="at least 1, but got 0"):
        save_checkpoint(tmp_path, updater, task.network, {}, keep=0)


def test_a_failure_in_the_middle_leaves_the_earlier_version_whole_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, updater = trained(ema_decay=0.9)
    save_checkpoint(tmp_path, updater, task.network, {"epoch": 0}, keep=2)
    before = contents(tmp_path / "update_1")
    monkeypatch.setattr(checkpoint.json, "dumps", _disk_full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(tmp_path, updater, task.network, {"epoch": 1}, keep=2)
    updater.num_updates = 2
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(tmp_path, updater, task.network, {"epoch": 1}, keep=2)
    assert [path.name for path in tmp_path.iterdir()] == ["update_1"]
    assert contents(tmp_path / "update_1") == before


def _disk_full(*arguments: Any, **options: Any) -> str:
    raise OSError(28, "No space left on device")


def test_leftovers_of_a_kill_are_no_checkpoints(tmp_path: Path) -> None:
    (tmp_path / ".update_7.partial").mkdir()
    (tmp_path / "update_9").mkdir()
    assert checkpoints(tmp_path) == []
    assert checkpoints(tmp_path / "nowhere") == []


def test_the_best_weights_say_what_they_are_and_replace_the_earlier_best(tmp_path: Path) -> None:
    task, updater = trained(ema_decay=0.9)
    for update in (4, 8):
        with updater.averaged():
            save_weights(tmp_path / "best", task.network, {"update": update, "kind": "ema"})
    assert json.loads((tmp_path / "best" / "description.json").read_text()) == {"update": 8, "kind": "ema"}
    loaded = paddle.load(str(tmp_path / "best" / "weights.pdparams"))
    with updater.averaged():
        assert np.array_equal(loaded["last.weight"].numpy(), task.network.last.weight.numpy())
