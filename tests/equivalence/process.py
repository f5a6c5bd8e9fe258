"""One of the processes of tests/equivalence/test_processes.py; started by paddle's launcher, never on its own.

Usage: process.py METHOD OUT.npz [fail]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import paddle

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pipelines.engine.distributed import join_processes
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.records import MicroBatch
from tests.factories import blank_samples, split, toy_samples, toy_task

NUM_UPDATES = 3


def micro_batches(seed: int) -> list[MicroBatch]:
    """A window of five uneven micro-batches, the last two without anything marked."""
    return split([*toy_samples(7, seed=seed), *blank_samples(3, seed=seed)], (2, 3, 2, 1, 2))


def train(exact_by: str, rank: int, num_processes: int) -> dict[str, np.ndarray]:
    """Weights and loss after three updates on this process's share; process 0 has fewer micro-batches than 1."""
    processes = join_processes()
    task = toy_task(exact_by)
    groups = [ParameterGroup("all", task.network.parameters())]
    updater = Updater(task, groups, LearningRateSchedule(1e-2, NUM_UPDATES), clip_norm=0.5, processes=processes)
    for seed in range(NUM_UPDATES):
        window = micro_batches(seed)
        report = updater.run([window[:2], window[2:]][rank] if num_processes == 2 else window)
    weights = {name: value.numpy().copy() for name, value in task.network.state_dict().items()}
    return {**weights, "loss": np.array(report.parts["loss"]), "norm": np.array(report.gradient_norm)}


def main() -> None:
    exact_by, out, *fails = sys.argv[1:]
    paddle.set_device("cpu")
    rank, num_processes = paddle.distributed.get_rank(), paddle.distributed.get_world_size()
    if fails and rank == 1:
        join_processes()
        raise MemoryError("out of memory in one process only")
    np.savez(Path(out).with_suffix(f".{rank}.npz"), **train(exact_by, rank, num_processes))


if __name__ == "__main__":
    main()
