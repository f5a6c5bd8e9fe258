"""LabelMe: a JSON an image with `shapes`, as LabelMe and the tools that write its format (X-AnyLabeling) draw them.

For text, a shape's transcription is its `description`, else its label.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pipelines.dataset.coco_files import read_json
from pipelines.errors import DataError
from pipelines.prep.coco_entries import is_marked
from pipelines.prep.paired_files import LabelFile, paired_images
from pipelines.prep.raw import DefectItem, DrawnItem, RawShape, RawText, size_from
from pipelines.prep.shapes import as_defects, as_text, ellipse, enclosing_box, outline_of, rectangle
from pipelines.records import Fault

_CLOSED = ("polygon", "rectangle", "circle", "mask", "rotation", "quadrilateral")
_OPEN = ("line", "linestrip", "point", "points")


def read_labelme(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Defects of every LabelMe file below `source`; `train.txt` and `val.txt` that list images are the split.

    Raises:
        DataError: no JSON below `source`.
    """
    return as_defects(_drawn(source, images))


def read_labelme_text(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """As `read_labelme`, for text."""
    return as_text(_drawn(source, images))


def _drawn(source: Path, images: Path | None) -> Iterator[DrawnItem]:
    return paired_images(source, images, ".json", _parsed)


def _parsed(path: Path) -> LabelFile[RawShape] | None:
    """One label file; None for a JSON that is no LabelMe file.

    Raises:
        DataError: it can't be read or is no JSON.
    """
    content = read_json(path)
    if not isinstance(content, dict) or "shapes" not in content:
        return None
    shapes = content["shapes"]
    if not isinstance(shapes, list):
        raise DataError(f'expected "shapes" with a list, but got {str(shapes)[:60]}')
    said_hw = size_from(content.get("imageHeight"), content.get("imageWidth"))
    drawn = tuple(_shape(shape, number) for number, shape in enumerate(shapes, 1))
    return LabelFile(str(content.get("imagePath") or ""), drawn, said_hw)


def _shape(shape: Any, number: int) -> RawShape:
    known = shape if isinstance(shape, dict) else {}
    group = known.get("group_id")
    drawn = RawShape(
        (),
        known.get("label"),
        text=_text(known),
        is_ignored=_is_ignored(known),
        item=f"shape {number}",
        group="" if group is None else str(group),
    )
    try:
        outline, repairs = outline_of(known.get("points"))
    except DataError as error:
        return replace(drawn, fault=str(error))
    kind = known.get("shape_type") or "polygon"
    if kind in ("rectangle", "mask") and len(outline) == 2:
        # Two opposite corners, dragged in any direction.
        outline = rectangle(*enclosing_box(outline))
    elif kind == "circle" and len(outline) == 2:
        # The centre, then a point on the circle.
        radius = math.dist(*outline)
        outline = ellipse(outline[0], (radius, radius))
    role: Literal["line", "mask", "area"] = "line" if kind in _OPEN else "mask" if kind == "mask" else "area"
    if kind not in (*_OPEN, *_CLOSED):
        repairs = (*repairs, f"shape_type {kind!r} is not known here: its points are taken as an outline")
    return replace(drawn, outline=outline, kind=role, repairs=repairs)


def _text(shape: Mapping[str, Any]) -> str:
    description, label = shape.get("description"), shape.get("label")
    if isinstance(description, str) and description.strip():
        return description
    return label if isinstance(label, str) else ""


def _is_ignored(shape: Mapping[str, Any]) -> bool:
    """Whether it is marked as difficult: in its flags, or as X-AnyLabeling does beside them."""
    flags = shape.get("flags")
    return is_marked(shape.get("difficult")) or (isinstance(flags, dict) and is_marked(flags.get("difficult")))
