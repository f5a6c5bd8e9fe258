"""A split of a prepared dataset as records, with every fault found in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.dataset.image_files import image_size_hw, is_there
from pipelines.dataset.index import read_index
from pipelines.dataset.label_files import LabelLine, scan_label_file
from pipelines.dataset.region_checks import region_faults
from pipelines.errors import DataError
from pipelines.records import Fault, Record

SPLITS = ("train", "val")
_LISTED_FAULTS = 20
_WAY_OUT = "`wholebatch check` lists all of them; `wholebatch prepare text` repairs what is safe to repair"


def load_split(root: Path, split: str) -> list[Record]:
    """All records of a split, in the label file's order.

    Raises:
        DataError: every fault of the split in one message, each with file and line.
    """
    records, faults = scan_split(root, split)
    errors = [fault for fault in faults if fault.action == "error"]
    if errors:
        raise DataError(faults_message(f"{Path(root) / f'{split}.txt'} can't be used", errors))
    return records


def faults_message(headline: str, faults: Sequence[Fault], way_out: str = _WAY_OUT) -> str:
    """A bounded list of faults under a headline, with the way out."""
    listed = [f"  {fault}" for fault in faults[:_LISTED_FAULTS]]
    rest = [f"  ... and {len(faults) - _LISTED_FAULTS} more"] if len(faults) > _LISTED_FAULTS else []
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return "\n".join([f"{headline}: {count}", *listed, *rest, way_out])


def scan_split(root: Path, split: str) -> tuple[list[Record], list[Fault]]:
    """The usable records of a split and everything that is wrong with the others, by line."""
    root = Path(root)
    label_file = root / f"{split}.txt"
    all_lines, faults = scan_label_file(label_file)
    lines, missing = _present(root, label_file, all_lines)
    faults += missing
    images = read_index(root)["images"] if lines else {}
    records = []
    for line in lines:
        record, found = _record_of(root, label_file, line, images)
        faults += found
        records += [record] if record else []
    if records and not any(not region.is_ignored for record in records for region in record.annotation.regions):
        reason = "holds no text to learn or score: every region is ignored, or there is none"
        faults.append(Fault(str(label_file), reason, "error"))
    image_of = {line.line: line.path for line in all_lines}
    told = [replace(fault, image=image_of.get(fault.line, "")) if fault.line else fault for fault in faults]
    return records, sorted(told, key=lambda fault: fault.line or 0)


def _present(root: Path, label_file: Path, lines: list[LabelLine]) -> tuple[list[LabelLine], list[Fault]]:
    """The lines whose image is there; one fault for a wrong root, else one for each missing image."""
    missing = [line for line in lines if not is_there(root / line.path)]
    if missing and len(missing) == len(lines):
        first = root / missing[0].path
        reason = f"0 of {len(lines)} images found under {root}; first tried path: {first}"
        return [], [Fault(str(label_file), reason, "error")]
    faults = [Fault(str(label_file), f"image not found: {root / line.path}", "error", line.line) for line in missing]
    absent = {line.line for line in missing}
    return [line for line in lines if line.line not in absent], faults


def _record_of(
    root: Path, label_file: Path, line: LabelLine, images: Mapping[str, Any]
) -> tuple[Record | None, list[Fault]]:
    """The record of one label line with its size, and the faults of its regions."""
    known = images.get(line.path, {})
    try:
        size_hw = known.get("size_hw") or image_size_hw(root / line.path)
    except DataError as error:
        return None, [Fault(str(label_file), str(error), "error", line.line)]
    height, width = size_hw
    faults = [
        Fault(str(label_file), reason, "error", line.line, f"region {line.numbers[index]}")
        for index, reason in region_faults(line.annotation.regions, (height, width))
    ]
    return Record(line.path, (height, width), line.annotation, str(known.get("group", line.path))), faults
