"""COCO entries as people's tools really write them: ids as text, boxes that are only outlines, flags as text."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from pipelines.dataset.box_checks import numeric_box
from pipelines.prep.raw import READ_AS_NUMBERS, RawBox
from pipelines.records import Fault


class Tally:
    """Findings that a tool repeats in every entry of a file: told once, with their number and first place."""

    def __init__(self, file: str):
        self._file = file
        self._found: dict[str, tuple[str, int]] = {}

    def add(self, reason: str, item: str) -> None:
        first, count = self._found.get(reason, (item, 0))
        self._found[reason] = first, count + 1

    def faults(self) -> list[Fault]:
        return [
            Fault(self._file, reason if count == 1 else f"{reason} (and in {count - 1} more)", "repaired", item=item)
            for reason, (item, count) in self._found.items()
        ]


def identity(value: Any, item: str, tally: Tally) -> Hashable | None:
    """An id that compares: whole numbers written as text or as 12.0 are numbers; None if it is no id at all."""
    if type(value) is int:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip():
        tally.add('an id is written as text ("12"): read as a number where it is one', item)
        text = value.strip()
        return int(text) if text.isdecimal() else text
    return None


def is_marked(value: Any) -> bool:
    """Whether a flag is set: 1, true, or either of them written as text."""
    return value.strip().lower() in ("1", "true") if isinstance(value, str) else bool(value)


def raw_box(entry: Mapping[str, Any], class_name: Any, item: str, tally: Tally) -> RawBox:
    """The box of one annotation; from its outline where it has no bbox."""
    is_ignored = any(is_marked(entry.get(flag)) for flag in ("iscrowd", "ignore", "difficult"))
    bbox, repairs = entry.get("bbox"), []
    box = numeric_box(bbox)
    if box is None and isinstance(bbox, list) and len(bbox) == 4 and any(isinstance(value, str) for value in bbox):
        box = _numbers(bbox)
        repairs = [READ_AS_NUMBERS]
    if box is None and not bbox:
        box = _outline_box(entry.get("segmentation"))
        repairs = ["no bbox: taken from the segmentation"]
    if box is None:
        reason = f"expected a bbox [x, y, width, height], but got {str(bbox)[:60]}"
        return RawBox(None, class_name, is_ignored, item, fault=reason)
    if "area" not in entry:
        tally.add("no area: computed from the box", item)
    left, top, width, height = box
    return RawBox((left, top, left + width, top + height), class_name, is_ignored, item, repairs=tuple(repairs))


def _numbers(values: list[Any]) -> tuple[float, float, float, float] | None:
    try:
        return numeric_box([float(value) for value in values])
    except (TypeError, ValueError, OverflowError):
        return None


def _outline_box(segmentation: Any) -> tuple[float, float, float, float] | None:
    """x, y, width, height round polygons [[x, y, x, y, ...], ...] or a run-length mask; None if it is neither."""
    if isinstance(segmentation, dict):
        return _mask_box(segmentation)
    try:
        points = np.concatenate([np.asarray(part, np.float64).reshape(-1, 2) for part in segmentation])
    except (TypeError, ValueError, OverflowError):
        return None
    (left, top), (right, bottom) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return numeric_box([left, top, right - left, bottom - top])


def _mask_box(mask: Mapping[str, Any]) -> tuple[float, float, float, float] | None:
    from pycocotools import mask as run_lengths

    try:
        is_plain = isinstance(mask["counts"], list)
        coded = run_lengths.frPyObjects(dict(mask), *mask["size"]) if is_plain else dict(mask)
        box = run_lengths.toBbox(coded).tolist()
    # What pycocotools makes of a broken mask depends on where it is broken.
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
        return None
    return numeric_box(box) if box[2] > 0 and box[3] > 0 else None
