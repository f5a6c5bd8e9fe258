"""One prediction of an image from the predictions of its tiles.

A side of a box is CUT if it lies within `seam_px` of its tile's border and that border lies inside the image: the
object may go on behind it. The image's own border is no seam. Only boxes of one class meet. In this order:

1. Continue. Let tile B begin and end behind tile A along x (or y); a1 is the end of A, b0 the start of B, and
   [b0, a1] what they share. An object that reaches from before b0 to behind a1 is seen by both as a piece: p in A,
   cut at a1 and starting no later than b0; q in B, cut at b0 and ending no sooner than a1 (within `seam_px`). Such
   p and q are joined if their extents across, P and Q, have |P & Q| >= `min_contact` min(|P|, |Q|). A piece
   continues in at most one piece of any other tile: pairs are taken in falling order of |P & Q| / |P | Q|, so two
   scratches side by side stay two. Joined pieces become their common bounding box, over any number of tiles.
2. Vanish. A box with a side that is still cut is a piece of something. If `min_inside` of its area or more lies in
   a larger box of another tile (widened by `seam_px`), it was a piece of that and vanishes.
3. Repeat. An object that two tiles see whole is two boxes with IoU >= `iou_threshold`. Whole boxes come before cut
   ones, then the most confident first, and the others vanish. Two boxes of one tile never remove each other: that
   is for the model's own suppression to say.

What is joined or vanishes leaves its confidence to what stays, which has the highest of them. Ties are broken by the
boxes' values, so neither the order of tiles nor the order inside them matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.records import DefectPrediction
from pipelines.tiles.grid import Window
from pipelines.tiles.pairs import areas, intersection_areas, intersection_wh, joined_sets, overlapping_pairs


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Boxes of all tiles in pixels of the image, the most confident first.

    Attributes:
        xyxy: float64 (n, 4).
        class_ids: int64 (n,).
        confidences: float64 (n,).
        tiles: int64 (n,), position of the window; a box made of several pieces has a negative one of its own.
        is_cut: bool (n, 4): left, top, right, bottom.
    """

    xyxy: np.ndarray
    class_ids: np.ndarray
    confidences: np.ndarray
    tiles: np.ndarray
    is_cut: np.ndarray

    def take(self, index: np.ndarray, confidences: np.ndarray | None = None) -> _Boxes:
        kept = self.confidences if confidences is None else confidences
        return _Boxes(self.xyxy[index], self.class_ids[index], kept[index], self.tiles[index], self.is_cut[index])


def merge_tiles(
    predictions: Sequence[DefectPrediction],
    windows: Sequence[Window],
    size_hw: tuple[int, int],
    *,
    iou_threshold: float = 0.5,
    seam_px: float = 4.0,
    min_contact: float = 0.1,
    min_inside: float = 0.8,
) -> DefectPrediction:
    """Join the predictions of overlapping tiles by the rule above.

    Args:
        predictions: one a window, in pixels of that window (its corner is the origin). What lies outside the window
            or the image is cut off.
        windows: of `tile_grid`.
        size_hw: (height, width) of the image, pixels.
        iou_threshold: two boxes of different tiles are the same object from here on.
        seam_px: how far from its tile's border a side may end and still be cut by it; what a detector is off there.
        min_contact: share of the shorter extent that two pieces must have in common.
        min_inside: share of a piece that must lie inside a larger box.

    Returns:
        In pixels of the image, the most confident first.

    Raises:
        ValueError: not one prediction a window.
    """
    if len(predictions) != len(windows):
        raise ValueError(f"merge_tiles needs one prediction a window, but got {len(predictions)} for {len(windows)}")
    if not windows:
        return DefectPrediction(np.zeros((0, 4)), np.zeros(0), np.zeros(0))
    corners = np.array(windows, dtype=np.float64)
    boxes = _gather(predictions, corners, size_hw, seam_px)
    boxes = _continue_pieces(boxes, corners, seam_px, min_contact)
    boxes = _vanish_pieces(boxes, seam_px, min_inside)
    boxes = _drop_repeats(boxes, iou_threshold)
    boxes = boxes.take(np.argsort(-boxes.confidences, kind="stable"))
    return DefectPrediction(boxes.xyxy, boxes.class_ids, boxes.confidences)


