"""One prediction of an image from the predictions of its tiles.

The slack of a side of a box is max(`seam_px`, `seam_share` of the box's extent along it): what a detector may be off. A
side is CUT if it lies within its slack of its tile's border and that border lies inside the image: the object may go on
behind it. The image's own border is no seam. Only boxes of one class meet. In this order:

1. Continue. Let tile B begin and end behind tile A along x (or y); a1 is the end of A, b0 the start of B, and
   [b0, a1] what they share. An object that reaches from before b0 to behind a1 is seen by both as a piece: p in A,
   cut at a1 and starting no later than b0; q in B, cut at b0 and ending no sooner than a1 (within the slack). Such
   p and q are joined if their extents across, P and Q, have |P & Q| >= `min_contact` min(|P|, |Q|). A piece
   continues in at most one piece of any other tile: pairs are taken in falling order of |P & Q| / |P | Q|, so two
   scratches side by side stay two. Joined pieces become their common bounding box, over any number of tiles.
2. Vanish. A box with a side that is still cut is a piece of something. If `min_inside` of its area or more lies in
   a larger box of another tile (widened by its slack), it was a piece of that and vanishes.
3. Repeat. An object that two tiles see whole is two boxes with IoU >= `iou_threshold`. Whole boxes come before cut
   ones, then the most confident first, and the others vanish. Two boxes of one tile never remove each other: that
   is for the model's own suppression to say.

What is joined or vanishes leaves its confidence to what stays, which has the highest of them. Ties are broken by the
boxes' values, so neither the order of tiles nor the order inside them matters.

Where tiles share more than twice the slack, step 1 joins only boxes that overlap, so true neighbours that
don't overlap are never joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipelines.geometry import box_areas, box_intersection_wh, box_intersections
from pipelines.records import DefectPrediction
from pipelines.tiles.grid import Window
from pipelines.tiles.pairs import joined_sets, overlapping_pairs


@dataclass(frozen=True)
class MergeRule:
    """The thresholds of the rule above.

    Attributes:
        iou_threshold: from here on two boxes of different tiles are one object.
        seam_px: slack of a side, pixels of the image, at least this.
        seam_share: slack of a side as a share of the box's extent along it.
        min_contact: share of the shorter extent that two pieces must have in common across.
        min_inside: share of a piece that must lie inside a larger box.
    """

    iou_threshold: float = 0.5
    seam_px: float = 4.0
    seam_share: float = 0.1
    min_contact: float = 0.1
    min_inside: float = 0.8

    def slack_px(self, xyxy: np.ndarray) -> np.ndarray:
        """What each side may be off; float64 (n, 4)."""
        return np.maximum(self.seam_px, self.seam_share * np.tile(xyxy[:, 2:] - xyxy[:, :2], 2))

    def widened(self, xyxy: np.ndarray) -> np.ndarray:
        """Boxes with every side moved outwards by its slack; float64 (n, 4)."""
        return xyxy + np.array([-1, -1, 1, 1]) * self.slack_px(xyxy)


DEFAULT_RULE = MergeRule()


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

    @property
    def is_piece(self) -> np.ndarray:
        """Whether any side is cut; bool (n,)."""
        return np.asarray(self.is_cut.any(axis=1))

    def take(self, index: np.ndarray) -> _Boxes:
        arrays = (self.xyxy, self.class_ids, self.confidences, self.tiles, self.is_cut)
        return _Boxes(*(array[index] for array in arrays))


def merge_tiles(
    predictions: Sequence[DefectPrediction],
    windows: Sequence[Window],
    size_hw: tuple[int, int],
    rule: MergeRule = DEFAULT_RULE,
) -> DefectPrediction:
    """Join the predictions of overlapping tiles by the rule above.

    Args:
        predictions: one a window, in pixels of that window (its corner is the origin). What lies outside the window
            or the image is cut off.
        windows: of `tile_grid`.
        size_hw: (height, width) of the image, pixels.
        rule: thresholds.

    Returns:
        In pixels of the image, the most confident first.

    Raises:
        ValueError: not one prediction a window, or no window.
    """
    if not windows or len(predictions) != len(windows):
        raise ValueError(f"merge_tiles needs one prediction a window, but got {len(predictions)} for {len(windows)}")
    corners = np.array(windows, dtype=np.float64)
    boxes = _gather(predictions, corners, size_hw, rule)
    boxes = _continue_pieces(boxes, corners, rule)
    boxes = _vanish_pieces(boxes, rule)
    boxes = _drop_repeats(boxes, rule)
    boxes = boxes.take(np.argsort(-boxes.confidences, kind="stable"))
    return DefectPrediction(boxes.xyxy, boxes.class_ids, boxes.confidences)


def _gather(
    predictions: Sequence[DefectPrediction], corners: np.ndarray, size_hw: tuple[int, int], rule: MergeRule
) -> _Boxes:
    """All boxes in pixels of the image and in an order that follows from their values alone."""
    tiles = np.repeat(np.arange(len(corners)), [len(prediction) for prediction in predictions])
    limits = np.tile(size_hw[::-1], 2)
    window = np.clip(corners, 0, limits)[tiles]
    xyxy = np.concatenate([prediction.boxes_xyxy_px for prediction in predictions]).astype(np.float64)
    xyxy = xyxy + np.tile(corners[tiles, :2], 2)
    xyxy = np.clip(xyxy, np.tile(window[:, :2], 2), np.tile(window[:, 2:], 2))

    is_seam = np.concatenate((window[:, :2] > 0, window[:, 2:] < limits[2:]), axis=1)
    boxes = _Boxes(
        xyxy=xyxy,
        class_ids=np.concatenate([prediction.class_ids for prediction in predictions]),
        confidences=np.concatenate([prediction.confidences for prediction in predictions]).astype(np.float64),
        tiles=tiles,
        is_cut=is_seam & (np.abs(xyxy - window) <= rule.slack_px(xyxy)),
    )
    order = np.lexsort((*window.T, *xyxy.T, boxes.class_ids, -boxes.confidences))
    has_area = (xyxy[:, 2:] > xyxy[:, :2]).all(axis=1)
    return boxes.take(order[has_area[order]])


def _continue_pieces(boxes: _Boxes, corners: np.ndarray, rule: MergeRule) -> _Boxes:
    """Step 1: pieces that continue each other become their common bounding box."""
    cut = np.flatnonzero(boxes.is_piece)
    pieces = boxes.take(cut)
    # Widened, because pieces of tiles without overlap only meet, or miss each other by a little.
    one, two = overlapping_pairs(rule.widened(pieces.xyxy), pieces.class_ids, pieces.tiles)
    first, second = np.concatenate((one, two)), np.concatenate((two, one))
    agreement = np.maximum(*(_agreement(pieces, corners, first, second, axis, rule) for axis in (0, 1)))
    found = np.flatnonzero(agreement > 0)
    found = found[np.lexsort((second[found], first[found], -agreement[found]))]
    ends = zip(first[found].tolist(), second[found].tolist(), strict=True)
    pairs = ((int(cut[one]), int(cut[two])) for one, two in _one_to_one(ends, pieces.tiles.tolist()))
    return _bounding(boxes, joined_sets(len(boxes.tiles), pairs))


def _agreement(
    pieces: _Boxes, corners: np.ndarray, first: np.ndarray, second: np.ndarray, axis: int, rule: MergeRule
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
        & (rule.widened(p)[:, low] <= b[:, low])
        & (rule.widened(q)[:, high] >= a[:, high])
    )
    p_extent, q_extent = (box[:, 3 - axis] - box[:, 1 - axis] for box in (p, q))
    shared = np.maximum(box_intersection_wh(p, q)[:, 1 - axis], 0)
    continues &= shared >= rule.min_contact * np.minimum(p_extent, q_extent)
    return np.where(continues, shared / (p_extent + q_extent - shared), 0.0)


def _one_to_one(pairs: Iterable[tuple[int, int]], tiles: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The pairs, but those of which one piece has continued in the other's tile already."""
    taken: set[tuple[int, int]] = set()
    for one, two in pairs:
        ends = {(one, tiles[two]), (two, tiles[one])}
        if not taken & ends:
            taken |= ends
            yield one, two


