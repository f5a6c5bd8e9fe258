"""Order and windows: exhaustive for small counts; randomness follows from numbers, never from the process."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.batching.order import Position, epoch_order, num_windows, sample_rng, windows


@pytest.mark.parametrize("effective_batch", range(1, 9))
def test_windows_hold_every_sample_once_for_all_small_counts(effective_batch: int) -> None:
    for count in range(0, 30):
        cut = windows(np.arange(count), effective_batch)
        assert np.array_equal(np.concatenate([*cut, np.zeros(0, np.int64)]), np.arange(count))
        assert len(cut) == num_windows(count, effective_batch) == -(-count // effective_batch)
        assert all(len(window) == effective_batch for window in cut[:-1])
        assert all(1 <= len(window) <= effective_batch for window in cut)


def test_epoch_order_is_a_permutation_that_changes_with_seed_and_epoch() -> None:
    orders = [tuple(epoch_order(50, seed, epoch)) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len(set(orders)) == 4
    assert tuple(epoch_order(50, 0, 0)) == orders[0]
    assert epoch_order(50, 0, 0).dtype == np.int64


def test_positions_walk_through_epochs() -> None:
    position, walked = Position(), []
    for _ in range(5):
        walked.append((position.epoch, position.window))
        position = position.following(2)
    assert walked == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]


def test_sample_randomness_differs_by_seed_epoch_and_index_only() -> None:
    draws = {
        sample_rng(seed, epoch, index).random() for seed in range(3) for epoch in range(3) for index in range(3)
    }  # fmt: skip
    assert len(draws) == 27
    assert sample_rng(1, 2, 3).random() == sample_rng(1, 2, 3).random()