def _gather(
    predictions: Sequence[DefectPrediction], corners: np.ndarray, size_hw: tuple[int, int], seam_px: float
) -> _Boxes:
    """All boxes in pixels of the image and in an order that follows from their values alone."""
    tiles = np.repeat(np.arange(len(corners)), [len(prediction) for prediction in predictions])
    origins, limits = np.tile(corners[:, :2], 2), np.tile(size_hw[::-1], 2)
    window = np.clip(corners, 0, limits)[tiles]
    xyxy = np.concatenate([p.boxes_xyxy_px for p in predictions]).astype(np.float64) + origins[tiles]
    xyxy = np.clip(xyxy, np.tile(window[:, :2], 2), np.tile(window[:, 2:], 2))

    is_seam = np.concatenate((window[:, :2] > 0, window[:, 2:] < limits[2:]), axis=1)
    boxes = _Boxes(
        xyxy=xyxy,
        class_ids=np.concatenate([p.class_ids for p in predictions]),
        confidences=np.concatenate([p.confidences for p in predictions]).astype(np.float64),
        tiles=tiles,
        is_cut=is_seam & (np.abs(xyxy - window) <= seam_px),
    )
    order = np.lexsort((*window.T, *xyxy.T, boxes.class_ids, -boxes.confidences))
    has_area = (xyxy[:, 2:] > xyxy[:, :2]).all(axis=1)
    return boxes.take(order[has_area[order]])


def _continue_pieces(boxes: _Boxes, corners: np.ndarray, seam_px: float, min_contact: float) -> _Boxes:
    """Step 1: pieces that continue each other become their common bounding box."""
    cut = np.flatnonzero(boxes.is_cut.any(axis=1))
    pieces = boxes.take(cut)
    widened = pieces.xyxy + np.array([-1, -1, 1, 1]) * seam_px  # pieces may only meet, or miss each other by a little
    one, two = overlapping_pairs(widened, pieces.class_ids)
    first, second = np.concatenate((one, two)), np.concatenate((two, one))
    agreement = np.maximum(
        _agreement(pieces, corners, first, second, 0, seam_px, min_contact),
        _agreement(pieces, corners, first, second, 1, seam_px, min_contact),
    )
    found = np.flatnonzero(agreement > 0)
    found = found[np.lexsort((second[found], first[found], -agreement[found]))]
    pairs = zip(first[found].tolist(), second[found].tolist(), strict=True)
    return _bounding(boxes, joined_sets(len(boxes.tiles), _one_to_one(pairs, cut.tolist(), pieces.tiles.tolist())))


def _agreement(
    pieces: _Boxes,
    corners: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    axis: int,
    seam_px: float,
    min_contact: float,
) -> np.ndarray:
    """|P & Q| / |P | Q| across `axis` where the second piece continues the first one along it, else 0."""
    low, high = axis, axis + 2
    p, q = pieces.xyxy[first], pieces.xyxy[second]
    a, b = corners[pieces.tiles[first]], corners[pieces.tiles[second]]
    continues = (
        (a[:, low] < b[:, low])
        & (a[:, high] < b[:, high])
        & (a[:, high] >= b[:, low])
        & pieces.is_cut[first, high]
        & pieces.is_cut[second, low]
        & (p[:, low] <= b[:, low] + seam_px)
        & (q[:, high] >= a[:, high] - seam_px)
    )
    shared = intersection_wh(p, q)[:, 1 - axis]
    extents = [box[:, 3 - axis] - box[:, 1 - axis] for box in (p, q)]
    has_contact = shared >= np.maximum(min_contact * np.minimum(*extents), np.finfo(float).tiny)
    return np.where(continues & has_contact, shared / (extents[0] + extents[1] - shared), 0.0)


