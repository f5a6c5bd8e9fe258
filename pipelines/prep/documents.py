"""Files of several pages: what each page gives, whatever the file's format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.records import Fault


@dataclass(frozen=True)
class TextLine:
    """A line of a page's text layer.

    Attributes:
        box_xyxy_px: left, top, right, bottom in pixels of the page's picture.
        text: what it says.
    """

    box_xyxy_px: tuple[float, float, float, float]
    text: str


@dataclass(frozen=True, eq=False)
class Page:
    """One page as a picture.

    Attributes:
        number: from 1.
        num_pages: of its file.
        picture: uint8 (height, width, 3), BGR, upright as a viewer shows it.
        origin: what leads from the picture back to the file: its dpi, its turn or its map.
        lines: of its text layer, as far as they can be seen; () for a scan.
        note: what the user should know of it, or "".
    """

    number: int
    num_pages: int
    picture: np.ndarray
    origin: dict[str, Any]
    lines: tuple[TextLine, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Rendering:
    """How pages become pictures.

    Attributes:
        dpi: pixels per inch of pages that have no pixels of their own.
        max_pixels: larger pages are left out, and told.
    """

    dpi: float
    max_pixels: int


PageReader = Callable[[Path, Rendering], Iterator[Page | Fault]]
"""`reader(path, rendering)`: every page of a file, one in memory at a time, or why it can't be used."""
