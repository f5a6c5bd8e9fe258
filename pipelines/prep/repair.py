"""From raw regions to text regions: repaired only where one repair is right, and always told.

| fault | action |
|---|---|
| coordinates written as text ("12.5") | read as numbers |
| repeated neighbouring points | removed |
| quad in bow-tie order | reordered around its centre |
| other crossing outline | its convex hull becomes an ignore region: neither text nor background |
| partly outside the image | clipped to the image |
| one outline twice | kept once |
| half a character (a lone surrogate) in a transcription | U+FFFD |
| fewer than 3 points, no area, not numbers, wholly outside | dropped |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from pipelines.dataset.box_checks import LARGEST_PX
from pipelines.dataset.encodings import HALF_CHARACTER
from pipelines.dataset.region_checks import MIN_AREA_PX, compact, region_faults
from pipelines.geometry import clip_polygon, is_simple_polygon, polygon_area, untangle_quad
from pipelines.prep.raw import READ_AS_NUMBERS, RawRegion, RawText
from pipelines.records import Fault, TextRegion


class DroppedRegion(Exception):
    """A region with nothing left to learn from; the text says why."""


@dataclass(frozen=True, eq=False)
class _Repaired:
    points_px: np.ndarray
    is_ignored: bool
    repairs: tuple[str, ...]


def repaired_regions(raw: RawText, size_hw: tuple[int, int]) -> tuple[tuple[TextRegion, ...], list[Fault]]:
    """All regions of an image of (height, width) px that can be drawn, and a fault for every change."""
    regions: list[TextRegion] = []
    faults: list[Fault] = []
    outlines: set[tuple[bytes, bool]] = set()
    sound = _sound_regions(raw.regions, size_hw)
    for number, region in enumerate(raw.regions):
        try:
            repaired = sound.get(number) or _repaired(region, size_hw)
        except DroppedRegion as error:
            faults.append(Fault(raw.label, str(error), "dropped", region.line, region.item))
            continue
        repairs = list(repaired.repairs)
        text = _writable(region.transcription, repairs)
        outline = (repaired.points_px.tobytes(), repaired.is_ignored)
        if outline in outlines:
            repairs.append(f"the same outline twice {compact(repaired.points_px)}: kept once")
        else:
            outlines.add(outline)
            regions.append(TextRegion(repaired.points_px, text, repaired.is_ignored))
        if repairs:
            faults.append(Fault(raw.label, "; ".join(repairs), "repaired", region.line, region.item))
    return tuple(regions), faults


def _writable(text: str, repairs: list[str]) -> str:
    """A transcription that UTF-8 can hold: JSON may give half of a character that needs two escapes."""
    if not HALF_CHARACTER.search(text):
        return text
    repairs.append("half a character in the transcription: replaced by U+FFFD")
    return HALF_CHARACTER.sub("\ufffd", text)


def _sound_regions(raws: tuple[RawRegion, ...], size_hw: tuple[int, int]) -> dict[int, _Repaired]:
    """By index, the regions nothing is wrong with: nearly all of them, and checked together."""
    numbers: list[int] = []
    regions: list[TextRegion] = []
    for number, raw in enumerate(raws):
        points = _numeric(raw.points)
        if points is not None and len(points) >= 3 and len(points) == len(_without_repeats(points)):
            numbers.append(number)
            regions.append(TextRegion(points, raw.transcription, raw.is_ignored))
    faulty = {index for index, _ in region_faults(regions, size_hw)}
    pairs = zip(numbers, regions, strict=True)
    return {
        number: _Repaired(region.points_px, region.is_ignored, ())
        for index, (number, region) in enumerate(pairs)
        if index not in faulty
    }


def _numeric(points: Any) -> np.ndarray | None:
    """Points as finite float32 (n, 2), or None if they are anything else (text included)."""
    try:
        array = np.asarray(points)
    except ValueError:
        return None
    if array.dtype.kind not in "iuf" or array.ndim != 2 or array.shape[1] != 2:
        return None
    # numpy takes true for 1
    if any(isinstance(coordinate, bool) for point in points for coordinate in point):
        return None
    # nan compares as false
    if not ((array >= -LARGEST_PX) & (array <= LARGEST_PX)).all():
        return None
    return array.astype(np.float32)


def _repaired(raw: RawRegion, size_hw: tuple[int, int]) -> _Repaired:
    """The region with every safe repair.

    Raises:
        DroppedRegion: nothing usable is left.
    """
    repairs: list[str] = []
    points = _points_of(raw, repairs)
    is_ignored = raw.is_ignored
    if cv2.contourArea(cv2.convexHull(points)) < MIN_AREA_PX:
        raise DroppedRegion(f"encloses no area: {compact(points)}")
    if not is_simple_polygon(points):
        if len(points) == 4:
            repairs.append(f"bow-tie order {compact(points)}: reordered around its centre")
            points = untangle_quad(points)
        else:
            repairs.append(f"outline crosses itself {compact(points)}: its hull is kept as an ignore region")
            points, is_ignored = cv2.convexHull(points)[:, 0], True
    points = _inside(points, size_hw, repairs)
    if polygon_area(points) < MIN_AREA_PX:
        raise DroppedRegion(f"encloses no area: {compact(points)}")
    return _Repaired(points, is_ignored, tuple(repairs))


def _points_of(raw: RawRegion, repairs: list[str]) -> np.ndarray:
    points = _numeric(raw.points)
    if points is None:
        try:
            points = _numeric([[_number(c) for c in point] for point in raw.points])
        except (TypeError, ValueError, OverflowError):
            points = None
        if points is None:
            raise DroppedRegion(f"points must be numbers [[x, y], ...], but are {str(raw.points)[:80]}")
        repairs.append(READ_AS_NUMBERS)
    distinct = _without_repeats(points)
    if len(distinct) < 3:
        raise DroppedRegion(f"a polygon needs at least 3 different points, but this has {len(distinct)}")
    if len(distinct) < len(points):
        repairs.append(f"{len(points) - len(distinct)} repeated point(s) removed")
    return distinct


def _number(written: Any) -> float:
    if isinstance(written, bool):
        raise TypeError("true is no coordinate")
    return float(written)


def _without_repeats(points: np.ndarray) -> np.ndarray:
    """Points (n, 2) without those equal to the one before (the first's predecessor is the last)."""
    if len(points) < 2:
        return points
    is_new = (points != np.roll(points, 1, axis=0)).any(axis=1)
    return np.compress(is_new, points, axis=0)


def _inside(points: np.ndarray, size_hw: tuple[int, int], repairs: list[str]) -> np.ndarray:
    height, width = size_hw
    if (points >= 0).all() and (points <= (width, height)).all():
        return points
    clipped = clip_polygon(points, size_hw)
    if not len(clipped):
        raise DroppedRegion(f"lies wholly outside the image of {width} x {height} px: {compact(points)}")
    repairs.append(f"reaches outside the image of {width} x {height} px {compact(points)}: clipped")
    return clipped
