"""The pages of a PDF: rendered upright, with the map between points and the picture's pixels, and their text lines.

PDF points have their origin at the bottom left of the unturned page; a page shows its crop box, turned clockwise by
its rotation (ISO 32000-1, 8.3.2.3 and 14.11.2).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.errors import DataError
from pipelines.geometry import transform_points
from pipelines.prep.documents import Page, Rendering, TextLine
from pipelines.records import Fault

if TYPE_CHECKING:
    import pypdfium2

POINTS_PER_INCH = 72
# of a line's height: wider gaps are columns
_LARGEST_GAP = 1.0
_LEAST_OVERLAP = 0.5
_FAINTEST_INK = 16  # levels


@dataclass(frozen=True, eq=False)
class PageView:
    """Where a page's points lie in its picture.

    Attributes:
        size_hw: (height, width) of the picture, px.
        matrix: float64 2 x 3, points to pixels; x and y axes stay axes.
    """

    size_hw: tuple[int, int]
    matrix: np.ndarray = field(repr=False)

    def to_pixels(self, points: np.ndarray) -> np.ndarray:
        """(n, 2) PDF points to pixels of the picture."""
        return transform_points(points, self.matrix)

    def to_points(self, pixels: np.ndarray) -> np.ndarray:
        """(n, 2) pixels of the picture to PDF points."""
        linear = np.linalg.inv(self.matrix[:, :2])
        return transform_points(pixels, np.column_stack([linear, -linear @ self.matrix[:, 2]]))


def pdf_pages(path: Path, rendering: Rendering) -> Iterator[Page | Fault]:
    """Every page of a PDF, rendered at `rendering.dpi`; a file that can't be opened is one fault."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
        document.init_forms()  # before pages are asked for; else what was filled into forms is not drawn
    except (pypdfium2.PdfiumError, OSError, ValueError) as error:
        yield Fault(str(path), _unopened(path, error), "dropped")
        return
    try:
        num_pages = len(document)
        num_lost = 0  # one after the other: damaged files promise a million pages
        for index in range(num_pages):
            try:
                item: Page | Fault = _page(document, index, num_pages, rendering)
            except pypdfium2.PdfiumError:
                num_lost += 1
                continue
            except DataError as error:
                item = Fault(str(path), str(error), "dropped", item=f"page {index + 1}")
            yield from _lost(path, index, num_lost)
            num_lost = 0
            yield item
        yield from _lost(path, num_pages, num_lost)
    finally:
        document.close()


def _lost(path: Path, last: int, num_lost: int) -> Iterator[Fault]:
    """The fault of `num_lost` pages up to `last`, if there are any."""
    if num_lost:
        item = f"page {last}" if num_lost == 1 else f"pages {last - num_lost + 1} to {last}"
        yield Fault(str(path), "can't be loaded: damaged, or not in the file", "dropped", item=item)


def _unopened(path: Path, error: Exception) -> str:
    from pypdfium2 import raw

    # of a file in order without pages PDFium's reason is that of an earlier file
    document = raw.FPDF_LoadDocument(os.fsencode(path), None)
    if document:
        raw.FPDF_CloseDocument(document)
        return "holds no page"
    if "password" in str(error).lower():
        return "is encrypted; save it without a password"
    return f"can't be opened as a PDF, cut off or damaged: {error}"


def _page(document: pypdfium2.PdfDocument, index: int, num_pages: int, rendering: Rendering) -> Page:
    page = document[index]
    try:
        view = page_view(page, rendering.dpi, rendering.max_pixels)
        lines = text_lines(page, view)
        picture = rendered(page, view, rendering.dpi)
    finally:
        page.close()
    origin = {"dpi": rendering.dpi, "points_to_pixels": view.matrix.tolist()}
    visible = tuple(line for line in lines if _has_ink(picture, line))
    note = ""
    if len(visible) < len(lines):
        unseen = f"{len(lines) - len(visible)} of {len(lines)} lines of its text layer can't be seen in its picture"
        note = f"{unseen}: hidden text, or a font that is neither in the file nor on this machine"
    return Page(index + 1, num_pages, picture, origin, visible, note)


def _has_ink(picture: np.ndarray, line: TextLine) -> bool:
    left, top, right, bottom = (max(0, round(side)) for side in line.box_xyxy_px)
    place = picture[top : max(bottom, top + 1), left : max(right, left + 1)].reshape(-1, 3)
    return bool((np.ptp(place, axis=0) > _FAINTEST_INK).any())


