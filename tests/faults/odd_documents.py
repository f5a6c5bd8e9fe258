"""PDFs and TIFFs as people have them, each with the pages that `wholebatch pages` makes of it, or why it makes none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults import tiny_images as tiny
from tests.faults.tiny_documents import encrypted_pdf, filled_pdf, pdf, stamped_pdf

UPRIGHT, SIDEWAYS = (300, 200), (200, 300)
LETTER = (612, 792)
"""What PDFium shows of a page that does not say its size, points."""
TIFF_PAGE = (tiny.WIDTH, tiny.HEIGHT)


@dataclass(frozen=True)
class OddDocument:
    """A file of pages that nobody expects.

    Attributes:
        content: its bytes.
        pages_wh: (width, height) in px of every page's picture, at 72 dpi.
        told: words of what is said of it, "" for nothing.
        item: which page that is about, "" for the file.
        name: of the file.
        dark_px: how many pixels of its first page are dark; None: not counted.
    """

    content: Callable[[], bytes]
    pages_wh: tuple[tuple[int, int], ...] = ()
    told: str = ""
    item: str = ""
    name: str = "odd.pdf"
    dark_px: int | None = None


def _cut(content: bytes, share: float) -> bytes:
    return content[: int(share * len(content))]


_PDFS = {
    "PDF turned by 90 degrees": OddDocument(lambda: pdf(rotation=90), (SIDEWAYS,)),
    "PDF turned by 450 degrees": OddDocument(lambda: pdf(rotation=450), (SIDEWAYS,)),
    "PDF cropped": OddDocument(lambda: pdf(crop=(30, 50, 290, 200)), ((260, 150),)),
    "PDF cropped to nothing": OddDocument(
        lambda: pdf(crop=(999, 999, 1099, 1099)), told="crop box and its media box do not meet", item="page 1"
    ),
    "PDF with its corners swapped": OddDocument(lambda: pdf(media=(310, 220, 10, 20)), (UPRIGHT,)),
    "PDF without a size": OddDocument(lambda: pdf().replace(b"/MediaBox", b"/Mistyped"), (LETTER,)),
    "PDF of broken points": OddDocument(lambda: pdf(media=(0, 0, 300.5, 200.25)), ((301, 201),)),
    "PDF half a point high": OddDocument(lambda: pdf(media=(0, 0, 300, 0.5)), ((300, 1),)),
    "PDF of five metres": OddDocument(
        lambda: pdf(media=(0, 0, 14_400, 14_400)),
        told="would be 14400 x 14400 px at 72 dpi, more than 200 megapixels; lower --dpi",
        item="page 1",
    ),
    "PDF stamped": OddDocument(stamped_pdf, (UPRIGHT,), dark_px=10 * 10 + 40 * 20),
    "PDF with hidden text": OddDocument(
        lambda: pdf(text=[(40, 150, "seen"), (40, 100, "seen too) Tj ET 3 Tr BT /F 20 Tf 40 50 Td (hidden")]),
        (UPRIGHT,),
        "1 of 3 lines of its text layer can't be seen",
        "page 1",
    ),
    "PDF with a filled form": OddDocument(filled_pdf, (UPRIGHT,), dark_px=10 * 10 + 40 * 20),
    "PDF encrypted": OddDocument(encrypted_pdf, told="is encrypted; save it without a password"),
    "PDF of no page": OddDocument(lambda: pdf(pages=0), told="holds no page"),
    "PDF that promises 1000 pages": OddDocument(
        lambda: pdf(count=1000), (UPRIGHT,), "can't be loaded: damaged, or not in the file", "pages 2 to 1000"
    ),
    "PDF whose pages run in a circle": OddDocument(
        lambda: pdf().replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"), told="can't be loaded", item="page 1"
    ),
    "PDF with bytes before it": OddDocument(lambda: b"\r\n\r\njunk\n" + pdf(), (UPRIGHT,)),
    "PDF cut at 50 %": OddDocument(lambda: _cut(pdf(), 0.5), told="can't be opened as a PDF, cut off or damaged"),
    "PDF of zero bytes": OddDocument(lambda: b"", told="neither a PDF nor a TIFF: it is empty (0 bytes)"),
    "web page called PDF": OddDocument(lambda: b"<html>404", told="neither a PDF nor a TIFF: it starts with b'<html>"),
}
_TIFFS = {
    "TIFF of three pages": OddDocument(tiny.pages_tiff, (TIFF_PAGE,) * 3, name="odd.tif"),
    "TIFF of three pages called PDF": OddDocument(tiny.pages_tiff, (TIFF_PAGE,) * 3),
    "TIFF, upper-case suffix": OddDocument(tiny.pages_tiff, (TIFF_PAGE,) * 3, name="odd.TIFF"),
    "TIFF of tiles": OddDocument(tiny.tiled_tiff, (TIFF_PAGE,), name="odd.tif"),
    "BigTIFF of a page": OddDocument(
        lambda: tiny.tiff(tiny.rgb_tags(), [tiny.quarters().tobytes()], is_big=True), (TIFF_PAGE,), name="odd.tif"
    ),
    "TIFF fax, its pixels not square": OddDocument(
        lambda: tiny.pages_tiff(2, dpi=(204, 98)), (TIFF_PAGE,) * 2, "has 204 x 98 dpi", "page 1", "odd.tif"
    ),
    "TIFF of three pages cut behind the first": OddDocument(
        lambda: _cut(tiny.pages_tiff(), 0.335), (TIFF_PAGE,), "copy it again", "page 2", "odd.tif"
    ),
    "TIFF page of floats": OddDocument(
        tiny.float_tiff, told="has 32-bit pixels (F); save it with 8 or 16 bits", item="page 1", name="odd.tif"
    ),
    "TIFF header alone": OddDocument(lambda: b"II*\0\x08\0\0\0", told="is not where", item="page 1", name="odd.tif"),
    "JPEG called TIFF": OddDocument(
        lambda: tiny.encoded("JPEG"), told="neither a PDF nor a TIFF: it starts with b'\\xff\\xd8", name="odd.tif"
    ),
}
ODD_DOCUMENTS = _PDFS | _TIFFS
