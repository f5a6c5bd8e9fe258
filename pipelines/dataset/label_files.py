"""PaddleOCR label files: one line an image, `path<TAB>[{"transcription", "points", "difficult"}, ...]`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dataset.encodings import EncodingError, decode
from pipelines.errors import DataError
from pipelines.records import Fault, Record, TextAnnotation, TextRegion

IGNORED_TRANSCRIPTIONS = frozenset({"###", "*"})


@dataclass(frozen=True, eq=False)
class LabelLine:
    """One line of a label file that could be parsed.

    Attributes:
        path: normalised, relative to the dataset root (or absolute).
        annotation: the regions that could be read.
        line: counts from 1.
        numbers: for each region its number in the line, from 1; unreadable ones are skipped.
    """

    path: str
    annotation: TextAnnotation
    line: int
    numbers: tuple[int, ...]


def split_label_line(line: str) -> tuple[str, list[Any]]:
    """Cut a label line into its path and its list of region entries, both as written.

    Raises:
        DataError: no tab, no path, or the rest is no JSON list (file and line are the caller's to add).
    """
    if not line.strip():
        raise DataError("the line is blank")
    path, tab, text = line.partition("\t")
    if not tab:
        raise DataError("no tab between the path and the list of regions (expected path<TAB>[...])")
    if not path.strip():
        raise DataError("no path before the tab")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the regions are no valid JSON: {error}") from None
    if not isinstance(entries, list):
        raise DataError(f"the regions must be a JSON list, but are a {type(entries).__name__}")
    return path, entries


def region_from_entry(entry: Any) -> TextRegion:
    """The text region of one entry {"transcription", "points", "difficult"} of a label line.

    Raises:
        DataError: no points, fewer than 3, or coordinates that are not finite numbers.
    """
    if not isinstance(entry, Mapping) or "points" not in entry:
        raise DataError('expected {"transcription": ..., "points": [[x, y], ...]}, but "points" is missing')
    points = entry["points"]
    if not isinstance(points, list) or len(points) < 3:
        count = len(points) if isinstance(points, list) else 0
        raise DataError(f"a polygon needs at least 3 points, but this has {count}")
    # A string like "12.5" would pass numpy's conversion here and fail in PaddleOCR.
    if not all(isinstance(p, list) and len(p) == 2 and all(type(c) in (int, float) for c in p) for p in points):
        shown = json.dumps(points, ensure_ascii=False)[:80]
        raise DataError(f"every point must be two numbers [x, y], but got {shown}")
    transcription = str(entry.get("transcription", ""))
    is_ignored = transcription in IGNORED_TRANSCRIPTIONS or entry.get("difficult") is True
    try:
        return TextRegion(np.array(points, dtype=np.float32), transcription, is_ignored)
    except (ValueError, OverflowError) as error:  # JSON has integers that no float holds
        raise DataError(str(error)) from None


def parse_label_line(line: str) -> tuple[str, TextAnnotation]:
    """Path and annotation of one PaddleOCR label line; "###", "*" and "difficult": true mark ignore regions.

    Raises:
        DataError: the first thing wrong with the line, without file and line number.
    """
    path, entries = split_label_line(line.rstrip("\r\n"))
    return normalised_path(path), TextAnnotation(tuple(region_from_entry(entry) for entry in entries))


def format_label_line(record: Record) -> str:
    """The PaddleOCR label line of a record, without a line end; coordinates rounded to 0.01 px.

    An ignore region is written as "###", the only mark that PaddleOCR's detector reads.
    """
    if any(character in record.path for character in "\t\r\n"):
        raise ValueError(f"a path in a label file can't hold a tab or line break, but got {record.path!r}")
    entries = []
    for region in record.annotation.regions:
        points = [[shortest(c) for c in point] for point in region.points_px.tolist()]
        transcription = region.transcription
        if region.is_ignored and transcription not in IGNORED_TRANSCRIPTIONS:
            transcription = "###"
        entries.append({"transcription": transcription, "points": points})
    return f"{record.path}\t{json.dumps(entries, ensure_ascii=False)}"


def shortest(coordinate: float) -> int | float:
    """A coordinate to 0.01 px, without ".0"."""
    rounded = round(coordinate, 2)
    return int(rounded) if rounded == int(rounded) else rounded


def normalised_path(path: str) -> str:
    """A label file's path with forward slashes and without leading "./"."""
    path = path.replace("\\", "/")
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def scan_label_file(label_file: Path) -> tuple[list[LabelLine], list[Fault]]:
    """Every line of a label file that can be parsed, and a fault for every one that can't."""
    text, faults = decoded(label_file)
    lines: list[LabelLine] = []
    first_seen: dict[str, int] = {}
    for number, text_line in numbered_lines(text):
        try:
            path, entries = split_label_line(text_line)
            path = normalised_path(path)
            if path in first_seen:
                raise DataError(f"{path} is labelled twice, first on line {first_seen[path]}")
        except DataError as error:
            faults.append(Fault(str(label_file), str(error), "error", number))
            continue
        first_seen[path] = number
        regions, reasons = _regions_of(entries)
        faults += [Fault(str(label_file), reason, "error", number, f"region {n}") for n, reason in reasons.items()]
        lines.append(LabelLine(path, TextAnnotation(tuple(regions.values())), number, tuple(regions)))
    if not lines and not faults:
        faults.append(Fault(str(label_file), "the label file is empty: no images", "error"))
    return lines, faults


def _regions_of(entries: list[Any]) -> tuple[dict[int, TextRegion], dict[int, str]]:
    """By number from 1: the regions that can be read, and the reasons why the others can't."""
    regions: dict[int, TextRegion] = {}
    reasons: dict[int, str] = {}
    for number, entry in enumerate(entries, 1):
        try:
            regions[number] = region_from_entry(entry)
        except DataError as error:
            reasons[number] = str(error)
    return regions, reasons


def decoded(label_file: Path) -> tuple[str, list[Fault]]:
    """The text of a label file with plain line ends, and faults for what PaddleOCR would stumble over."""
    name = str(label_file)
    try:
        content = label_file.read_bytes()
    except FileNotFoundError:
        return "", [Fault(name, "no such label file; `wholebatch prepare text` makes it from raw data", "error")]
    except OSError as error:
        return "", [Fault(name, f"can't be read: {error.strerror or error}", "error")]
    faults = []
    if content.startswith(b"\xef\xbb\xbf"):
        faults.append(Fault(name, "starts with a byte-order mark (BOM); save it as UTF-8 without BOM", "error", 1))
    try:
        found = decode(content)
    except EncodingError as error:
        return "", [*faults, Fault(name, str(error), "error", error.line)]
    faults += [Fault(name, note, "error", line) for line, note in found.notes]
    text = found.text
    if num_returns := text.count("\r"):
        reason = f"has {num_returns} Windows line ends (CRLF); expected line feeds alone"
        faults.append(Fault(name, reason, "error", text.count("\n", 0, text.index("\r")) + 1))
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, faults


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines from 1, by line feeds only: a transcription may hold other Unicode line breaks."""
    lines = text.split("\n")
    return enumerate(lines[:-1] if lines[-1] == "" else lines, 1)
