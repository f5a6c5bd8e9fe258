"""Label files with one region a line: corners first, then the text, which may hold commas and blanks (SROIE, ICDAR).

| line | meaning |
|---|---|
| `x1,y1,x2,y2,x3,y3,x4,y4,text` | four corners in order round the text (ICDAR 2015, SROIE) |
| `x1 y1 x2 y2 "text"`, or with commas | left, top, right, bottom (ICDAR 2013) |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.dataset.encodings import EncodingError, decode
from pipelines.prep.raw import RawImage, RawRegion, RawText, is_ignore_mark, name_below
from pipelines.prep.shapes import rectangle
from pipelines.records import Fault

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_BOX_LINE = re.compile(rf"\s*({_NUMBER}(?:[\s,]+{_NUMBER}){{3}})(?:[\s,]+(\".*|[^\s\d,].*))?\s*$")
_CORNER_LINE = re.compile(rf"\s*({_NUMBER}(?:[\s,]+{_NUMBER}){{7}})(?:[\s,]+(.*))?$")


@dataclass(frozen=True)
class LineFormat:
    """What a line looks like.

    Attributes:
        expected: for messages.
        parse: (points, transcription) of a line, None if it is none.
    """

    expected: str
    parse: Callable[[str], tuple[list[list[float]], str] | None]


@dataclass(frozen=True)
class CornerFile:
    """What a label file says.

    Attributes:
        regions: one a line that can be read.
        faults: what had to be dropped or repaired to read it.
        fault: why its image can't be used, or "": a file of which nothing can be read is no image without text.
    """

    regions: tuple[RawRegion, ...]
    faults: tuple[Fault, ...]
    fault: str = ""


def corner_image(
    picture: Path, label: Path, source: Path, format: LineFormat, split: str = ""
) -> Iterator[RawText | Fault]:
    """An image with the regions of its label file, and everything that is wrong with that."""
    found = read_corner_file(label, format)
    yield from found.faults
    name = name_below(picture, source)
    yield RawImage(picture, name, str(label), None, found.regions, split=split, fault=found.fault)


def read_corner_file(path: Path, format: LineFormat) -> CornerFile:
    """All regions of a file, and everything that is wrong with it."""
    name = str(path)
    try:
        found = decode(path.read_bytes())
    except OSError as error:
        return CornerFile((), (), f"its label file can't be read: {error.strerror or error}")
    except EncodingError as error:
        return CornerFile((), (Fault(name, str(error), "dropped", error.line),), "its label file can't be read")
    regions: list[RawRegion] = []
    # A byte-order mark and Windows line ends are ordinary in these formats: not worth a finding.
    faults = [Fault(name, note, "repaired", line) for line, note in found.notes]
    lines = [(number, line) for number, line in enumerate(found.lines, 1) if line.strip()]
    for number, line in lines:
        parsed = format.parse(line)
        if parsed is None:
            faults.append(Fault(name, f"expected {format.expected}, but got {line[:60]!r}", "dropped", number))
        else:
            regions.append(RawRegion(*parsed, is_ignore_mark(parsed[1]), number))
    if not lines:
        faults.append(Fault(name, "the label file is empty: kept as an image without text", "warning"))
    lost = f"none of the {len(lines)} line(s) of its label file can be read, so it may hold text"
    return CornerFile(tuple(regions), tuple(faults), lost if lines and not regions else "")


def _four_corners(line: str) -> tuple[list[list[float]], str] | None:
    fields = line.split(",", 8)
    try:
        numbers = [float(field) for field in fields[:8]]
    except ValueError:
        return None
    if len(numbers) < 8:
        return None
    return [numbers[i : i + 2] for i in range(0, 8, 2)], fields[8].strip() if len(fields) > 8 else ""


def _box_or_corners(line: str) -> tuple[list[list[float]], str] | None:
    box, corners = _BOX_LINE.match(line), _CORNER_LINE.match(line)
    found = box or corners
    if found is None:
        return None
    numbers = [float(number) for number in re.split(r"[\s,]+", found[1])]
    flat = rectangle(*numbers) if box else tuple(zip(numbers[::2], numbers[1::2], strict=True))
    text = (found[2] or "").strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return [list(point) for point in flat], text[1:-1] if is_quoted else text


FOUR_CORNERS = LineFormat("x1,y1,x2,y2,x3,y3,x4,y4,text", _four_corners)
BOX_OR_CORNERS = LineFormat('x1 y1 x2 y2 "text", or eight numbers and a text', _box_or_corners)
"""Of ICDAR 2013; where an outline is no upright box, CVAT's export of it has four corners."""
