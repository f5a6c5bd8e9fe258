"""What the augmentations of all tasks check and draw alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pipelines.errors import UsageError


def check_scale_jitter(scale_jitter: tuple[float, float]) -> None:
    """Refuse, with UsageError, what is not a smallest and a largest factor."""
    low, high = scale_jitter
    if not 0 < low <= high:
        raise UsageError(f"scale_jitter must be two factors, smaller first, but got {scale_jitter}")


def check_shares(settings: Any, *names: str) -> None:
    """Refuse, with UsageError, attributes of these names that are no shares."""
    for name in names:
        if not 0 <= getattr(settings, name) <= 1:
            raise UsageError(f"{name} must lie between 0 and 1, but got {getattr(settings, name)}")


def scale_factor(scale_jitter: tuple[float, float], rng: np.random.Generator) -> float:
    """Between the smallest and the largest factor, even on a log scale."""
    return math.exp(rng.uniform(*np.log(scale_jitter)))
