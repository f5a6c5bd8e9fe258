"""`pages`: the pages of PDFs and TIFFs as pictures with a label file beside them, for a person to label or to correct.

OUT/images/NAME_p001.png …, OUT/Label.txt as PPOCRLabel and `prepare text --from paddleocr` read it, OUT/pages.jsonl
with the file, the page, the dpi and the way back of each picture. One page is in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2

from pipelines.dataset import format_label_line, new_dataset_folder
from pipelines.errors import DataError, UsageError
from pipelines.prep.documents import Page, PageReader, Rendering, TextLine
from pipelines.prep.images import DEFAULT_MAX_PIXELS, refuse_pixel_budget
from pipelines.prep.page_groups import PAGES_NAME
from pipelines.prep.pdf import pdf_pages
from pipelines.prep.shapes import rectangle
from pipelines.prep.target_names import TargetNames
from pipelines.prep.tiff import TIFF_STARTS, tiff_pages
from pipelines.records import Fault, Record, TextAnnotation, TextRegion

DEFAULT_DPI = 300.0
_SUFFIXES = (".pdf", ".tif", ".tiff")
_PDF_HEADER_WITHIN = 1024  # bytes; what readers of PDFs tolerate before "%PDF"


@dataclass(frozen=True)
class PagesReport:
    """What became of the pages.

    Attributes:
        out: the folder.
        num_files: PDFs and TIFFs found.
        num_pages: pictures written.
        num_with_text: of them with a text layer.
        num_drafts: draft labels written.
        faults: files and pages that can't be used, or should be looked at.
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
    """Make a picture of every page of a PDF or TIFF, or of all below a folder, in a new folder.

    Args:
        source: PDF or TIFF file, or folder.
        out: new folder; an existing one with anything in it is refused.
        dpi: pixels per inch of PDFs, 36 to 1200; the pages of a TIFF keep their own pixels.
        draft_labels: write the lines of the text layer as labels; they are drafts, for a person to look over.
        max_pixels: larger pages are left out and told.

    Raises:
        UsageError: dpi or pixel budget out of range, `out` not empty.
        DataError: no PDF or TIFF, or no page that can be used.
    """
    if not 36 <= dpi <= 1200:
        raise UsageError(f"--dpi must lie between 36 and 1200, but got {dpi:g}")
    refuse_pixel_budget(max_pixels)
    files = _documents(source)
    faults: list[Fault] = []
    num_pages = num_with_text = num_drafts = 0
    with new_dataset_folder(out) as folder:
        for item in _written(files, source, folder, Rendering(dpi, max_pixels), draft_labels):
            if isinstance(item, Fault):
                faults.append(item)
                continue
            num_pages += 1
            num_with_text += bool(item)
            num_drafts += item if draft_labels else 0
        if not num_pages:
            reasons = "; ".join(map(str, faults[:3]))
            raise DataError(f"{source}: no page of {len(files)} file(s) can be used: {reasons}")
    return PagesReport(str(out), len(files), num_pages, num_with_text, num_drafts, tuple(faults))


def _documents(source: Path) -> list[Path]:
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    if source.is_file():
        return [source]
    files = sorted(path for path in source.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file())
    if not files:
        raise DataError(f"{source}: no PDF or TIFF there or below")
    return files


def _written(
    files: list[Path], source: Path, folder: Path, rendering: Rendering, draft_labels: bool
) -> Iterator[int | Fault]:
    """Write picture, label line and index line of every page; the number of its text lines, or what is wrong."""
    base = source if source.is_dir() else source.parent
    names = TargetNames()
    (folder / "images").mkdir()
    with (
        (folder / "Label.txt").open("w", encoding="utf-8", newline="\n") as labels,
        (folder / PAGES_NAME).open("w", encoding="utf-8", newline="\n", errors="replace") as index,
    ):
        for path in files:
            stem = names.of("_".join(path.relative_to(base).with_suffix("").parts), "")
            for item in _pages_of(path, rendering):
                if isinstance(item, Fault):
                    yield item
                    continue
                image = f"images/{stem}_p{item.number:0{max(3, len(str(item.num_pages)))}}.png"
                (folder / image).write_bytes(cv2.imencode(".png", item.picture)[1].tobytes())
                drafts = tuple(map(_region, item.lines)) if draft_labels else ()
                labels.write(format_label_line(Record(image, item.picture.shape[:2], TextAnnotation(drafts))) + "\n")
                index.write(json.dumps(_index_entry(image, path, item, bool(drafts)), ensure_ascii=False) + "\n")
                if item.note:
                    yield Fault(str(path), item.note, "warning", item=f"page {item.number}")
                yield len(item.lines)


def _pages_of(path: Path, rendering: Rendering) -> Iterator[Page | Fault]:
    try:
        with path.open("rb") as file:
            start = file.read(_PDF_HEADER_WITHIN)
    except OSError as error:
        yield Fault(str(path), f"can't be read: {error.strerror or error}", "dropped")
        return
    reader = _reader(start)
    if reader is None:
        found = f"it starts with {start[:8]!r}" if start else "it is empty (0 bytes)"
        yield Fault(str(path), f"is neither a PDF nor a TIFF: {found}", "dropped")
        return
    yield from reader(path, rendering)


def _reader(start: bytes) -> PageReader | None:
    """By content: people rename files."""
    if start.startswith(TIFF_STARTS):
        return tiff_pages
    return pdf_pages if b"%PDF" in start else None


def _index_entry(image: str, path: Path, page: Page, has_drafts: bool) -> dict[str, Any]:
    labels = "draft" if has_drafts else "none"
    return {"image": image, "file": str(path), "page": page.number, **page.origin, "labels": labels}


def _region(line: TextLine) -> TextRegion:
    return TextRegion([list(point) for point in rectangle(*line.box_xyxy_px)], line.text)  # type: ignore[arg-type]