def page_view(page: pypdfium2.PdfPage, dpi: float, max_pixels: int) -> PageView:
    """How a page will be rendered.

    Raises:
        DataError: it would have more pixels than `max_pixels`, or none.
    """
    scale = dpi / POINTS_PER_INCH
    width_pt, height_pt = page.get_size()
    size_hw = (int(np.ceil(height_pt * scale)), int(np.ceil(width_pt * scale)))
    if not all(size_hw):
        raise DataError("shows nothing: its crop box and its media box do not meet")
    if size_hw[0] * size_hw[1] > max_pixels:
        raise DataError(
            f"would be {size_hw[1]} x {size_hw[0]} px at {dpi:g} dpi, more than {max_pixels / 1e6:g} megapixels;"
            " lower --dpi or raise --max-megapixels"
        )
    return PageView(size_hw, _points_to_pixels(page, size_hw))


def _points_to_pixels(page: pypdfium2.PdfPage, size_hw: tuple[int, int]) -> np.ndarray:
    """2 x 3: as PDFium draws the page, whatever boxes and turn it makes of what the file says."""
    from pypdfium2 import raw

    height, width = size_hw
    points = []
    for x, y in ((0, 0), (width, 0), (0, height)):
        point = (ctypes.c_double(), ctypes.c_double())
        raw.FPDF_DeviceToPage(page, 0, 0, width, height, 0, x, y, *map(ctypes.byref, point))
        points.append([point[0].value, point[1].value])
    corner, right, bottom = np.array(points)
    linear = np.linalg.inv(np.column_stack([(right - corner) / width, (bottom - corner) / height]))
    return np.column_stack([linear, -linear @ corner])


def rendered(page: pypdfium2.PdfPage, view: PageView, dpi: float) -> np.ndarray:
    """The page as a picture, uint8 (height, width, 3), BGR."""
    bitmap = page.render(scale=dpi / POINTS_PER_INCH, rev_byteorder=False, prefer_bgrx=False, may_draw_forms=True)
    pixels = bitmap.to_numpy()[..., :3].copy()
    bitmap.close()
    if pixels.shape[:2] != view.size_hw:
        raise DataError(f"was rendered with {pixels.shape[1]} x {pixels.shape[0]} px instead of {view.size_hw[::-1]}")
    return pixels


def text_lines(page: pypdfium2.PdfPage, view: PageView) -> list[TextLine]:
    """The lines of the text layer that the page shows, top to bottom; [] for a scan."""
    layer = page.get_textpage()
    try:
        pieces = [piece for piece in _pieces(layer, view) if _is_inside(piece.box_xyxy_px, view.size_hw)]
    finally:
        layer.close()
    return [_joined(line) for line in _lines(pieces)]


def _pieces(layer: pypdfium2.PdfTextPage, view: PageView) -> Iterator[TextLine]:
    """Runs of one font, as PDFium groups characters."""
    for index in range(layer.count_rects()):
        left, bottom, right, top = layer.get_rect(index)
        text = layer.get_text_bounded(left, bottom, right, top).strip()
        corners = view.to_pixels(np.array([[left, bottom], [right, top]]))
        low, high = corners.min(axis=0), corners.max(axis=0)
        if text and (high > low).all():
            yield TextLine((float(low[0]), float(low[1]), float(high[0]), float(high[1])), text)


def _is_inside(box: tuple[float, float, float, float], size_hw: tuple[int, int]) -> bool:
    """Whether its centre is: text outside the crop box is in the file, but nobody sees it."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return 0 <= x < size_hw[1] and 0 <= y < size_hw[0]


def _lines(pieces: Sequence[TextLine]) -> list[list[TextLine]]:
    """Pieces that stand side by side, without a gap as wide as they are high."""
    lines: list[list[TextLine]] = []
    for piece in sorted(pieces, key=lambda piece: piece.box_xyxy_px[0]):
        line = next((line for line in lines if _continues(line[-1], piece)), None)
        if line is None:
            lines.append([piece])
        else:
            line.append(piece)
    return sorted(lines, key=lambda line: (line[0].box_xyxy_px[1], line[0].box_xyxy_px[0]))


def _continues(piece: TextLine, after: TextLine) -> bool:
    if _runs_upright(piece) or _runs_upright(after):
        return False
    (_, top, right, bottom), (left, after_top, _, after_bottom) = piece.box_xyxy_px, after.box_xyxy_px
    heights = (bottom - top, after_bottom - after_top)
    overlap = min(bottom, after_bottom) - max(top, after_top)
    return overlap > _LEAST_OVERLAP * max(heights) and left - right < _LARGEST_GAP * min(heights)


def _runs_upright(piece: TextLine) -> bool:
    """Whether the text runs up or down the page; such pieces stay by themselves."""
    left, top, right, bottom = piece.box_xyxy_px
    return len(piece.text) > 1 and bottom - top > right - left


def _joined(line: Sequence[TextLine]) -> TextLine:
    boxes = np.array([piece.box_xyxy_px for piece in line])
    left, top = boxes[:, :2].min(axis=0).tolist()
    right, bottom = boxes[:, 2:].max(axis=0).tolist()
    return TextLine((left, top, right, bottom), " ".join(piece.text for piece in line))
