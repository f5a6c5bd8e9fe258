"""Time and memory of `wholebatch pages` on a file of many A4 pages: a PDF with a text layer, or a fax as TIFF.

python tests/benchmarks/bench_pages.py --pages 300 --dpi 300 --format pdf
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image, TiffImagePlugin

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout that is not installed

from pipelines.prep import write_pages

LINES = 40


def document(num_pages: int) -> bytes:
    """A4 pages of 40 lines each, every page with content of its own."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for page in range(num_pages):
        lines = (
            f"BT /F 11 Tf 50 {800 - 19 * n} Td (Page {page}, item {n}: 3 pieces, 12,50 EUR) Tj ET" for n in range(LINES)
        )
        drawn = "\n".join(lines)
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {len(objects)} 0 R /Resources"
            " << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Count {num_pages} /Kids [{' '.join(kids)}] >>"
    content, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    return (content + f"xref\n0 {size}\n0000000000 65535 f \n{table}{end}").encode("ascii")


def write_fax(path: Path, num_pages: int, dpi: float) -> None:
    """A4 pages of 1 bit with 40 black bars each, group 4; one page is in memory at a time."""
    with TiffImagePlugin.AppendingTiffWriter(str(path), new=True) as file:
        for number in range(num_pages):
            page = Image.new("1", (round(8.27 * dpi), round(11.69 * dpi)), 1)
            for line in range(LINES):
                top = round((0.6 + 0.26 * line) * dpi)
                page.paste(0, (round(0.7 * dpi), top, round((2 + number % 5) * dpi), top + round(0.1 * dpi)))
            page.save(file, "TIFF", compression="group4", dpi=(dpi, dpi))
            file.newFrame()


def main() -> None:
    """Print seconds a page and the peak resident memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--dpi", type=float, default=300)
    parser.add_argument("--format", choices=("pdf", "tiff"), default="pdf")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        many = Path(folder) / f"many.{arguments.format}"
        if arguments.format == "tiff":
            write_fax(many, arguments.pages, arguments.dpi)
        else:
            many.write_bytes(document(arguments.pages))
        started = time.perf_counter()
        report = write_pages(many, Path(folder) / "out", dpi=arguments.dpi, draft_labels=True)
        seconds = time.perf_counter() - started
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{report.num_pages} pages at {arguments.dpi:g} dpi, {report.num_drafts} drafts")
    print(f"{seconds / report.num_pages:.2f} s a page, peak resident memory {peak_mib:.0f} MiB")


if __name__ == "__main__":
    main()
