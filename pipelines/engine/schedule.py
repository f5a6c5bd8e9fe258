"""Everything that follows from counts: windows, accumulation steps, learning rate. Pure functions of updates."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipelines.errors import UsageError

WARMUP_DIVISOR = 5


def updates_per_epoch(num_samples: int, effective_batch: int) -> int:
    """Windows an epoch falls into; the last may be short."""
    return math.ceil(num_samples / effective_batch)


def scaled_learning_rate(base: float, base_batch: int, effective_batch: int, rule: str) -> float:
    """Carry a learning rate from the batch it was found at to the effective batch.

    `linear` keeps the step a sample takes (Goyal et al. 2017), `sqrt` keeps the noise of Adam-like steps
    (Malladi et al. 2022), `none` takes `base` as it is.
    """
    ratio = effective_batch / base_batch
    factors = {"linear": ratio, "sqrt": math.sqrt(ratio), "none": 1.0}
    if rule not in factors:
        raise UsageError(f"train.learning_rate.rule must be one of {', '.join(factors)}, but got {rule!r}")
    return base * factors[rule]


@dataclass(frozen=True)
class LearningRateSchedule:
    """Linear warm-up, then a half cosine from the peak towards `final_share` of it; counted in updates.

    The cosine would reach its end one update after the last one (SGDR, Loshchilov and Hutter 2017, eq. 5).

    Attributes:
        peak: the learning rate of the first update after the warm-up.
        num_updates: length of the run.
        warmup_updates: at most a fifth of the run.
        final_share: where the cosine ends, relative to `peak`.
    """

    peak: float
    num_updates: int
    warmup_updates: int = 0
    final_share: float = 0.01

    def __post_init__(self) -> None:
        if self.warmup_updates > capped_warmup(self.warmup_updates, self.num_updates):
            raise ValueError(
                f"warm-up of {self.warmup_updates} updates is more than a fifth of the {self.num_updates} updates"
            )

    def at(self, update: int) -> float:
        """Learning rate of the 0-based `update`."""
        if update < self.warmup_updates:
            return self.peak * (update + 1) / (self.warmup_updates + 1)
        span = max(1, self.num_updates - self.warmup_updates)
        progress = min(1.0, (update - self.warmup_updates) / span)
        return self.peak * (self.final_share + (1 - self.final_share) * (1 + math.cos(math.pi * progress)) / 2)


def capped_warmup(asked: int, num_updates: int) -> int:
    """The warm-up a run of `num_updates` can bear: never longer than a fifth of it."""
    return min(asked, num_updates // WARMUP_DIVISOR)
