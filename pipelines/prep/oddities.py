"""What makes the labels of an image odd beside those of its dataset: to be looked at, not to be dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import shapely

from pipelines.dataset import read_image
from pipelines.errors import DataError
from pipelines.prep.unlabelled_text import unlabelled_text
from pipelines.records import DefectAnnotation, Record

_FLAT_LEVELS = 3.0  # standard deviation of grey levels: less is paper, or a smooth part
_MOSTLY = 0.5  # of the smaller outline
_TINY, _HUGE = 1 / 4, 6.0  # times the dataset's median
_TURNED_DEGREES = 10.0
_LEAST_ASPECT = 2.0  # of a region whose direction can be told
_WEIGHTS = {"flat": 8.0, "covered": 4.0, "huge": 3.0, "tiny": 3.0, "turned": 2.0}
_UNLABELLED_WEIGHT = 2.0
_WORDS = {
    "flat": "without anything visible inside",
    "covered": "mostly inside another",
    "huge": "more than 6 times as large as usual",
    "tiny": "less than a quarter of the usual size",
    "turned": "turned by more than 10 degrees",
}


@dataclass(frozen=True, eq=False)
class OddImage:
    """One image, as far as its labels are odd.

    Attributes:
        is_odd: bool (n,), by label, ignore regions among them.
        reasons: in words, the gravest first; empty where nothing is odd.
        weight: sorts images, the oddest highest.
        unlabelled_px: float32 (m, 4), boxes round what looks like text without a label.
    """

    is_odd: np.ndarray
    reasons: tuple[str, ...]
    weight: float
    unlabelled_px: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.float32))


def outlines_of(annotation: Any) -> list[np.ndarray]:
    """Polygons of all labels, float32 (k, 2) each; boxes from the top left corner, clockwise."""
    if isinstance(annotation, DefectAnnotation):
        return list(corners_of(annotation.boxes_xyxy_px))
    return [region.points_px for region in annotation.regions]


def corners_of(boxes_xyxy_px: np.ndarray) -> np.ndarray:
    """Boxes (n, 4) as outlines (n, 4, 2), from the top left corner, clockwise."""
    return boxes_xyxy_px[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)


def is_ignored(annotation: Any) -> np.ndarray:
    """bool (n,), by label."""
    if isinstance(annotation, DefectAnnotation):
        return annotation.is_ignored
    return np.array([region.is_ignored for region in annotation.regions], bool)


def usual_size(records: Sequence[Record]) -> float:
    """Median short side of all labels that count, px; 1 where there is none."""
    sizes = [_sides(outlines_of(record.annotation))[~is_ignored(record.annotation), 0] for record in records]
    everything = np.concatenate([np.zeros(0), *sizes])
    return float(np.median(everything)) if len(everything) else 1.0


def oddities(root: Path, record: Record, usual_px: float) -> OddImage:
    """Look at the labels of one image of a dataset; one that can't be decoded is judged by its outlines alone."""
    try:
        grey = cv2.cvtColor(read_image(root / record.path), cv2.COLOR_BGR2GRAY)
    except DataError:
        grey = None
    outlines, ignored = outlines_of(record.annotation), is_ignored(record.annotation)
    judged = judge(outlines, ignored, grey, usual_px)
    if grey is None or isinstance(record.annotation, DefectAnnotation):
        return judged
    short = _sides(outlines)[~ignored, 0]
    line_px = float(np.median(short)) if len(short) else usual_px
    return _with_unlabelled(judged, unlabelled_text(grey, _boxes(outlines), line_px))


def _with_unlabelled(judged: OddImage, boxes: np.ndarray) -> OddImage:
    if not len(boxes):
        return judged
    reason = "1 place that looks" if len(boxes) == 1 else f"{len(boxes)} places that look"
    return OddImage(
        judged.is_odd,
        (*judged.reasons, f"{reason} like text without a label"),
        judged.weight + _weight(_UNLABELLED_WEIGHT, len(boxes)),
        boxes,
    )


