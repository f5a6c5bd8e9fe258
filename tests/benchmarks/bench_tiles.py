"""Time of merging the detections of 300 overlapping tiles with 300 boxes each, on one core.

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_tiles.py

The boxes lie at random, so about one in three meets a seam; one class for all is the hardest case. The
same tiles shuffled must give the same detections, or the figures mean nothing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout that is not installed

from pipelines.records import DefectPrediction
from pipelines.tiles import Window, merge_tiles, tile_grid

TILE_PX, OVERLAP_PX = 640, 128
SIZE_HW = (TILE_PX + 14 * 512, TILE_PX + 19 * 512)  # 15 x 20 tiles
NUM_BOXES = 300
REPEATS = 5


def detections(rng: np.random.Generator, num_classes: int, mean_side_px: float) -> DefectPrediction:
    """Boxes at random places of one tile, sides between half and one and a half times the mean."""
    centre = rng.uniform(0, TILE_PX, (NUM_BOXES, 2))
    half = rng.uniform(mean_side_px / 4, mean_side_px * 3 / 4, (NUM_BOXES, 2))
    boxes = np.concatenate((np.maximum(centre - half, 0), np.minimum(centre + half, TILE_PX)), axis=1)
    return DefectPrediction(boxes, rng.integers(0, num_classes, NUM_BOXES), rng.random(NUM_BOXES))


def measure(windows: list[Window], num_classes: int, mean_side_px: float) -> tuple[int, list[float]]:
    """Detections left, and CPU seconds of each repeat."""
    rng = np.random.default_rng(1)
    tiles = [detections(rng, num_classes, mean_side_px) for _ in windows]
    expected = merge_tiles(tiles, windows, SIZE_HW)
    order = rng.permutation(len(windows)).tolist()
    shuffled = merge_tiles([tiles[i] for i in order], [windows[i] for i in order], SIZE_HW)
    if not np.array_equal(shuffled.boxes_xyxy_px, expected.boxes_xyxy_px):
        sys.exit("the order of tiles changed the result, so the times can't be compared")
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        merge_tiles(tiles, windows, SIZE_HW)
        seconds.append(time.process_time() - start)
    return len(expected), seconds


def main() -> None:
    """Print a row a case."""
    windows = tile_grid(SIZE_HW, (TILE_PX, TILE_PX), OVERLAP_PX)
    print(f"{len(windows)} tiles of {TILE_PX} px, overlap {OVERLAP_PX}, {NUM_BOXES} boxes each, {REPEATS} repeats")
    for num_classes, mean_side_px in ((6, 40), (6, 120), (1, 40), (1, 80)):
        left, seconds = measure(windows, num_classes, mean_side_px)
        case = f"{num_classes} classes, mean side {mean_side_px:3} px"
        print(f"{case}: {left} detections, {min(seconds):.2f} to {max(seconds):.2f} s")


if __name__ == "__main__":
    main()
