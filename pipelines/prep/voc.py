"""Pascal VOC: an XML an image with `object/name` and `object/bndbox`; an XML without objects is an OK image.

Corners are taken as written. Whether a tool counts pixels from 0 or from 1 can't be seen in a file; the difference is
one pixel at most. A turned box (`robndbox` of roLabelImg and labelImg2: centre, size, clockwise angle in radians about
the centre) becomes the upright box round it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from pipelines.errors import DataError
from pipelines.prep.paired_files import LabelFile, paired_images
from pipelines.prep.raw import DefectItem, RawBox
from pipelines.prep.shapes import enclosing_box, outline_of, rectangle, turned
from pipelines.prep.xml_files import finite_numbers, read_xml

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_TURNED = ("cx", "cy", "w", "h", "angle")
_LIST_FOLDERS = (".", "ImageSets/Main", "ImageSets")


def read_voc(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Images of every XML below `source`; `train.txt` (or `trainval.txt`) and `val.txt` (or `test.txt`) are the split.

    The lists lie in `source` or in `ImageSets/Main`; a line is a stem, an image, or an image and its XML.

    Raises:
        DataError: no XML below `source`, or none of their images.
    """
    return paired_images(source, images, ".xml", _parsed, _LIST_FOLDERS)


def _parsed(path: Path) -> LabelFile[RawBox] | None:
    """One label file; None for an XML that is no VOC file.

    Raises:
        DataError: it can't be read or is no XML.
    """
    root = read_xml(path)
    if root.tag != "annotation":
        return None
    height, width = (_whole(root, f"size/{side}") for side in ("height", "width"))
    boxes = tuple(_box(each, number) for number, each in enumerate(root.iter("object"), 1))
    # Some tools write a size of 0 x 0 when they don't know it.
    return LabelFile(_text(root, "filename"), boxes, (height, width) if height and width else None)


def _box(element: Element, number: int) -> RawBox:
    name, item = _text(element, "name"), f"object {number}"
    is_ignored = _text(element, "difficult") == "1"
    is_turned = element.find("bndbox") is None and element.find("robndbox") is not None
    try:
        if not is_turned:
            return RawBox(tuple(_numbers(element, "bndbox", _CORNERS)), name, is_ignored, item)
        corners, angle = _turned_box(*_numbers(element, "robndbox", _TURNED))
    except DataError as error:
        return RawBox(None, name, item=item, fault=str(error))
    repairs = (f"a box turned by {angle:.1f} degrees: taken as the upright box round it",) if angle else ()
    return RawBox(corners, name, is_ignored, item, repairs=repairs)


def _turned_box(
    centre_x: float, centre_y: float, width: float, height: float, radians: float
) -> tuple[tuple[float, float, float, float], float]:
    """The corners of the upright box round a turned one, and by how many degrees it is turned."""
    half_width, half_height = width / 2, height / 2
    upright = rectangle(centre_x - half_width, centre_y - half_height, centre_x + half_width, centre_y + half_height)
    outline, _ = outline_of(turned(upright, radians, (centre_x, centre_y)))
    return enclosing_box(outline), math.degrees(radians)


def _numbers(element: Element, box: str, names: Sequence[str]) -> list[float]:
    """The numbers called `names` below `box`.

    Raises:
        DataError: one of them is none.
    """
    try:
        return finite_numbers({name: _text(element, f"{box}/{name}") for name in names})
    except DataError as error:
        raise DataError(f"{box}: {error}") from None


def _text(element: Element, path: str) -> str:
    """The text below `path` as written ("" if none): blanks in class names are the caller's to judge."""
    return element.findtext(path) or ""


def _whole(element: Element, path: str) -> int:
    try:
        return int(float(_text(element, path)))
    except (ValueError, OverflowError):
        return 0
