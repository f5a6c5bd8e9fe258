"""Whether host memory stays flat: resident size of a training process and its loader workers, update by update.

Run:
    python tests/benchmarks/bench_host_memory.py -c CONFIG [--updates 100] [-o section.key=value ...]

Takes the configuration's own loader, network and updater; nothing is evaluated or written. Resident sizes are what the
system says (RSS) after each update, of this process and of all workers; `tensors` is what Paddle's allocator holds.
Exit code 1 when the resident size of the last fifth of the updates is more than 5 % above that of the second fifth:
take enough updates that the workers' image cache (512 MiB) is full by then.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pipelines.config import load_config
from pipelines.engine.loop import run_updates
from pipelines.engine.memory import held_bytes
from pipelines.runs.assemble import build_updater
from pipelines.runs.reporter import Quiet
from pipelines.runs.wiring import wiring_of

GROWTH_BOUND = 1.05


@dataclass(frozen=True)
class Sizes:
    """Bytes after one update: of this process, of its workers together, and of tensors."""

    process: int
    workers: int
    tensors: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", "--config", type=Path, required=True)
    parser.add_argument("-o", "--override", action="append", default=[])
    parser.add_argument("--updates", type=int, default=100)
    arguments = parser.parse_args()
    sizes = train(arguments.config, arguments.override, arguments.updates)
    fifth = len(sizes) // 5
    early, late = sizes[fifth : 2 * fifth], sizes[-fifth:]
    print(f"{'MiB, median':12}{'second fifth':>14}{'last fifth':>12}{'ratio':>8}{'most':>8}")
    grows = False
    for name in ("process", "workers", "tensors"):
        before, after = (median(getattr(one, name) for one in part) for part in (early, late))
        most = max(getattr(one, name) for one in sizes)
        ratio = after / before if before else 1.0
        grows |= ratio > GROWTH_BOUND and name != "tensors"
        print(f"{name:12}{before / 2**20:14.0f}{after / 2**20:12.0f}{ratio:8.3f}{most / 2**20:8.0f}")
    for name in ("process", "workers"):
        tenths = [getattr(sizes[len(sizes) * part // 10 - 1], name) / 2**20 for part in range(1, 11)]
        print(f"{name}, MiB after each tenth: {' '.join(f'{tenth:.0f}' for tenth in tenths)}")
    return int(grows)


def train(config_file: Path, overrides: list[str], updates: int) -> list[Sizes]:
    """Sizes after each of the updates."""
    config = load_config(config_file, overrides)
    reporter = Quiet()
    wiring = wiring_of(config, reporter)
    samples = wiring.samples(wiring.records("train"))
    setting = wiring.configured_setting()
    task = wiring.build_task(setting)
    updater, _ = build_updater(config, task, wiring.parameter_groups(task), samples.num_an_epoch, reporter)
    sizes = []
    with wiring.window_loader(samples, setting) as loader:
        for _ in run_updates(updater, loader, updates):
            process = psutil.Process()
            workers = sum(child.memory_info().rss for child in process.children(recursive=True))
            sizes.append(Sizes(process.memory_info().rss, workers, held_bytes()))
    return sizes


if __name__ == "__main__":
    sys.exit(main())
