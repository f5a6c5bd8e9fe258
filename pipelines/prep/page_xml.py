"""PAGE XML: one file a page with `TextLine` outlines; of lines that have none, and of pages without lines, the words.

Any version of the schema (2010 to 2019; https://github.com/PRImA-Research-Lab/PAGE-XML): namespaces are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from pipelines.errors import DataError
from pipelines.prep.paired_files import LabelFile, paired_images
from pipelines.prep.raw import DrawnItem, Outline, RawShape, RawText
from pipelines.prep.shapes import as_text, enclosing_box, outline_of, rectangle
from pipelines.prep.xml_files import read_xml
from pipelines.records import Fault


def read_page_xml(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """Images of every PAGE file below `source`; `train.txt` and `val.txt` that list images are the split.

    Raises:
        DataError: no XML below `source`, or none of their images.
    """
    return as_text(_drawn(source, images))


def _drawn(source: Path, images: Path | None) -> Iterator[DrawnItem]:
    return paired_images(source, images, ".xml", _parsed)


def _parsed(path: Path) -> LabelFile[RawShape] | None:
    """One page; None for an XML that is no PAGE file.

    Raises:
        DataError: it can't be read, is no XML, or holds no page.
    """
    root = read_xml(path)
    if _tag(root) != "PcGts":
        return None
    page = next((element for element in root if _tag(element) == "Page"), None)
    if page is None:
        raise DataError("expected a <Page> in <PcGts>, but there is none")
    lines = _below(page, "TextLine") or _below(page, "Word")
    regions = _below(page, "TextRegion")
    if regions and not lines:
        raise DataError(
            f"has {len(regions)} text region(s), but neither lines nor words: text is there, its place is not"
        )
    shapes = [shape for number, line in enumerate(lines, 1) for shape in _shapes(line, number)]
    height, width = (_whole(page.get(side)) for side in ("imageHeight", "imageWidth"))
    said_hw = (height, width) if height and width else None
    if said_hw:
        shapes += _outside(page, said_hw, shapes)
    return LabelFile(page.get("imageFilename") or "", tuple(shapes), said_hw)


def _outside(page: Element, size_hw: tuple[int, int], shapes: Sequence[RawShape]) -> list[RawShape]:
    """Ignore regions round the `Border`, beyond which (the facing page, say) nobody has labelled; [] if there is none.

    Where text beyond it is labelled, it is no limit.
    """
    border = next((child for child in page if _tag(child) == "Border"), None)
    if border is None:
        return []
    outline = _shape(border, "border").outline
    labelled = [_centre(shape.outline) for shape in shapes if shape.outline]
    if not outline or not labelled:
        return []
    height, width = size_hw
    left, top, right, bottom = enclosing_box(outline)
    if not all(left <= x <= right and top <= y <= bottom for x, y in labelled):
        return []
    strips = {
        "left": (0, 0, left, height),
        "right": (right, 0, width, height),
        "above": (left, 0, right, top),
        "below": (left, bottom, right, height),
    }
    return [
        RawShape(rectangle(*strip), "text", is_ignored=True, item=f"{side} of the border")
        for side, strip in strips.items()
        if strip[2] - strip[0] >= 1 and strip[3] - strip[1] >= 1
    ]


def _centre(outline: Outline) -> tuple[float, float]:
    left, top, right, bottom = enclosing_box(outline)
    return (left + right) / 2, (top + bottom) / 2


def _shapes(line: Element, number: int) -> list[RawShape]:
    """A line, or, if it has no outline of its own, its words."""
    words = _below(line, "Word")
    if _coordinates(line) or not words:
        return [_shape(line, f"line {number}")]
    return [_shape(word, f"line {number}, word {place}") for place, word in enumerate(words, 1)]


def _shape(element: Element, item: str) -> RawShape:
    named = f"{item} ({element.get('id')})" if element.get("id") else item
    written = _coordinates(element)
    try:
        outline = outline_of([pair.split(",") for pair in written.split()])[0]
    except DataError:
        return RawShape((), "text", item=named, fault=f"expected points x,y x,y ..., but got {written[:60]!r}")
    return RawShape(outline, "text", text=_transcription(element), item=named)


def _coordinates(element: Element) -> str:
    """The outline as the schema of 2013 and later writes it, or the points of the older ones in that form."""
    coords = next((child for child in element if _tag(child) == "Coords"), None)
    if coords is None:
        return ""
    points = (f"{point.get('x')},{point.get('y')}" for point in coords if _tag(point) == "Point")
    return coords.get("points") or " ".join(points)


def _transcription(element: Element) -> str:
    """The text of the first reading, "" if there is none."""
    readings = [child for child in element if _tag(child) == "TextEquiv"]
    readings.sort(key=lambda reading: _whole(reading.get("index")))
    texts = (child.text or "" for reading in readings[:1] for child in reading if _tag(child) == "Unicode")
    return next(texts, "")


def _below(element: Element, tag: str) -> list[Element]:
    return [each for each in element.iter() if _tag(each) == tag]


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else 0
