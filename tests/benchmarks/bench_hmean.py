"""Time of scoring one page of 54 text regions at three IoU thresholds: the pairwise loop against `TextScorer`.

    python tests/benchmarks/bench_hmean.py

The loop is what PaddleOCR's DetectionIoUEvaluator does: two shapely polygons built, intersected and united for
each pair, and all of it again for each threshold. Both must count the same, or the figures mean nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import shapely

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout that is not installed

from pipelines.evaluation.text import score_image
from pipelines.records import TextAnnotation, TextPrediction, TextRegion

THRESHOLDS = (0.5, 0.7, 0.8)
NUM_REGIONS = 54


def page(rng: np.random.Generator) -> tuple[TextPrediction, TextAnnotation]:
    """Text lines in two columns of a 1200 x 900 page, one in ten ignored; predictions a few pixels off."""
    row, column = np.divmod(np.arange(NUM_REGIONS), 2)
    corner = np.stack([40 + 430 * column, 30 + 42 * row], axis=1)[:, None, :]
    size = np.stack([rng.uniform(60, 400, NUM_REGIONS), rng.uniform(14, 28, NUM_REGIONS)], axis=1)[:, None, :]
    quads = corner + np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * size
    regions = tuple(TextRegion(quad, is_ignored=index % 10 == 0) for index, quad in enumerate(quads))
    noisy = (quads + rng.normal(0, 1.5, quads.shape)).astype(np.float32)
    return TextPrediction(tuple(noisy), np.ones(NUM_REGIONS, dtype=np.float32)), TextAnnotation(regions)


def loop_matches(prediction: TextPrediction, annotation: TextAnnotation, threshold: float) -> int:
    """Matches at one threshold, pair by pair."""

    def intersection(first: np.ndarray, second: np.ndarray) -> float:
        return float(shapely.Polygon(first).intersection(shapely.Polygon(second)).area)

    def union(first: np.ndarray, second: np.ndarray) -> float:
        return float(shapely.Polygon(first).union(shapely.Polygon(second)).area)

    polygons, regions = prediction.polygons_px, annotation.regions
    ignored_px = [region.points_px for region in regions if region.is_ignored]
    on_ignored = [
        any(intersection(points, polygon) / shapely.Polygon(polygon).area > 0.5 for points in ignored_px)
        for polygon in polygons
    ]
    iou = [[intersection(r.points_px, p) / union(r.points_px, p) for p in polygons] for r in regions]
    taken: set[int] = set()
    for index, region in enumerate(regions):
        free = (k for k, value in enumerate(iou[index]) if value > threshold and k not in taken and not on_ignored[k])
        if not region.is_ignored:
            taken.update([k for k in (next(free, None),) if k is not None])
    return len(taken)


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Least wall time of a call, ms: the one that other processes disturbed least."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds) * 1000


def main() -> None:
    prediction, annotation = page(np.random.default_rng(0))
    expected = [loop_matches(prediction, annotation, threshold) for threshold in THRESHOLDS]
    counted = score_image(prediction, annotation, THRESHOLDS).num_matched.tolist()
    if counted != expected:
        sys.exit(f"the two disagree, so their times can't be compared: loop {expected}, scorer {counted}")
    loop_ms = milliseconds(lambda: [loop_matches(prediction, annotation, t) for t in THRESHOLDS], repeats=5)
    scorer_ms = milliseconds(lambda: score_image(prediction, annotation, THRESHOLDS), repeats=50)
    print(f"{NUM_REGIONS} regions, {NUM_REGIONS} predictions, IoU {THRESHOLDS}: matches {counted}")
    print(f"pairwise loop {loop_ms:8.1f} ms\nTextScorer    {scorer_ms:8.2f} ms")
    print(f"ratio         {loop_ms / scorer_ms:8.0f} x")


if __name__ == "__main__":
    main()
