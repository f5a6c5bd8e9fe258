"""Label files with one region a line, `x1,y1,x2,y2,x3,y3,x4,y4,text`: the text may hold commas (SROIE, ICDAR)."""

from __future__ import annotations

from pathlib import Path

from pipelines.prep.raw import RawRegion, is_ignore_mark
from pipelines.records import Fault


def read_corner_file(path: Path) -> tuple[tuple[RawRegion, ...], list[Fault]]:
    """All regions of a file, and what had to be dropped or repaired to read it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return (), [Fault(str(path), f"can't be read: {error.strerror or error}", "dropped")]
    regions: list[RawRegion] = []
    faults: list[Fault] = []
    # A byte-order mark and Windows line ends are ordinary in these formats: not worth a finding.
    for number, raw_line in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if not raw_line.strip():
            continue
        line, fault = _decoded(path, number, raw_line)
        region = _region(line, number)
        if fault:
            faults.append(fault)
        if region is None:
            reason = f"expected x1,y1,x2,y2,x3,y3,x4,y4,text, but got {line[:60]!r}"
            faults.append(Fault(str(path), reason, "dropped", number))
        else:
            regions.append(region)
    if not regions and not faults:
        faults.append(Fault(str(path), "the label file is empty: kept as an image without text", "warning"))
    return tuple(regions), faults


def _decoded(path: Path, number: int, raw_line: bytes) -> tuple[str, Fault | None]:
    try:
        return raw_line.decode("utf-8"), None
    except UnicodeDecodeError as error:
        reason = f"byte {raw_line[error.start]:#04x} is not UTF-8: the line is read as Windows-1252"
        return raw_line.decode("cp1252", errors="replace"), Fault(str(path), reason, "repaired", number)


def _region(line: str, number: int) -> RawRegion | None:
    """The region of one line, or None if it does not start with 8 numbers."""
    fields = line.split(",", 8)
    try:
        numbers = [float(field) for field in fields[:8]]
    except ValueError:
        return None
    if len(numbers) < 8:
        return None
    transcription = fields[8].strip() if len(fields) > 8 else ""
    points = [numbers[i : i + 2] for i in range(0, 8, 2)]
    return RawRegion(points, transcription, is_ignore_mark(transcription), number)
