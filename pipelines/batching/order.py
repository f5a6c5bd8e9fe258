"""Which sample comes when: pure functions of (seed, epoch), so a run can stop and go on anywhere.

Nothing here knows the number of workers or the micro-batch size; neither can change order or augmentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

# Separate streams of randomness: equal numbers in one must not show in another.
_ORDER_STREAM, _SAMPLE_STREAM, _SHAPE_STREAM, _REPEAT_STREAM, _POOL_STREAM, _COMPANION_STREAM = range(6)


@dataclass(frozen=True, order=True)
class Position:
    """Where a run stands: the window that comes next.

    Attributes:
        epoch: zero-based.
        window: zero-based within the epoch.
    """

    epoch: int = 0
    window: int = 0

    def following(self, num_windows: int) -> Position:
        """The position after this one, in epochs of `num_windows`."""
        return Position(self.epoch, self.window + 1) if self.window + 1 < num_windows else Position(self.epoch + 1, 0)


class Mix(Protocol):
    """Which records an epoch holds.

    Attributes:
        num_samples: of every epoch.
    """

    num_samples: int

    def indices(self, epoch: int) -> np.ndarray:
        """Positions in the list of records, int64 (num_samples,), in any order; one may come several times."""
        ...

    def companions(self, epoch: int, places: np.ndarray) -> np.ndarray:
        """Records that share a sample with those at `places` of the epoch, int64 (len(places), k); k may be 0."""
        ...


@dataclass(frozen=True)
class EveryRecordOnce:
    """The `Mix` of a plain epoch.

    Attributes:
        num_samples: records of the split.
    """

    num_samples: int

    def indices(self, epoch: int) -> np.ndarray:
        return np.arange(self.num_samples, dtype=np.int64)

    def companions(self, epoch: int, places: np.ndarray) -> np.ndarray:
        return np.zeros((len(places), 0), np.int64)


def epoch_order(num_samples: int, seed: int, epoch: int) -> np.ndarray:
    """A permutation of all sample indices, int64 (num_samples,)."""
    return np.random.default_rng((seed, epoch, _ORDER_STREAM)).permutation(num_samples).astype(np.int64)


def num_windows(num_samples: int, effective_batch: int) -> int:
    """Windows of an epoch; a short last one counts."""
    return -(-num_samples // effective_batch)


def windows(order: np.ndarray, effective_batch: int) -> list[np.ndarray]:
    """Cut an order into windows of `effective_batch` indices; the last may be short, none is empty."""
    return [order[start : start + effective_batch] for start in range(0, len(order), effective_batch)]


def sample_rng(seed: int, epoch: int, index: int) -> np.random.Generator:
    """The randomness of one sample in one epoch, by its place in the epoch's mix."""
    return np.random.default_rng((seed, epoch, _SAMPLE_STREAM, index))


def shape_rng(seed: int, epoch: int, window: int) -> np.random.Generator:
    """The randomness of a window's shapes."""
    return np.random.default_rng((seed, epoch, _SHAPE_STREAM, window))


def repeat_rng(seed: int, epoch: int) -> np.random.Generator:
    """The randomness that rounds the repeat factors of an epoch."""
    return np.random.default_rng((seed, epoch, _REPEAT_STREAM))


def pool_rng(seed: int, turn: int) -> np.random.Generator:
    """The randomness of one turn through a pool of samples that several epochs share."""
    return np.random.default_rng((seed, turn, _POOL_STREAM))


def companion_rng(seed: int, epoch: int, index: int) -> np.random.Generator:
    """The randomness that chooses what shares a sample, by its place in the epoch's mix."""
    return np.random.default_rng((seed, epoch, _COMPANION_STREAM, index))
