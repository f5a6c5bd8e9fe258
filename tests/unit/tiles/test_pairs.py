"""The sweep finds exactly the pairs that comparing all with all finds; sets do not depend on the order of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.tiles.pairs import joined_sets, overlapping_pairs


def all_with_all(boxes: np.ndarray, kinds: np.ndarray, sources: np.ndarray) -> set[tuple[int, int]]:
    return {
        (one, two)
        for one in range(len(boxes))
        for two in range(one + 1, len(boxes))
        if kinds[one] == kinds[two]
        and sources[one] != sources[two]
        and max(boxes[one, 0], boxes[two, 0]) < min(boxes[one, 2], boxes[two, 2])
        and max(boxes[one, 1], boxes[two, 1]) < min(boxes[one, 3], boxes[two, 3])
    }


@pytest.mark.parametrize("offset", [0, -3000, 20_000])
def test_the_sweep_finds_the_pairs_of_comparing_all_with_all(offset: float) -> None:
    rng = np.random.default_rng(11)
    start = rng.integers(0, 300, (250, 2)) + offset
    size = rng.integers(1, 40, (250, 2)) * rng.choice([1, 12], (250, 2), p=[0.9, 0.1])  # some are long
    boxes, kinds = np.concatenate((start, start + size), axis=1).astype(float), rng.integers(0, 3, 250)
    sources = rng.integers(0, 4, 250)
    one, two = overlapping_pairs(boxes, kinds, sources)
    found = list(zip(one.tolist(), two.tolist(), strict=True))
    assert set(found) == all_with_all(boxes, kinds, sources)
    assert len(found) == len(set(found)) > 200


def test_boxes_that_touch_do_not_overlap() -> None:
    boxes = np.array([[0, 0, 10, 10], [10, 0, 20, 10], [0, 10, 10, 20], [9.75, 9.75, 11, 11]])
    one, two = overlapping_pairs(boxes, np.zeros(4, int), np.arange(4))
    assert sorted(zip(one.tolist(), two.tolist(), strict=True)) == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("num", [0, 1])
def test_fewer_than_two_boxes_have_no_pairs(num: int) -> None:
    one, two = overlapping_pairs(np.ones((num, 4)) * [0, 0, 1, 1], np.zeros(num, int), np.arange(num))
    assert len(one) == len(two) == 0


def test_sets_are_named_by_their_smallest_index_whatever_the_order_of_pairs() -> None:
    pairs = [(4, 5), (1, 3), (5, 1)]
    assert joined_sets(7, pairs).tolist() == joined_sets(7, pairs[::-1]).tolist() == [0, 1, 2, 1, 1, 1, 6]