def _one_to_one(pairs: Iterable[tuple[int, int]], index_of: list[int], tiles: list[int]) -> Iterator[tuple[int, int]]:
    """The pairs in which neither piece has continued in the other's tile already, as indices of all boxes."""
    taken: set[tuple[int, int]] = set()
    for one, two in pairs:
        ends = {(one, tiles[two]), (two, tiles[one])}
        if not taken & ends:
            taken |= ends
            yield index_of[one], index_of[two]


def _bounding(boxes: _Boxes, sets: np.ndarray) -> _Boxes:
    """Each set as one box: its bounds, the highest confidence, and cut where no member reaches further."""
    members, slot, counts = np.unique(sets, return_inverse=True, return_counts=True)
    xyxy = boxes.xyxy[members]
    np.minimum.at(xyxy[:, :2], slot, boxes.xyxy[:, :2])
    np.maximum.at(xyxy[:, 2:], slot, boxes.xyxy[:, 2:])
    is_cut = np.zeros((len(members), 4), bool)
    np.logical_or.at(is_cut, slot, boxes.is_cut & (boxes.xyxy == xyxy[slot]))
    # Members are named by their smallest index, and the most confident box has it.
    tiles = np.where(counts > 1, -1 - np.arange(len(members)), boxes.tiles[members])
    return _Boxes(xyxy, boxes.class_ids[members], boxes.confidences[members], tiles, is_cut)


def _vanish_pieces(boxes: _Boxes, seam_px: float, min_inside: float) -> _Boxes:
    """Step 2: a piece inside a larger box of another tile leaves it its confidence."""
    one, two, shared = _pairs_across_tiles(boxes, seam_px)
    area = areas(boxes.xyxy)
    is_piece = area[one] < area[two]  # of equals, the less confident one
    piece, whole = np.where(is_piece, one, two), np.where(is_piece, two, one)
    reach = boxes.xyxy[whole] + np.array([-1, -1, 1, 1]) * seam_px
    inside = intersection_areas(boxes.xyxy[piece], reach) >= min_inside * area[piece]
    found = np.flatnonzero(inside & boxes.is_cut[piece].any(axis=1))
    # Assigned in rising order of what is shared, so that the last one, which stays, shares most.
    found = found[np.lexsort((-whole[found], shared[found]))]
    heir = np.arange(len(area))
    heir[piece[found]] = whole[found]
    while (heir != heir[heir]).any():  # an heir is always larger (or more confident), so this ends
        heir = heir[heir]
    return _inherit(boxes, heir)


def _drop_repeats(boxes: _Boxes, iou_threshold: float) -> _Boxes:
    """Step 3: of the boxes that two tiles have of one object, one stays."""
    one, two, shared = _pairs_across_tiles(boxes)
    area = areas(boxes.xyxy)
    is_same = shared >= iou_threshold * (area[one] + area[two] - shared)
    rank = np.argsort(np.argsort(boxes.is_cut.any(axis=1), kind="stable"))  # whole before cut, then as they come
    one, two = one[is_same], two[is_same]
    first, second = np.where(rank[one] < rank[two], (one, two), (two, one))
    heir = list(range(len(area)))
    order = np.lexsort((rank[second], rank[first]))
    for better, worse in zip(first[order].tolist(), second[order].tolist(), strict=True):
        if heir[better] == better and heir[worse] == worse:
            heir[worse] = better
    return _inherit(boxes, np.array(heir, dtype=np.int64))


def _pairs_across_tiles(boxes: _Boxes, margin_px: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of one class and different tiles that lie less than `margin_px` apart, and the area they share."""
    widened = boxes.xyxy + np.array([-1, -1, 1, 1]) * margin_px / 2
    one, two = overlapping_pairs(widened, boxes.class_ids)
    differs = boxes.tiles[one] != boxes.tiles[two]
    one, two = one[differs], two[differs]
    return one, two, intersection_areas(boxes.xyxy[one], boxes.xyxy[two])


def _inherit(boxes: _Boxes, heir: np.ndarray) -> _Boxes:
    """The boxes that are their own heirs, each with the highest confidence left to it."""
    confidences = boxes.confidences.copy()
    np.maximum.at(confidences, heir, boxes.confidences)
    return boxes.take(np.flatnonzero(heir == np.arange(len(heir))), confidences)
