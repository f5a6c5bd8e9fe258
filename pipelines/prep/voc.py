"""Pascal VOC: an XML an image with `object/name` and `object/bndbox`; an XML without objects is an OK image.

Corners are taken as written. Whether a tool counts pixels from 0 or from 1 can't be seen in a file; the difference is
one pixel at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from pipelines.errors import DataError
from pipelines.prep.paired_files import LabelFile, paired_images
from pipelines.prep.raw import DefectItem, RawBox

_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_LIST_FOLDERS = (".", "ImageSets/Main", "ImageSets")


def read_voc(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Images of every XML below `source`; `train.txt` (or `trainval.txt`) and `val.txt` (or `test.txt`) are the split.

    The lists lie in `source` or in `ImageSets/Main`; a line is a stem, an image, or an image and its XML.

    Raises:
        DataError: no XML below `source`, or none of their images.
    """
    return paired_images(source, images, ".xml", _parsed, _LIST_FOLDERS)


def _parsed(path: Path) -> LabelFile | None:
    """One label file; None for an XML that is no VOC file.

    Raises:
        DataError: it can't be read or is no XML.
    """
    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise DataError(f"can't be read: {error.strerror or error}") from None
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(f"no valid XML: {error}") from None
    if root.tag != "annotation":
        return None
    height, width = (_whole(root, f"size/{side}") for side in ("height", "width"))
    boxes = tuple(_box(each, number) for number, each in enumerate(root.iter("object"), 1))
    # Some tools write a size of 0 x 0 when they don't know it.
    return LabelFile(_text(root, "filename"), boxes, (height, width) if height and width else None)


def _box(element: ElementTree.Element, number: int) -> RawBox:
    name, item = _text(element, "name"), f"object {number}"
    texts = [_text(element, f"bndbox/{corner}") for corner in _CORNERS]
    try:
        corners = tuple(float(text) for text in texts)
    except ValueError:
        shown = ", ".join(f"{corner}={text!r}" for corner, text in zip(_CORNERS, texts, strict=True))
        return RawBox(None, name, item=item, fault=f"expected a bndbox of four numbers, but got {shown}")
    return RawBox(corners, name, is_ignored=_text(element, "difficult") == "1", item=item)


def _text(element: ElementTree.Element, path: str) -> str:
    """The text below `path` as written ("" if none): blanks in class names are the caller's to judge."""
    return element.findtext(path) or ""


def _whole(element: ElementTree.Element, path: str) -> int:
    try:
        return int(float(_text(element, path)))
    except (ValueError, OverflowError):
        return 0
