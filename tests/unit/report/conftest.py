"""A run's result made by hand: two size buckets, three evaluations, a log of three updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipelines.records import TextAnnotation, TextPrediction, TextRegion
from pipelines.report import ChangedImage, Findings, RunResult

SHIPPED = {"limit_side": 960, "binary_threshold": 0.3, "box_threshold": 0.6, "unclip_ratio": 1.5}
TUNED = {**SHIPPED, "limit_side": 1600, "unclip_ratio": 1.2}


def metrics(
    small: float | None, large: float | None, setting: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """hmean `small` and `large` at IoU .5; .1 less at .7 and .2 less at .8."""

    def values(hmean: float | None, num_images: int) -> dict[str, Any]:
        cells: dict[str, Any] = {"num_images": num_images, "num_regions": 50, "num_ignored_regions": 3}
        for percent, less in ((50, 0.0), (70, 0.1), (80, 0.2)):
            value = None if hmean is None else hmean - less
            cells |= {f"{name}_{percent}": value for name in ("hmean", "precision", "recall")}
        return cells

    by_bucket = {"under 4000 px": values(small, 20), "4000 px and more": values(large, 4)}
    means = [hmean - 0.1 for hmean in (small, large) if hmean is not None]
    return {
        **values(small, 24),
        "by_bucket": by_bucket,
        "setting": setting,
        "mean_hmean": float(np.mean(means)),
        **more,
    }


def log_line(update: int, **more: Any) -> dict[str, Any]:
    line = {"update": update, "epoch": 0, "samples": 32, "micro_batches": 16, "shapes": [[2, 320, 320]], "loss": 2.0}
    line |= {"loss_shrink": 0.2, "loss_threshold": 0.1, "lr": 1e-3, "grad_norm": 5.0, "loss_scale": 1.0}
    return {**line, "skipped": False, "seconds": 15.0, "data_seconds": 1.0, "peak_bytes": 3 * 2**29, **more}


CONFIG: dict[str, Any] = {
    "run": {"name": "receipts", "seed": 3},
    "data": {"root": "datasets/receipts"},
    "model": {
        "network": "PP-OCRv4_mobile",
        "form": "fused",
        "weights": "package:some/model",
        "threshold_gradient_to_trunk": True,
    },
    "train": {
        "effective_batch": 32,
        "micro_batch": 2,
        "updates": 60,
        "epochs": None,
        "accumulation": "exact",
        "batch_norm": "frozen",
        "precision": "fp32",
        "learning_rate": {"base": 0.0005, "base_batch": 16, "rule": "linear", "warmup_updates": 6, "factors": {}},
        "frozen_updates": {"backbone": 4},
        "ema": None,
        "clip_norm": 10.0,
    },
}


@pytest.fixture
def won() -> RunResult:
    """Tuning gave .1 and .2, training .05 on both sizes, at update 40 of 60."""
    found = {
        "shipped": metrics(0.7, 0.5, SHIPPED),
        "baseline": metrics(0.8, 0.7, TUNED),
        "best": metrics(0.85, 0.75, TUNED, update=40),
        "evaluations": [metrics(0.75, 0.7, update=20), metrics(0.85, 0.75, update=40), metrics(0.82, 0.74, update=60)],
        "tuning": [
            {"setting": SHIPPED, "objective": 0.5},
            {"setting": TUNED, "objective": 0.65},
            {"setting": {**SHIPPED, "limit_side": 1600}, "objective": 0.6},
        ],
    }
    return RunResult(CONFIG, found, [log_line(update) for update in (1, 2, 3)], peak_learning_rate=0.001)


@pytest.fixture
def lost(won: RunResult) -> RunResult:
    """The same run, but no evaluation reaches the tuned baseline."""
    evaluations = [metrics(0.75, 0.6, update=20), metrics(0.78, 0.68, update=40)]
    best = {**won.metrics["baseline"], "update": 0}
    return replace(won, metrics={**won.metrics, "best": best, "evaluations": evaluations})


def square(left: float, top: float, side: float = 40) -> np.ndarray:
    return np.array([[left, top], [left + side, top], [left + side, top + side], [left, top + side]], np.float32)


@pytest.fixture
def changed_image() -> Callable[..., ChangedImage]:
    """A white page with labelled squares: before, none is found; after, those of `found`."""

    def make(size_hw: tuple[int, int], corners: list[tuple[int, int]], found: list[bool]) -> ChangedImage:
        labels = [square(*corner) for corner in corners]
        after = np.array(found, dtype=bool)
        boxes = tuple(label for label, is_found in zip(labels, found, strict=True) if is_found)
        none = Findings(TextPrediction((), np.zeros(0, np.float32)), *(np.zeros(0, bool),) * 2, np.zeros_like(after))
        right = Findings(
            TextPrediction(boxes, np.ones(len(boxes), np.float32)), np.ones(len(boxes), bool),
            np.zeros(len(boxes), bool), after,
        )  # fmt: skip
        annotation = TextAnnotation(tuple(TextRegion(label) for label in labels))
        return ChangedImage("page.jpg", np.full((*size_hw, 3), 255, np.uint8), annotation, none, right)

    return make