def _bounding(boxes: _Boxes, sets: np.ndarray) -> _Boxes:
    """Each set as one box: its bounds, the highest confidence, and cut where a member that reaches them is."""
    # A set is named by its smallest index, which the most confident member has.
    members, slot, counts = np.unique(sets, return_inverse=True, return_counts=True)
    xyxy = boxes.xyxy[members]
    np.minimum.at(xyxy[:, :2], slot, boxes.xyxy[:, :2])
    np.maximum.at(xyxy[:, 2:], slot, boxes.xyxy[:, 2:])
    is_cut = np.zeros((len(members), 4), bool)
    np.logical_or.at(is_cut, slot, boxes.is_cut & (boxes.xyxy == xyxy[slot]))
    tiles = np.where(counts > 1, -1 - np.arange(len(members)), boxes.tiles[members])
    return _Boxes(xyxy, boxes.class_ids[members], boxes.confidences[members], tiles, is_cut)


def _vanish_pieces(boxes: _Boxes, rule: MergeRule) -> _Boxes:
    """Step 2: a piece inside a larger box of another tile leaves it its confidence."""
    widened, area = rule.widened(boxes.xyxy), box_areas(boxes.xyxy)
    one, two = overlapping_pairs(widened, boxes.class_ids, boxes.tiles)
    rank = np.argsort(np.lexsort((boxes.is_piece, -area)))  # large before small, of equals whole before cut
    pairs = np.where(rank[one] > rank[two], (one, two), (two, one))
    piece, whole = pairs[:, boxes.is_piece[pairs[0]]]
    is_inside = box_intersections(boxes.xyxy[piece], widened[whole]) >= rule.min_inside * area[piece]
    piece, whole = piece[is_inside], whole[is_inside]
    # Assigned in rising order of what is shared, so that the last one, which stays, shares most.
    order = np.lexsort((-whole, box_intersections(boxes.xyxy[piece], boxes.xyxy[whole])))
    heir = np.arange(len(area))
    heir[piece[order]] = whole[order]
    while (heir != heir[heir]).any():  # an heir always has a better rank, so this ends
        heir = heir[heir]
    return _inherit(boxes, heir)


