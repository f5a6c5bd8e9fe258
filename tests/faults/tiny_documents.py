"""PDFs written by hand: a page of text and a black square, turned, cropped, encrypted or broken as asked."""

from __future__ import annotations

from collections.abc import Sequence

MEDIA = (10, 20, 310, 220)
"""300 x 200 points, the origin outside."""
TEXT = ((40.0, 150.0, "Invoice 4711"), (40.0, 100.0, "Total"), (220.0, 100.0, "3,50 EUR"), (250.0, 30.0, "hidden"))
SQUARE = (100, 60, 110, 70)
"""Left, bottom, right, top of the black square, points."""


def pdf(
    *,
    rotation: int = 0,
    crop: Sequence[float] | None = None,
    media: Sequence[float] = MEDIA,
    text: Sequence[tuple[float, float, str]] = TEXT,
    pages: int = 1,
    count: int | None = None,
    more: str = "",
    trailer: str = "",
    catalog: str = "",
    objects_after: Sequence[str] = (),
) -> bytes:
    """A PDF in Helvetica of 20 points.

    Args:
        rotation: of its pages, degrees clockwise.
        crop: crop box, points.
        media: media box, points.
        text: (x, y, what it says) of every line.
        pages: how many of them, all alike.
        count: how many it says there are; None: as many.
        more: further entries of a page.
        trailer: further entries of the trailer.
        catalog: further entries of the catalogue.
        objects_after: further objects, numbered from 4 + `pages`.
    """
    drawn = "".join(f"BT /F 20 Tf {x} {y} Td ({said}) Tj ET\n" for x, y, said in text) + "100 60 10 10 re f\n"
    kids = " ".join(f"{4 + number} 0 R" for number in range(pages))
    shown = "" if crop is None else f"/CropBox [{' '.join(map(str, crop))}]"
    page = (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [{' '.join(map(str, media))}] {shown} /Rotate {rotation} {more}"
        " /Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> /Contents 3 0 R >>"
    )
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
        f"<< /Type /Pages /Count {pages if count is None else count} /Kids [{kids}] >>",
        f"<< /Length {len(drawn)} >>\nstream\n{drawn}endstream",
        *[page] * pages,
        *objects_after,
    ]
    content, places = "%PDF-1.6\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"trailer << /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{len(content)}\n%%EOF\n"
    return (content + f"xref\n0 {size}\n0000000000 65535 f \n{table}{end}").encode("latin-1")


def encrypted_pdf() -> bytes:
    """With a password that nobody knows (standard security handler, 40 bits)."""
    key = "".join(f"{byte:02x}" for byte in range(32))
    encrypt = f"/Encrypt << /Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <{key}> /U <{key}> >>"
    return pdf(trailer=f"{encrypt} /ID [<00> <00>]")


_DRAWN = "0 0 40 20 re f"
_BLACK = f"<< /Type /XObject /Subtype /Form /BBox [0 0 40 20] /Length {len(_DRAWN)} >>\nstream\n{_DRAWN}\nendstream"


def filled_pdf() -> bytes:
    """With a form whose only field shows a black area of 40 x 20 points at (200, 160)."""
    field = "/Subtype /Widget /FT /Tx /T (a) /V (4711) /F 4 /Rect [200 160 240 180] /AP << /N 5 0 R >>"
    return pdf(
        text=(),
        more="/Annots [6 0 R]",
        objects_after=[_BLACK, f"<< /Type /Annot {field} >>"],
        catalog="/AcroForm << /Fields [6 0 R] >>",
    )


def stamped_pdf() -> bytes:
    """With a black stamp of 40 x 20 points at (200, 160), which is an annotation and no part of the page."""
    stamp = "<< /Type /Annot /Subtype /Stamp /F 4 /Rect [200 160 240 180] /AP << /N 5 0 R >> >>"
    return pdf(text=(), more=f"/Annots [{stamp}]", objects_after=[_BLACK])
