"""Time to make the samples of a run's first windows, with and without keeping decoded images.

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_image_cache.py configs/defect_detection/ballscrew_tiles.yml ...

One process and one thread, as one loader worker; both make the same samples, in turn, or the figures mean nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout that is not installed

from pipelines.batching.image_cache import ImageCache
from pipelines.batching.loader import WindowLoader
from pipelines.batching.order import Position
from pipelines.batching.sampling import SampleJob, SampleMaker
from pipelines.config import load_config
from pipelines.records import Sample
from pipelines.runs.reporter import Quiet
from pipelines.runs.wiring import wiring_of


def main() -> None:
    """Print a row a configuration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", type=Path, nargs="+")
    parser.add_argument("--windows", type=int, default=9, help="the first third fills the cache and is not counted")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    for file in arguments.configs:
        fresh, kept = measure(loader_of(file), arguments.windows)
        print(
            f"{file.stem}: {fresh:.1f} ms a sample, with kept images {kept:.1f} ms ({fresh / kept:.1f} times as fast)"
        )


def loader_of(file: Path) -> WindowLoader:
    """The loader of a run, without workers."""
    wiring = wiring_of(load_config(file, ["batching.workers=0"]), Quiet())
    return wiring.window_loader(wiring.samples(wiring.records("train")), wiring.configured_setting())


def measure(loader: WindowLoader, num_windows: int) -> tuple[float, float]:
    """Median milliseconds a sample over the later windows, without and with kept images."""
    makers = [replace(loader._maker, read=ImageCache(0)), replace(loader._maker, read=ImageCache())]
    position, rows = Position(), []
    for _ in range(num_windows):
        jobs = loader.jobs(position)
        (fresh, one), (kept, other) = (timed(maker, jobs) for maker in makers)
        if not all(np.array_equal(a.image, b.image) for a, b in zip(one, other, strict=True)):
            sys.exit("kept images changed the samples, so the times can't be compared")
        rows.append((fresh / len(jobs), kept / len(jobs)))
        position = position.following(loader.windows_per_epoch)
    without, with_kept = np.median(rows[num_windows // 3 :], axis=0) * 1000
    return float(without), float(with_kept)


def timed(maker: SampleMaker, jobs: list[SampleJob]) -> tuple[float, list[Sample]]:
    """Seconds of CPU, and the samples."""
    started = time.process_time()
    samples = [maker(job) for job in jobs]
    return time.process_time() - started, samples


if __name__ == "__main__":
    main()
