"""What every reader yields: images with text regions or defect boxes as a label file has them, unchecked; faults."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pipelines.dataset.image_files import is_there
from pipelines.dataset.label_files import IGNORED_TRANSCRIPTIONS
from pipelines.records import Fault

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".gif"})

READ_AS_NUMBERS = "coordinates written as text: read as numbers"
"""What readers say they did to "12.5"."""


@dataclass(frozen=True)
class RawRegion:
    """A text region before any check.

    Attributes:
        points: what the label file gives for the polygon, [[x, y], ...] if all is well.
        transcription: what it says.
        is_ignored: marked as an ignore region.
        line: line of the label file, from 1, where it has lines.
        item: which region of that line or file, or "".
    """

    points: Any
    transcription: str
    is_ignored: bool
    line: int | None
    item: str = ""


@dataclass(frozen=True)
class RawBox:
    """A defect's box before any check.

    Attributes:
        corners: left, top, right, bottom in px if all is well, else what the label file gives.
        class_name: as written.
        is_ignored: marked as a crowd, as difficult or as an ignore region.
        item: which object of the label file, or "".
        line: line of the label file, from 1, where it has lines.
        repairs: what had to be done to read it.
        fault: why it can't be used whatever its corners, or "".
    """

    corners: Any
    class_name: Any
    is_ignored: bool = False
    item: str = ""
    line: int | None = None
    repairs: tuple[str, ...] = ()
    fault: str = ""


Outline = tuple[tuple[float, float], ...]
"""Finite (x, y) in px, in order round a shape or along a line; at least one."""


@dataclass(frozen=True)
class RawShape:
    """What a labelling tool drew, whatever it is for: `shapes` makes text regions and defect boxes of it.

    Attributes:
        outline: round what was drawn; () where that can't be read.
        class_name: as written.
        kind: "area" (polygon, rectangle, ellipse), "line" (an open line, points), or "mask": pixels that are not
            read, with the box round them as outline.
        text: what it says, "" if the tool has no place for it.
        is_ignored: marked as difficult or to be ignored.
        item: which shape of the label file.
        group: shapes of one group and one class are parts of one object; "" for none.
        repairs: what had to be done to read it.
        fault: why it can't be used, or "".
    """

    outline: Outline
    class_name: Any
    kind: Literal["area", "line", "mask"] = "area"
    text: str = ""
    is_ignored: bool = False
    item: str = ""
    group: str = ""
    repairs: tuple[str, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class ClassList:
    """Class names in the order that a source gives them; a class in it may have no object."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Unlabelled:
    """An image file that the source says nothing about: OK if the user says so, else left out.

    Attributes:
        image: the file.
        reason: what was expected for it.
        may_be_ok: False where a label file may mean it, so that it is left out whatever the user says.
    """

    image: Path
    reason: str
    may_be_ok: bool = True


Region = TypeVar("Region", RawRegion, RawBox, RawShape)


@dataclass(frozen=True)
class RawImage(Generic[Region]):
    """An image file that exists, with its regions before any check.

    Attributes:
        image: the file.
        name: its path relative to the source where it lies below it, with forward slashes; what group rules see.
        label: label file, for messages.
        line: line of the label file, or None where a file belongs to one image.
        regions: text regions, defect boxes or shapes, unchecked; none is an image without text, or an OK image.
        split: "train" or "val" where the source says so, else "".
        group: what must not straddle splits where the source says so, else "".
        said_hw: (height, width) that the label file says the image has, or None.
        fault: why it can't be used whatever it shows, or "".
    """

    image: Path
    name: str
    label: str
    line: int | None
    regions: tuple[Region, ...]
    split: str = ""
    group: str = ""
    said_hw: tuple[int, int] | None = None
    fault: str = ""


RawText = RawImage[RawRegion]
RawDefects = RawImage[RawBox]
TextReader = Callable[[Path, "Path | None"], Iterator["RawText | Fault"]]
"""`reader(source, images)`: all images and faults of a source; `images` is where to look for images first.

Raises DataError when the source has not the layout at all.
"""
DefectItem = RawDefects | ClassList | Unlabelled | Fault
DefectReader = Callable[[Path, "Path | None"], Iterator[DefectItem]]
"""As `TextReader`, with the source's own list of classes where it has one, and the images it says nothing about."""

DrawnItem = RawImage[RawShape] | ClassList | Unlabelled | Fault
"""What the reader of a labelling tool yields before it is known whether text or defects were drawn."""


def is_ignore_mark(transcription: str) -> bool:
    """Whether a transcription says "don't read this": "###" or "*", as PaddleOCR has it."""
    return transcription.strip() in IGNORED_TRANSCRIPTIONS


def size_from(height: Any, width: Any) -> tuple[int, int] | None:
    """(height, width) that a JSON gives for an image, None where it gives none; some tools write 0 for that."""
    return (height, width) if isinstance(height, int) and isinstance(width, int) and height and width else None


def name_below(path: Path, source: Path) -> str:
    """`path` relative to `source` if it lies below it, else as it is; forward slashes.

    Bytes of it that are no UTF-8 are spelt out in hexadecimal, since the name is written to files.
    """
    folder = source if source.is_dir() else source.parent
    name = path.relative_to(folder) if path.is_relative_to(folder) else path
    return os.fsencode(name.as_posix()).decode("utf-8", "backslashreplace")


def images_by_stem(files: Iterable[Path]) -> dict[str, list[Path]]:
    """The image files among `files` by name without suffix, each list sorted; no folders, pipes and dead links."""
    found: dict[str, list[Path]] = {}
    for path in sorted(files):
        if path.suffix.lower() in IMAGE_SUFFIXES and is_there(path):
            found.setdefault(path.stem, []).append(path)
    return found
