"""The pages of a TIFF, each with its own size, pixels, turn and resolution (TIFF 6.0).

A TIFF is a chain of directories, one a page, each with the place of the next; a broken link costs the pages behind it.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import RESOLUTION_UNIT, X_RESOLUTION, Y_RESOLUTION

from pipelines.dataset.image_files import DECODING_ERRORS, SIDEWAYS, opened, orientation_of
from pipelines.errors import DataError
from pipelines.prep.documents import Page, Rendering
from pipelines.prep.images import unusable, upright
from pipelines.records import Fault

TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
"""Little and big endian, classic and BigTIFF."""
_NEW_SUBFILE_TYPE = 254
_SMALLER_COPY, _MASK = 1, 4
_INCHES_A_UNIT = {2: 1.0, 3: 1 / 2.54}
_SQUARE = 0.05  # standard fax has 204 x 98 dpi, fine fax 204 x 196
# (struct codes of a place in the file and of a directory's length, bytes of an entry) by the version in the header
_LAYOUTS = {42: ("I", "H", 12), 43: ("Q", "Q", 20)}


def tiff_pages(path: Path, rendering: Rendering) -> Iterator[Page | Fault]:
    """Every page of a TIFF in its own pixels, 8 bits a channel, upright; `rendering.dpi` has no say in them."""
    try:
        with path.open("rb") as file:
            num_pages, break_reason = _chain(file)
        if num_pages:
            with opened(path, formats=("TIFF",)) as image:
                yield from _pages(image, path, num_pages, rendering.max_pixels)
    except DECODING_ERRORS as error:
        yield Fault(str(path), f"can't be read as a TIFF: {error}", "dropped")
        return
    if break_reason:
        yield Fault(str(path), break_reason, "dropped", item=f"page {num_pages + 1}")


def _pages(image: Image.Image, path: Path, num_pages: int, max_pixels: int) -> Iterator[Page | Fault]:
    told: set[str] = set()
    for index in range(num_pages):
        try:
            page = _page(image, index, num_pages, max_pixels)
        except DataError as error:
            yield Fault(str(path), str(error), "dropped", item=f"page {index + 1}")
            continue
        note = _squashed(page.origin["dpi"])
        yield page if note in told else replace(page, note=note)
        told.add(note)


def _chain(file: BinaryIO) -> tuple[int, str]:
    """How many directories follow each other, and why the next can't be reached, or ""."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    header = file.read(16)
    order = "<" if header[:2] == b"II" else ">"
    (version,) = struct.unpack(f"{order}H", header[2:4])
    place_code, length_code, entry_bytes = _LAYOUTS[version]
    at = 8 if version == 43 else 4
    places = [struct.unpack_from(f"{order}{place_code}", header, at)[0]]
    while places[-1]:
        file.seek(min(places[-1], size))
        (length,) = _read(file, f"{order}{length_code}") or (0,)
        file.seek(min(length * entry_bytes, size), os.SEEK_CUR)
        following = _read(file, f"{order}{place_code}")
        if following is None or not length:
            return len(places) - 1, "is not where the file says; it and what comes after it are lost: copy it again"
        if following[0] in places:
            return len(places), "is one that was there before: the pages run in a circle"
        places.append(following[0])
    return len(places) - 1, "" if len(places) > 1 else "is not there: the file has no page"


def _read(file: BinaryIO, code: str) -> tuple[int, ...] | None:
    content = file.read(struct.calcsize(code))
    return struct.unpack(code, content) if len(content) == struct.calcsize(code) else None


def _page(image: Image.Image, index: int, num_pages: int, max_pixels: int) -> Page:
    """Raises DataError where the page is damaged, too large or no page of its own."""
    try:
        image.seek(index)
        fault = _no_page(image) or unusable(image, max_pixels)
        if fault:
            raise DataError(fault)
        orientation = orientation_of(image)  # before decoding, which turns the page and drops the tag
        dpi = _dpi(image, orientation)
        pixels = np.asarray(upright(image))
    except DECODING_ERRORS as error:
        raise DataError(f"can't be decoded: {error}") from None
    origin = {"dpi": dpi[0] if dpi and dpi[0] == dpi[1] else dpi, "orientation": orientation}
    return Page(index + 1, num_pages, np.ascontiguousarray(pixels[..., ::-1]), origin)


def _no_page(image: Image.Image) -> str:
    kind = _tags(image).get(_NEW_SUBFILE_TYPE, 0)
    if kind & _SMALLER_COPY:
        return "is a smaller copy of another page"
    return "is the mask of another page" if kind & _MASK else ""


def _dpi(image: Image.Image, orientation: int) -> list[float] | None:
    """[across, down] of the upright page in pixels per inch, None where the page has no such tags or nonsense.

    PIL's `info` is no help: it keeps what an earlier page said.
    """
    tags = _tags(image)
    inches = _INCHES_A_UNIT.get(tags.get(RESOLUTION_UNIT, 2))
    if inches is None or X_RESOLUTION not in tags or Y_RESOLUTION not in tags:
        return None
    dpi = [round(float(tags[tag]) / inches, 3) for tag in (X_RESOLUTION, Y_RESOLUTION)]
    if not all(math.isfinite(value) and value > 0 for value in dpi):
        return None
    return dpi[::-1] if orientation in SIDEWAYS else dpi


def _tags(image: Image.Image) -> Any:
    return image.tag_v2  # type: ignore[attr-defined]


def _squashed(dpi: float | list[float] | None) -> str:
    if not isinstance(dpi, list) or abs(dpi[0] - dpi[1]) <= _SQUARE * max(dpi):
        return ""
    return f"has {dpi[0]:g} x {dpi[1]:g} dpi: its pixels are not square, so letters are squashed in its picture"