def _drop_repeats(boxes: _Boxes, rule: MergeRule) -> _Boxes:
    """Step 3: of the boxes that two tiles have of one object, one stays."""
    one, two = overlapping_pairs(boxes.xyxy, boxes.class_ids, boxes.tiles)
    area, shared = box_areas(boxes.xyxy), box_intersections(boxes.xyxy[one], boxes.xyxy[two])
    is_same = shared >= rule.iou_threshold * (area[one] + area[two] - shared)
    one, two = one[is_same], two[is_same]
    rank = np.argsort(np.argsort(boxes.is_piece, kind="stable"))  # whole before cut, then most confident
    better, worse = np.where(rank[one] < rank[two], (one, two), (two, one))
    order = np.lexsort((rank[worse], rank[better]))
    heir = list(range(len(area)))
    for best, other in zip(better[order].tolist(), worse[order].tolist(), strict=True):
        if heir[best] == best and heir[other] == other:
            heir[other] = best
    return _inherit(boxes, np.array(heir, dtype=np.int64))


def _inherit(boxes: _Boxes, heir: np.ndarray) -> _Boxes:
    """The boxes that are their own heirs, each with the highest confidence left to it."""
    confidences = boxes.confidences.copy()
    np.maximum.at(confidences, heir, boxes.confidences)
    is_kept = heir == np.arange(len(heir))
    return replace(boxes, confidences=confidences).take(np.flatnonzero(is_kept))
