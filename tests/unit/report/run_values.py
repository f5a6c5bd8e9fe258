"""Values of a run that the tests of its page share: settings, evaluations, lines of a log, a configuration."""

from __future__ import annotations

from typing import Any

import numpy as np

SHIPPED = {"limit_side": 960, "binary_threshold": 0.3, "box_threshold": 0.6, "unclip_ratio": 1.5}
TUNED = {**SHIPPED, "limit_side": 1600, "unclip_ratio": 1.2}


def evaluated(objective: float, setting: dict[str, Any], **more: Any) -> dict[str, Any]:
    """As little of an evaluation as every page needs."""
    return {"objective": objective, "setting": setting, **more}


def log_line(update: int, **more: Any) -> dict[str, Any]:
    line = {"update": update, "epoch": 0, "samples": 32, "micro_batches": 16, "shapes": [[2, 320, 320]], "loss": 2.0}
    line |= {"loss_shrink": 0.2, "loss_threshold": 0.1, "lr": 1e-3, "grad_norm": 5.0, "loss_scale": 1.0}
    return {
        **line,
        "skipped": 0,
        "in_full": 0,
        "failures": 0,
        "seconds": 15.0,
        "data_seconds": 1.0,
        "peak_bytes": 3 * 2**29,
        **more,
    }


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


def square(left: float, top: float, side: float = 40) -> np.ndarray:
    return np.array([[left, top], [left + side, top], [left + side, top + side], [left, top + side]], np.float32)
