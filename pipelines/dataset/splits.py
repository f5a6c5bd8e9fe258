"""A split of a prepared dataset as records, with every fault found in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pipelines.dataset.image_files import image_size_hw
from pipelines.dataset.label_files import LabelLine, scan_label_file
from pipelines.dataset.region_checks import region_faults
from pipelines.errors import DataError
from pipelines.records import Fault, Record

SPLITS = ("train", "val")
INDEX_NAME = "dataset.yml"
_LISTED_FAULTS = 20


def read_index(root: Path) -> dict[str, Any]:
    """The content of `dataset.yml`, or {} for a plain PaddleOCR folder.

    Raises:
        DataError: the file is there but is no YAML mapping.
    """
    path = root / INDEX_NAME
    if not path.is_file():
        return {}
    try:
        index = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(index, dict):
        raise DataError(f"{path}: expected a mapping, but got a {type(index).__name__}; run prepare again")
    return index


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


def faults_message(headline: str, faults: Sequence[Fault]) -> str:
    """A bounded list of faults under a headline, with the way out."""
    listed = [f"  {fault}" for fault in faults[:_LISTED_FAULTS]]
    rest = [f"  ... and {len(faults) - _LISTED_FAULTS} more"] if len(faults) > _LISTED_FAULTS else []
    way_out = "`wholebatch check` lists all of them; `wholebatch prepare text` repairs what is safe to repair"
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    return "\n".join([f"{headline}: {count}", *listed, *rest, way_out])


def scan_split(root: Path, split: str) -> tuple[list[Record], list[Fault]]:
    """The usable records of a split and everything that is wrong with the others."""
    root = Path(root)
    label_file = root / f"{split}.txt"
    lines, faults = scan_label_file(label_file)
    if not lines:
        return [], faults
    missing = [line for line in lines if not (root / line.path).is_file()]
    if len(missing) == len(lines):
        tried = root / lines[0].path
        reason = f"0 of {len(lines)} images found under {root}; first tried path: {tried}"
        return [], [*faults, Fault(str(label_file), reason, "error")]
    for line in missing:
        faults.append(Fault(str(label_file), f"image not found: {root / line.path}", "error", line.line))
    absent, index = {line.line for line in missing}, read_index(root).get("images") or {}
    records = []
    for line in lines:
        if line.line not in absent:
            record, found = _record_of(root, label_file, line, index)
            faults += found
            records += [record] if record else []
    if records and not any(not region.is_ignored for record in records for region in record.annotation.regions):
        reason = "holds no text to learn or score: every region is ignored, or there is none"
        faults.append(Fault(str(label_file), reason, "error"))
    return records, sorted(faults, key=lambda fault: fault.line or 0)


def _record_of(
    root: Path, label_file: Path, line: LabelLine, index: Mapping[str, Any]
) -> tuple[Record | None, list[Fault]]:
    """The record of one label line with its size, and the faults of its regions."""
    known = index.get(line.path, {})
    try:
        size_hw = tuple(known["size_hw"]) if "size_hw" in known else image_size_hw(root / line.path)
    except DataError as error:
        return None, [Fault(str(label_file), str(error), "error", line.line)]
    faults = [
        Fault(str(label_file), reason, "error", line.line, f"region {number + 1}")
        for number, reason in region_faults(line.annotation.regions, size_hw)
    ]
    return Record(line.path, size_hw, line.annotation, str(known.get("group", line.path))), faults