def judge(outlines: Sequence[np.ndarray], ignored: np.ndarray, grey: np.ndarray | None, usual_px: float) -> OddImage:
    """Of labels, (k, 2) each, of a picture, uint8 (h, w), or None; ignore regions (bool (n,)) may be as they like."""
    boxes = _boxes(outlines)
    short = _sides(outlines)[:, 0]
    is_huge = short > _HUGE * usual_px
    found = {
        "flat": np.zeros(len(boxes), bool) if grey is None else np.array([_is_flat(grey, box) for box in boxes], bool),
        # what lies in a huge box is not odd itself
        "covered": _is_covered(outlines, ignored | is_huge),
        "huge": is_huge,
        "tiny": short < _TINY * usual_px,
        "turned": _is_turned(outlines),
    }
    found = {name: mask & ~ignored for name, mask in found.items()}
    counts = {name: int(mask.sum()) for name, mask in found.items() if mask.any()}
    return OddImage(
        is_odd=np.logical_or.reduce([*found.values()]),
        reasons=tuple(f"{number} {_WORDS[name]}" for name, number in counts.items()),
        # the kind counts more than how often: a form that is turned is odd once, not a hundred times
        weight=sum(_weight(_WEIGHTS[name], number) for name, number in counts.items()),
    )


def _weight(of_kind: float, number: int) -> float:
    return of_kind * (1 + float(np.log10(number)))


def _boxes(outlines: Sequence[np.ndarray]) -> np.ndarray:
    """Upright boxes round the outlines, float32 (n, 4)."""
    return np.array([[*points.min(axis=0), *points.max(axis=0)] for points in outlines], np.float32).reshape(-1, 4)


def _sides(outlines: Sequence[np.ndarray]) -> np.ndarray:
    """Short and long side of the smallest rectangle round each outline, (n, 2), px."""
    sides = [cv2.minAreaRect(points.astype(np.float32))[1] for points in outlines]
    return np.sort(np.array(sides, float).reshape(-1, 2), axis=1)


def _is_flat(grey: np.ndarray, box: np.ndarray) -> bool:
    (left, top), (right, bottom) = np.floor(box[:2]).astype(int), np.ceil(box[2:]).astype(int)
    inside = grey[max(top, 0) : bottom, max(left, 0) : right]
    return bool(inside.size) and float(inside.std()) < _FLAT_LEVELS


def _is_covered(outlines: Sequence[np.ndarray], is_no_cover: np.ndarray) -> np.ndarray:
    """bool (n,): at least half of it lies in a larger outline that counts; of two equal ones, the second is in."""
    shapes = shapely.convex_hull([shapely.MultiPoint(points) for points in outlines])
    inner, outer = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    areas = shapely.area(shapes)
    rank = np.lexsort((np.arange(len(areas)), -areas)).argsort()
    is_pair = (rank[outer] < rank[inner]) & ~is_no_cover[outer]
    inner, outer = inner[is_pair], outer[is_pair]
    shared = shapely.area(shapely.intersection(shapes[inner], shapes[outer]))
    is_in = np.zeros(len(areas), bool)
    is_in[inner[shared >= _MOSTLY * areas[inner]]] = True
    return is_in


def _is_turned(outlines: Sequence[np.ndarray]) -> np.ndarray:
    """bool (n,): a long label whose long side is far from level and from upright."""
    rectangles = [cv2.minAreaRect(points.astype(np.float32)) for points in outlines]
    angles = np.array([angle for _, _, angle in rectangles]).reshape(-1) % 90
    sides = _sides(outlines)
    is_long = sides[:, 1] >= _LEAST_ASPECT * np.maximum(sides[:, 0], 1)
    return np.asarray(is_long & (np.minimum(angles, 90 - angles) > _TURNED_DEGREES))
