"""Which boxes of one kind overlap, without comparing all with all; and sets of indices joined by pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

_ROUNDING_PX = 1e-2  # the sweep's keys are large numbers; what it takes too much, the exact test removes


def overlapping_pairs(boxes_xyxy: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index pairs of boxes of one kind whose interiors overlap.

    A sweep along x within horizontal strips as high as the mean box: sorted by left side, a box is compared
    with those that start before it ends. A pair that shares several strips is kept in its first.

    Args:
        boxes_xyxy: float64 (n, 4), each with an area.
        kinds: int (n,).

    Returns:
        Two int64 arrays, first < second, each pair once, in rising order.
    """
    if len(boxes_xyxy) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    left, top, right, bottom = boxes_xyxy.T
    strip_px = float((bottom - top).mean())
    first_strip, last_strip = np.floor(top / strip_px).astype(np.int64), np.floor(bottom / strip_px).astype(np.int64)

    num_strips = last_strip - first_strip + 1
    owner = np.repeat(np.arange(len(boxes_xyxy)), num_strips)
    strip = np.arange(len(owner)) - np.repeat(np.cumsum(num_strips) - num_strips, num_strips) + first_strip[owner]
    _, lane = np.unique(np.stack((kinds[owner], strip)), axis=1, return_inverse=True)

    # One axis for all lanes, one after the other: each is as long as the image, so none reaches into the next.
    lane_start = lane.ravel() * (right.max() - left.min() + 1) - left.min()
    order = np.argsort(lane_start + left[owner], kind="stable")
    owner, strip, lane_start = owner[order], strip[order], lane_start[order]
    stop = np.searchsorted(lane_start + left[owner], lane_start + right[owner] + _ROUNDING_PX)

    num_after = stop - np.arange(len(owner)) - 1
    entry = np.repeat(np.arange(len(owner)), num_after)
    other = entry + 1 + np.arange(len(entry)) - np.repeat(np.cumsum(num_after) - num_after, num_after)
    is_first_shared = strip[entry] == np.maximum(first_strip[owner[entry]], first_strip[owner[other]])
    one, two = owner[entry[is_first_shared]], owner[other[is_first_shared]]
    overlaps = (intersection_wh(boxes_xyxy[one], boxes_xyxy[two]) > 0).all(axis=1)
    pairs = np.sort(np.stack((one[overlaps], two[overlaps])), axis=0)
    return tuple(pairs[:, np.lexsort(pairs[::-1])])


def intersection_wh(first_xyxy: np.ndarray, second_xyxy: np.ndarray) -> np.ndarray:
    """Width and height shared by boxes pair by pair, (n, 2); negative where they lie apart."""
    low = np.maximum(first_xyxy[:, :2], second_xyxy[:, :2])
    return np.minimum(first_xyxy[:, 2:], second_xyxy[:, 2:]) - low


def intersection_areas(first_xyxy: np.ndarray, second_xyxy: np.ndarray) -> np.ndarray:
    """Area shared by boxes pair by pair, (n,)."""
    return np.maximum(intersection_wh(first_xyxy, second_xyxy), 0).prod(axis=1)


def areas(boxes_xyxy: np.ndarray) -> np.ndarray:
    """Area of each box, (n,)."""
    return (boxes_xyxy[:, 2:] - boxes_xyxy[:, :2]).prod(axis=1)


def joined_sets(num: int, pairs: Iterable[tuple[int, int]]) -> np.ndarray:
    """The set that each of `num` indices belongs to when both of every pair are one; int64 (num,).

    A set is named by its smallest index, so the answer does not depend on the order of pairs.
    """
    parents = list(range(num))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    for one, two in pairs:
        low, high = sorted((root(one), root(two)))
        parents[high] = low
    return np.array([root(index) for index in range(num)], dtype=np.int64)
