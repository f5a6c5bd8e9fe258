"""Time and memory of `wholebatch pages` on a PDF of many A4 pages with a text layer.

python tests/benchmarks/bench_pages.py --pages 300 --dpi 300
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

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


def main() -> None:
    """Print seconds a page and the peak resident memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--dpi", type=float, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "many.pdf").write_bytes(document(arguments.pages))
        started = time.perf_counter()
        report = write_pages(Path(folder) / "many.pdf", Path(folder) / "out", dpi=arguments.dpi, draft_labels=True)
        seconds = time.perf_counter() - started
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{report.num_pages} pages at {arguments.dpi:g} dpi, {report.num_drafts} drafts")
    print(f"{seconds / report.num_pages:.2f} s a page, peak resident memory {peak_mib:.0f} MiB")


if __name__ == "__main__":
    main()
