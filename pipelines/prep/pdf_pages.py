"""`pages`: the pages of PDFs as pictures with a label file beside them, for a person to label or to correct.

OUT/images/NAME_p001.png …, OUT/Label.txt as PPOCRLabel and `prepare text --from paddleocr` read it, OUT/pages.jsonl
with the file, the page, the dpi and the map from points to pixels of each picture. One page is in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import cv2

from pipelines.dataset import format_label_line, new_dataset_folder
from pipelines.errors import DataError, UsageError
from pipelines.prep.pdf import PageView, TextLine, page_view, rendered, text_lines
from pipelines.prep.shapes import rectangle
from pipelines.records import Fault, Record, TextAnnotation, TextRegion

if TYPE_CHECKING:
    import pypdfium2

DEFAULT_DPI = 300.0
DEFAULT_MAX_PIXELS = 200_000_000


@dataclass(frozen=True)
class PagesReport:
    """What became of the pages.

    Attributes:
        out: the folder.
        num_files: PDFs read.
        num_pages: pictures written.
        num_with_text: of them with a text layer.
        num_drafts: draft labels written.
        faults: files and pages that can't be used.
    """

    out: str
    num_files: int
    num_pages: int
    num_with_text: int
    num_drafts: int
    faults: tuple[Fault, ...]


def write_pages(
    source: Path,
    out: Path,
    *,
    dpi: float = DEFAULT_DPI,
    draft_labels: bool = False,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> PagesReport:
    """Render every page of a PDF, or of all PDFs below a folder, into a new folder.

    Args:
        source: PDF file or folder.
        out: new folder; an existing one with anything in it is refused.
        dpi: pixels per inch, 36 to 1200.
        draft_labels: write the lines of the text layer as labels; they are drafts, for a person to look over.
        max_pixels: larger pages are left out and told.

    Raises:
        UsageError: dpi out of range, `out` not empty.
        DataError: no PDF, or no page that can be rendered.
    """
    if not 36 <= dpi <= 1200:
        raise UsageError(f"--dpi must lie between 36 and 1200, but got {dpi:g}")
    files = _pdfs(source)
    faults: list[Fault] = []
    pages: list[_Written] = []
    with (
        new_dataset_folder(out) as folder,
        (folder / "Label.txt").open("w", encoding="utf-8", newline="\n") as labels,
        (folder / "pages.jsonl").open("w", encoding="utf-8", newline="\n") as index,
    ):
        (folder / "images").mkdir()
        for path in files:
            stem = "_".join(path.relative_to(source if source.is_dir() else path.parent).with_suffix("").parts)
            for item in _pages_of(path, folder, stem, dpi, max_pixels):
                if isinstance(item, Fault):
                    faults.append(item)
                    continue
                item.list_in(labels, index, draft_labels)
                pages.append(item)
        if not pages:
            reasons = "; ".join(map(str, faults[:3]))
            raise DataError(f"{source}: no page of {len(files)} PDF(s) can be rendered: {reasons}")
    num_drafts = sum(len(page.lines) for page in pages) if draft_labels else 0
    with_text = sum(bool(page.lines) for page in pages)
    return PagesReport(str(out), len(files), len(pages), with_text, num_drafts, tuple(faults))


@dataclass(frozen=True, eq=False)
class _Written:
    """One page whose picture is on disk."""

    image: str
    file: Path
    number: int
    dpi: float
    view: PageView
    lines: list[TextLine]

    def list_in(self, labels: TextIO, index: TextIO, draft_labels: bool) -> None:
        drafts = [_region(line) for line in self.lines] if draft_labels else []
        labels.write(format_label_line(Record(self.image, self.view.size_hw, TextAnnotation(tuple(drafts)))) + "\n")
        entry = {
            "image": self.image,
            "pdf": str(self.file),
            "page": self.number,
            "dpi": self.dpi,
            "points_to_pixels": self.view.matrix.tolist(),
            "labels": "draft" if drafts else "none",
        }
        index.write(json.dumps(entry, ensure_ascii=False) + "\n")


def _region(line: TextLine) -> TextRegion:
    return TextRegion([list(point) for point in rectangle(*line.box_xyxy_px)], line.text)  # type: ignore[arg-type]


def _pdfs(source: Path) -> list[Path]:
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    files = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.suffix.lower() == ".pdf")
    if not files:
        raise DataError(f"{source}: no PDF there or below")
    return files


def _pages_of(path: Path, folder: Path, stem: str, dpi: float, max_pixels: int) -> Iterator[_Written | Fault]:
    """Every page of a file, one after the other; a file that can't be opened is one fault."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
    except (pypdfium2.PdfiumError, OSError, ValueError) as error:
        yield Fault(str(path), _unopened(error), "dropped")
        return
    try:
        digits = max(3, len(str(len(document))))
        for index in range(len(document)):
            image = f"images/{stem}_p{index + 1:0{digits}}.png"
            try:
                yield _page(document, path, index, folder, image, dpi, max_pixels)
            except (DataError, pypdfium2.PdfiumError) as error:
                yield Fault(str(path), str(error), "dropped", item=f"page {index + 1}")
    finally:
        document.close()


def _unopened(error: Exception) -> str:
    if "password" in str(error).lower():
        return "is encrypted; save it without a password"
    return f"can't be opened as a PDF: {error}"


def _page(
    document: pypdfium2.PdfDocument, path: Path, index: int, folder: Path, image: str, dpi: float, max_pixels: int
) -> _Written:
    page = document[index]
    try:
        view = page_view(page, dpi, max_pixels)
        lines = text_lines(page, view)
        (folder / image).write_bytes(cv2.imencode(".png", rendered(page, view, dpi))[1].tobytes())
    finally:
        page.close()
    return _Written(image, path, index + 1, dpi, view, lines)
