"""What people draw in a labelling tool, made into text regions or defect boxes.

| drawn | text | defect |
|---|---|---|
| polygon, rectangle (turned too), ellipse | the outline | the box round it |
| mask | the box round it is an ignore region: neither text nor background | the box round it |
| open line, points | dropped: they enclose no text | the box round it |
| several shapes of one group and class | each for itself | one box round all |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pipelines.errors import DataError
from pipelines.prep.class_names import is_ignore_class
from pipelines.prep.raw import (
    READ_AS_NUMBERS,
    DefectItem,
    DrawnItem,
    Outline,
    RawBox,
    RawImage,
    RawRegion,
    RawShape,
    RawText,
    Region,
    Unlabelled,
    is_ignore_mark,
)
from pipelines.records import Fault

_ELLIPSE_POINTS = 64
"""A multiple of four, so that an upright ellipse has the very box of its points; the area is 0.2 % short."""


def as_text(items: Iterable[DrawnItem]) -> Iterator[RawText | Fault]:
    """The text regions of every image, whatever their class; a fault for every shape that can be none."""
    for item in items:
        if isinstance(item, RawImage):
            yield from _text_image(item)
        elif isinstance(item, Unlabelled):
            yield Fault(str(item.image), f"{item.reason}: left out, it may hold text", "dropped")
        elif isinstance(item, Fault):
            yield item


def as_defects(items: Iterable[DrawnItem]) -> Iterator[DefectItem]:
    """The defect boxes of every image, shapes of one group and class joined; everything else as it is."""
    for item in items:
        yield _defect_image(item) if isinstance(item, RawImage) else item


def _text_image(raw: RawImage[RawShape]) -> Iterator[RawText | Fault]:
    regions = []
    for shape in raw.regions:
        fault = shape.fault
        if not fault and shape.kind == "line":
            fault = "an open line or points enclose no text; expected a polygon or a rectangle"
        if fault:
            yield Fault(raw.label, fault, "dropped", raw.line, shape.item)
            continue
        told = [*shape.repairs, *(["a mask: the box round it is an ignore region"] if shape.kind == "mask" else [])]
        if told:
            yield Fault(raw.label, "; ".join(told), "repaired", raw.line, shape.item)
        regions.append(_region(shape, raw.line))
    lost = f"none of its {len(raw.regions)} shape(s) can be used, so it may hold text: left out"
    yield _with_regions(raw, tuple(regions), raw.fault or (lost if raw.regions and not regions else ""))


def _region(shape: RawShape, line: int | None) -> RawRegion:
    is_ignored = (
        shape.is_ignored
        or shape.kind == "mask"
        or is_ignore_mark(shape.text)
        or (isinstance(shape.class_name, str) and is_ignore_class(shape.class_name))
    )
    return RawRegion([list(point) for point in shape.outline], shape.text, is_ignored, line, shape.item)


def _defect_image(raw: RawImage[RawShape]) -> RawImage[RawBox]:
    parts: dict[object, list[RawShape]] = {}
    for number, shape in enumerate(raw.regions):
        is_part = bool(shape.group) and not shape.fault
        parts.setdefault((shape.group, str(shape.class_name)) if is_part else number, []).append(shape)
    return _with_regions(raw, tuple(_box(shapes, raw.line) for shapes in parts.values()), raw.fault)


def _with_regions(raw: RawImage[RawShape], regions: tuple[Region, ...], fault: str) -> RawImage[Region]:
    return RawImage(
        image=raw.image,
        name=raw.name,
        label=raw.label,
        line=raw.line,
        regions=regions,
        split=raw.split,
        group=raw.group,
        said_hw=raw.said_hw,
        fault=fault,
    )


def _box(shapes: Sequence[RawShape], line: int | None) -> RawBox:
    """The box round the parts of one object."""
    first = shapes[0]
    if first.fault:
        return RawBox(None, first.class_name, first.is_ignored, first.item, line, first.repairs, first.fault)
    repairs = list(dict.fromkeys(repair for shape in shapes for repair in shape.repairs))
    if any(shape.kind == "mask" for shape in shapes):
        repairs.append("a mask: taken as the box round it")
    if len(shapes) > 1:
        repairs.append(f"{len(shapes)} shapes of group {first.group} are one object: one box round them")
    corners = enclosing_box([point for shape in shapes for point in shape.outline])
    is_ignored = any(shape.is_ignored for shape in shapes)
    return RawBox(corners, first.class_name, is_ignored, first.item, line, tuple(repairs))


def enclosing_box(points: Sequence[tuple[float, float]]) -> tuple[float, float, float, float]:
    """Left, top, right, bottom round at least one point."""
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def outline_of(points: Any) -> tuple[Outline, tuple[str, ...]]:
    """Points [[x, y], ...] of a label file as numbers, and what had to be done for it.

    Raises:
        DataError: no points, or coordinates that are no finite numbers.
    """
    try:
        outline = tuple((float(x), float(y)) for x, y in points)
        is_text = any(isinstance(value, str) for point in points for value in point)
    except (TypeError, ValueError, OverflowError):
        outline, is_text = (), False
    if not outline or not all(math.isfinite(value) for point in outline for value in point):
        raise DataError(f"expected points [[x, y], ...], but got {str(points)[:60]}")
    return outline, (READ_AS_NUMBERS,) if is_text else ()


def rectangle(left: float, top: float, right: float, bottom: float) -> Outline:
    """The four corners in order, from left and top."""
    return (left, top), (right, top), (right, bottom), (left, bottom)


def ellipse(centre: tuple[float, float], radii: tuple[float, float]) -> Outline:
    """A polygon inscribed in an upright ellipse."""
    angles = [2 * math.pi * number / _ELLIPSE_POINTS for number in range(_ELLIPSE_POINTS)]
    return tuple((centre[0] + radii[0] * math.cos(a), centre[1] + radii[1] * math.sin(a)) for a in angles)


def turned(outline: Outline, radians: float, about: tuple[float, float]) -> Outline:
    """The outline turned clockwise as seen (y points down) about a point, by a finite angle."""
    if not radians:
        return outline
    cos, sin = math.cos(radians), math.sin(radians)
    offsets = ((x - about[0], y - about[1]) for x, y in outline)
    return tuple((about[0] + cos * dx - sin * dy, about[1] + sin * dx + cos * dy) for dx, dy in offsets)
