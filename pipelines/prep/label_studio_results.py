"""What an annotator drew in Label Studio: results of one region (its shape, labels, text) share an id.

Coordinates are percent of the image's width and height. A rectangle turns by `rotation` degrees, clockwise as seen, in
pixels, about its top-left corner; an ellipse about its centre. Source: Label Studio's guide to its task format
(labelstud.io/guide/task_format) and to units of exported regions (labelstud.io/guide/export).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipelines.errors import DataError
from pipelines.prep.raw import Outline, RawShape
from pipelines.prep.shapes import ellipse, outline_of, rectangle, turned

_RECTANGLE = ("x", "y", "width", "height")
_ELLIPSE = ("x", "y", "radiusX", "radiusY")
_PIXELS = ("rle", "imageDataURL")
_TEXT_KEYS = ("transcription", "text")
_LARGEST = 1e9


@dataclass(frozen=True)
class Region:
    """One region: everything its results say together.

    Attributes:
        value: shape, labels and text.
        size_wh: width and height of the image in px, None if no result gives them.
        image_turn: degrees by which the annotator had turned the whole image.
    """

    value: Mapping[str, Any]
    size_wh: tuple[float, float] | None
    image_turn: Any = 0


def regions_of(results: Sequence[Any]) -> dict[str, Region]:
    """By id, the regions of an annotation; results that belong to the image as a whole have no shape."""
    regions: dict[str, Region] = {}
    for position, result in enumerate(results):
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            # Relations between regions have no value; anything else without one is a region that can't be read.
            is_relation = isinstance(result, dict) and result.get("type") == "relation"
            regions.update({} if is_relation else {f"result[{position}]": Region({"broken": result}, None)})
            continue
        name = str(result.get("id") or f"result[{position}]")
        known = regions.get(name, Region({}, None))
        turn = result.get("image_rotation") or known.image_turn
        regions[name] = Region({**known.value, **value}, known.size_wh or _size(result), turn)
    return {name: region for name, region in regions.items() if has_shape(region.value) or "broken" in region.value}


def has_shape(value: Mapping[str, Any]) -> bool:
    """Whether a result's value says where something is."""
    return any(name in value for name in ("x", "points", "vertices", *_PIXELS))


def shape_of(region: Region, item: str) -> RawShape:
    """The shape of a region, with the reason if it can't be used."""
    class_name, repairs = _class_name(region.value)
    drawn = RawShape((), class_name, text=_text(region.value), item=item, repairs=repairs)
    try:
        outline = _outline(region)
    except DataError as error:
        return replace(drawn, fault=str(error))
    return replace(drawn, outline=outline, kind="area" if len(outline) > 1 else "line")


def _size(result: Mapping[str, Any]) -> tuple[float, float] | None:
    width, height = (_number(result.get(side)) for side in ("original_width", "original_height"))
    return (width, height) if width and height and width > 0 and height > 0 else None


def _number(value: Any) -> float | None:
    """A finite number, or None if it is anything else."""
    return float(value) if type(value) in (int, float) and abs(value) < _LARGEST else None


def _class_name(value: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """The first label of `rectanglelabels`, `labels`, ..., and what was left out."""
    names = [name for key, labels in value.items() if key.endswith("labels") for name in _strings(labels)]
    if len(set(names)) > 1:
        return names[0], (f"has the labels {', '.join(names)}: the first counts",)
    return (names[0] if names else None), ()


def _text(value: Mapping[str, Any]) -> str:
    return "\n".join(_strings(value.get("text")))


def _strings(value: Any) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _outline(region: Region) -> Outline:
    """What was drawn, in px.

    Raises:
        DataError: it is no shape that can be read.
    """
    value = region.value
    if "broken" in value:
        raise DataError(f'expected a result with a "value", but got {str(value["broken"])[:60]}')
    if any(name in value for name in _PIXELS):
        raise DataError("brush strokes are not read; draw a polygon or a rectangle")
    if region.size_wh is None:
        raise DataError("no original_width and original_height, so its percent can't become pixels")
    if region.image_turn:
        raise DataError(f"the image was turned by {region.image_turn} degrees in Label Studio: not read")
    width, height = region.size_wh
    per_cent = (width / 100, height / 100)
    if "points" in value:
        outline, _ = outline_of(value["points"])
        return tuple((x * per_cent[0], y * per_cent[1]) for x, y in outline)
    is_ellipse = "radiusX" in value
    numbers = _numbers(value, _ELLIPSE if is_ellipse else _RECTANGLE)
    x, y, first, second = (number * per_cent[axis % 2] for axis, number in enumerate(numbers))
    outline = ellipse((x, y), (first, second)) if is_ellipse else rectangle(x, y, x + first, y + second)
    (degrees,) = _numbers(value, ("rotation",)) if value.get("rotation") else (0.0,)
    return turned(outline, math.radians(degrees), (x, y))


def _numbers(value: Mapping[str, Any], names: Sequence[str]) -> list[float]:
    """Finite numbers by name.

    Raises:
        DataError: one is none, or not there: a key point has no height, for one.
    """
    numbers = [number for name in names if (number := _number(value.get(name))) is not None]
    if len(numbers) < len(names):
        shown = ", ".join(f"{name}={value.get(name)!r}" for name in names)
        raise DataError(f"expected a rectangle, an ellipse or a polygon, but got {shown[:120]}")
    return numbers


def regions_of_minimum(entry: Mapping[str, Any]) -> tuple[dict[str, Region], str]:
    """The regions of a JSON-MIN entry, which has no ids, and what could not be matched.

    Shapes of equal coordinates are one region; texts belong to the regions in order where there are as many.
    """
    regions: dict[str, Region] = {}
    names: dict[str, str] = {}
    for value in _dicts(entry):
        if has_shape(value):
            place = str([value.get(key) for key in (*_ELLIPSE, *_RECTANGLE, "rotation", "points", "rle")])
            name = names.setdefault(place, f"region {len(names) + 1}")
            known = regions.get(name, Region({}, None))
            regions[name] = Region({**known.value, **value}, known.size_wh or _size(value))
    texts = {key: text for key, values in entry.items() if (text := _texts(key, values))}
    matched = [text for text in texts.values() if len(text) == len(regions)]
    if len(matched) == 1:
        pairs = zip(regions.items(), matched[0], strict=True)
        regions = {name: replace(region, value={"text": text, **region.value}) for (name, region), text in pairs}
    told = f"{', '.join(texts)}: {len(regions)} shapes, but not as many texts, which are left out"
    return regions, told if regions and texts and len(matched) != 1 else ""


def _dicts(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for values in entry.values():
        yield from (value for value in (values if isinstance(values, list) else []) if isinstance(value, dict))


def _texts(key: str, values: Any) -> list[str]:
    """The texts of a list of them; JSON-MIN writes one text alone as itself."""
    if isinstance(values, str):
        return [values] if key in _TEXT_KEYS else []
    is_list = isinstance(values, list) and all(isinstance(value, str) for value in values)
    return values if is_list else []
