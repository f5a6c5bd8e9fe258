"""Which boxes of one kind overlap, without comparing all with all; and sets of indices joined by pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pipelines.geometry import box_intersection_wh

_ROUNDING_PX = 1e-2  # the sweep's keys are large numbers; what it takes too much, the exact test removes


def overlapping_pairs(boxes_xyxy: np.ndarray, kinds: np.ndarray, sources: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index pairs of boxes of one kind, but from different sources, whose interiors overlap.

    A sweep along x within horizontal strips about as high as the mean box: sorted by left side, a box is
    compared with those that start before it ends. A pair that shares several strips is kept in its first.

    Args:
        boxes_xyxy: float64 (n, 4), each with an area.
        kinds: small int (n,).
        sources: int (n,).

    Returns:
        Two int64 arrays, first < second, each pair once.
    """
    if len(boxes_xyxy) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    top, bottom = boxes_xyxy[:, 1], boxes_xyxy[:, 3]
    strip_px = float((bottom - top).mean())
    first_strip, last_strip = ((side - top.min()) // strip_px for side in (top, bottom))
    owner, nth = _runs((last_strip - first_strip).astype(np.int64) + 1)
    strip = first_strip[owner] + nth
    lane = (kinds[owner] - kinds.min()) * (last_strip.max() + 1) + strip
    order, entry, other = _sweep(boxes_xyxy[owner, 0], boxes_xyxy[owner, 2], lane)
    owner, strip = owner[order], strip[order]

    # One test after the other, since each leaves fewer candidates to the next, dearer one.
    wanted = sources[owner][entry] != sources[owner][other]
    entry, other = entry[wanted], other[wanted]
    wanted = strip[entry] == np.maximum(first_strip[owner][entry], first_strip[owner][other])
    one, two = owner[entry[wanted]], owner[other[wanted]]
    wanted = (box_intersection_wh(boxes_xyxy[one], boxes_xyxy[two]) > 0).all(axis=1)
    return np.minimum(one, two)[wanted], np.maximum(one, two)[wanted]


def _sweep(left: np.ndarray, right: np.ndarray, lane: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The order of entries along x, lane by lane, and the pairs of places in it that may overlap along x."""
    # One axis for all lanes, one behind the other: each is longer than the image.
    lane_start = lane * (right.max() - left.min() + 1)
    order = np.argsort(lane_start + left)
    starts, ends = (lane_start + left)[order], (lane_start + right)[order]
    stop = np.searchsorted(starts, ends + _ROUNDING_PX)
    entry, nth = _runs(np.maximum(stop - np.arange(len(order)) - 1, 0))
    return order, entry, entry + 1 + nth


def _runs(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index i repeated lengths[i] times, and the count from 0 within each run."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


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
