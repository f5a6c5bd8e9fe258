"""The same updates with room and without: real networks under RLIMIT_AS, where the allocator truly fails.

Run: MALLOC_MMAP_THRESHOLD_=65536 python tests/benchmarks/bench_scarce_memory.py -c configs/text_detection/smoke.yml
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import paddle

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pipelines.config import Config, load_config
from pipelines.engine.memory import held_bytes
from pipelines.engine.update import UpdateReport
from pipelines.errors import OutOfMemoryError
from pipelines.records import MicroBatch
from pipelines.runs.assemble import build_updater
from pipelines.runs.reporter import Quiet
from pipelines.runs.wiring import wiring_of
from tests.address_space import leave_all_room, leave_room

NUM_UPDATES = 4


class _Loud(Quiet):
    def warn(self, text: str) -> None:
        print(f"  {text}")


@dataclass
class Run:
    """What a number of updates came to."""

    reports: list[UpdateReport]
    start: np.ndarray
    weights: np.ndarray
    seconds: float
    held: float


def run(config: Config, windows: list[list[MicroBatch]], room_bytes: int | None) -> Run:
    """Train on the windows, with `room_bytes` of new mappings from after the first update on."""
    wiring = wiring_of(config, Quiet())
    samples = wiring.samples(wiring.records("train"))
    task = wiring.build_task(wiring.configured_setting())
    updater, _ = build_updater(config, task, wiring.parameter_groups(task), samples.num_an_epoch, _Loud())
    start = weights_of(task.network)
    reports = [updater.run(windows[0])]
    held = held_bytes()
    if room_bytes is not None:
        leave_room(room_bytes)
    started = time.perf_counter()
    try:
        reports += [updater.run(window) for window in windows[1:]]
    finally:
        leave_all_room()
    seconds = time.perf_counter() - started
    return Run(reports, start, weights_of(task.network), seconds, held_bytes() / held)


def weights_of(network: paddle.nn.Layer) -> np.ndarray:
    """All parameters in one float64 vector."""
    return np.concatenate([value.numpy().ravel().astype(np.float64) for value in network.parameters()])


def first_windows(config: Config) -> list[list[MicroBatch]]:
    wiring = wiring_of(config, Quiet())
    setting = wiring.configured_setting()
    with wiring.window_loader(wiring.samples(wiring.records("train")), setting) as loader:
        windows = iter(loader)
        return [next(windows).micro_batches for _ in range(NUM_UPDATES)]


def difference(run: Run, reference: Run) -> float:
    """Of the weights, relative to how far the reference moved them."""
    moved = np.linalg.norm(reference.weights - reference.start)
    return float(np.linalg.norm(run.weights - reference.weights) / moved)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", required=True)
    parser.add_argument("-o", action="append", default=[])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.6, 0.35, 0.2, 0.12])
    arguments = parser.parse_args()
    config = load_config(Path(arguments.c), arguments.o)
    windows = first_windows(config)
    ones = first_windows(load_config(Path(arguments.c), [*arguments.o, "train.micro_batch=1"]))
    plenty = run(config, windows, None)
    spread = difference(run(config, ones, None), plenty)
    taken = max(report.peak_bytes for report in plenty.reports)
    print(f"with room: {plenty.seconds:.1f} s, peak {taken / 2**20:.0f} MiB; cut into ones: {spread:.1e} off")
    for share in arguments.shares:
        try:
            scarce = run(config, windows, int(share * taken))
        except OutOfMemoryError as error:
            print(f"room for {share:.0%} of the peak: {error}")
            continue
        last = scarce.reports[-1]
        print(
            f"room for {share:.0%} of the peak: {sum(r.failures for r in scarce.reports)} failures, pieces of"
            f" {sorted({shape[0] for shape in last.shapes})}, samples {sorted({r.samples for r in scarce.reports})},"
            f" {scarce.seconds / plenty.seconds:.2f} x the time, weights differ {difference(scarce, plenty):.1e},"
            f" held {scarce.held:.3f} x"
        )


if __name__ == "__main__":
    main()
