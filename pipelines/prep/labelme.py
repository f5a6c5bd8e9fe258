"""LabelMe: a JSON an image with `shapes`; polygons, rectangles drawn in any direction, circles and lines as boxes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.dataset.coco_files import read_json
from pipelines.errors import DataError
from pipelines.prep.paired_files import LabelFile, paired_images
from pipelines.prep.raw import DefectItem, RawBox


def read_labelme(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Images of every LabelMe file below `source`; `train.txt` and `val.txt` that list images are the split.

    Raises:
        DataError: no JSON below `source`.
    """
    return paired_images(source, images, ".json", _parsed)


def _parsed(path: Path) -> LabelFile | None:
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
    height, width = content.get("imageHeight"), content.get("imageWidth")
    said_hw = (height, width) if isinstance(height, int) and isinstance(width, int) and height and width else None
    boxes = tuple(_box(shape, number) for number, shape in enumerate(shapes, 1))
    return LabelFile(str(content.get("imagePath") or ""), boxes, said_hw)


def _box(shape: Any, number: int) -> RawBox:
    known = shape if isinstance(shape, dict) else {}
    item, kind = f"shape {number}", known.get("shape_type") or "polygon"
    try:
        xs, ys = zip(*((float(x), float(y)) for x, y in known["points"]), strict=True)
    except (KeyError, TypeError, ValueError, OverflowError):
        reason = f"expected points [[x, y], ...], but got {str(known.get('points'))[:60]}"
        return RawBox(None, known.get("label"), item=item, fault=reason)
    corners = (min(xs), min(ys), max(xs), max(ys))
    if kind == "circle" and len(xs) == 2:
        # LabelMe: the centre, then a point on the circle.
        radius = math.dist((xs[0], ys[0]), (xs[1], ys[1]))
        corners = (xs[0] - radius, ys[0] - radius, xs[0] + radius, ys[0] + radius)
    return RawBox(corners, known.get("label"), item=item)
