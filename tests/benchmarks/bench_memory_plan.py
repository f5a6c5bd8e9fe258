"""The memory plan against the peaks of real updates, shape by shape, for both tasks.

Run: python tests/benchmarks/bench_memory_plan.py -c configs/text_detection/smoke.yml [-o train.recompute=always]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pipelines.config import Config, load_config
from pipelines.runs.assemble import build_updater
from pipelines.runs.memory import budget_of, plan_training
from pipelines.runs.reporter import Quiet
from pipelines.runs.wiring import wiring_of

SHAPES = (
    (1, 320, 320), (2, 320, 320), (3, 320, 320), (4, 416, 288), (8, 224, 256), (1, 640, 640), (2, 640, 640),
    (1, 960, 704), (1, 704, 960), (2, 512, 800), (1, 1280, 320), (6, 192, 192), (1, 1152, 896), (5, 352, 320),
)  # fmt: skip
"""(number, height, width), none of them among those that the plan measures."""


def compare(config: Config, shapes: Sequence[tuple[int, int, int]] = SHAPES) -> list[tuple[int, int]]:
    """(planned, measured) peak bytes of an update of two micro-batches of each shape."""
    wiring = wiring_of(config, Quiet())
    setting, samples = wiring.configured_setting(), wiring.samples(wiring.records("train"))
    task = wiring.build_task(setting)
    updater, _ = build_updater(config, task, wiring.parameter_groups(task), samples.num_an_epoch, Quiet())
    found = []
    with wiring.window_loader(samples, setting) as loader:
        plan = plan_training(config, task, updater, loader, budget_of(config))
        updater.run([loader.blank(1, (64, 64))])  # the moments come with the first update
        for number, height, width in shapes:
            micro_batch = loader.blank(number, (height, width))
            report = updater.run([micro_batch, micro_batch])
            found.append((plan.peak_bytes(number, (height, width)), report.peak_bytes))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", required=True)
    parser.add_argument("-o", action="append", default=[])
    arguments = parser.parse_args()
    found = compare(load_config(Path(arguments.c), arguments.o))
    print("| micro-batch | planned MiB | measured MiB | off |\n|---|---|---|---|")
    for (number, height, width), (planned, measured) in zip(SHAPES, found, strict=True):
        off = planned / measured - 1
        print(f"| {number} x {height} x {width} | {planned / 2**20:.0f} | {measured / 2**20:.0f} | {off:+.1%} |")
    offs = sorted(abs(planned / measured - 1) for planned, measured in found)
    print(f"median {statistics.median(offs):.2%}, worst {offs[-1]:.2%} of {len(offs)}")


if __name__ == "__main__":
    main()
