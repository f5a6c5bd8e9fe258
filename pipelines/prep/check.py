"""`check`: every fault of a dataset in one pass, and what it holds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dataset.splits import SPLITS, read_index, scan_split
from pipelines.errors import DataError
from pipelines.geometry import equivalent_height
from pipelines.prep.images import ImageFacts, examine_image
from pipelines.prep.prepared import SplitCounts
from pipelines.records import Fault, Record

_QUANTILES = (0, 0.1, 0.5, 0.9, 1)


@dataclass(frozen=True)
class CheckReport:
    """What `check` found.

    Attributes:
        root: the dataset.
        counts: by split.
        quantiles: by split, then by "height_px", "width_px" (of images) and "text_height_px" (of regions that are
            not ignored): the 0, 10, 50, 90 and 100 % points; absent where there is nothing to measure.
        faults: everything found; "error" means that it can't be trained on.
    """

    root: str
    counts: Mapping[str, SplitCounts]
    quantiles: Mapping[str, Mapping[str, tuple[float, ...]]]
    faults: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        """Whether it can be trained on and scored."""
        return not any(fault.action == "error" for fault in self.faults)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


def check_dataset(root: Path, workers: int | None = None) -> CheckReport:
    """Decode and compare everything a dataset holds.

    Raises:
        DataError: no such folder, or a `dataset.yml` that is not one.
    """
    root = Path(root)
    if not root.is_dir():
        raise DataError(f"{root}: no such dataset folder")
    index = read_index(root)["images"]
    faults: list[Fault] = []
    records: dict[str, list[Record]] = {}
    for split in SPLITS:
        records[split], found = scan_split(root, split)
        faults += found
    everything = [(split, record) for split in SPLITS for record in records[split]]
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        facts = list(pool.map(examine_image, [root / record.path for _, record in everything]))
    for (_, record), fact in zip(everything, facts, strict=True):
        faults += _image_faults(root, record, fact, index.get(record.path, {}))
    faults += _leaks(root, everything, facts)
    return CheckReport(
        root=str(root),
        counts={split: SplitCounts.of(records[split]) for split in SPLITS},
        quantiles={split: _quantiles(records[split]) for split in SPLITS},
        faults=tuple(faults),
    )


def _image_faults(root: Path, record: Record, facts: ImageFacts, known: Mapping[str, Any]) -> list[Fault]:
    file = str(root / record.path)
    if facts.fault:
        return [Fault(file, facts.fault, "error")]
    if facts.size_hw != record.size_hw:
        sizes = "{1} x {0} px, but dataset.yml says {3} x {2} px".format(*facts.size_hw, *record.size_hw)
        return [Fault(file, f"is {sizes}: the regions belong to another image; run prepare again", "error")]
    if known.get("sha256", facts.sha256) != facts.sha256:
        return [Fault(file, "is not the file that prepare wrote (sha256 differs)", "warning")]
    return [Fault(file, facts.note, "warning")] if facts.note else []


def _leaks(root: Path, everything: Sequence[tuple[str, Record]], facts: Sequence[ImageFacts]) -> list[Fault]:
    """Pictures, and groups, that train and validate at once."""
    val = [(record, fact) for (split, record), fact in zip(everything, facts, strict=True) if split == "val"]
    val_contents = {fact.sha256: record.path for record, fact in val if fact.sha256}
    val_groups = {record.group: record.path for record, _ in val}
    faults = []
    for (split, record), fact in zip(everything, facts, strict=True):
        if split != "train":
            continue
        file = str(root / record.path)
        if fact.sha256 in val_contents:
            reason = f"trains and validates: the same picture as {val_contents[fact.sha256]} in val"
            faults.append(Fault(file, reason, "error"))
        elif record.group in val_groups:
            reason = f"group {record.group!r} is in val too, with {val_groups[record.group]}"
            faults.append(Fault(file, reason, "warning"))
    return faults


def _quantiles(records: Sequence[Record]) -> dict[str, tuple[float, ...]]:
    regions = [region for record in records for region in record.annotation.regions if not region.is_ignored]
    measured: dict[str, list[float]] = {
        "height_px": [record.size_hw[0] for record in records],
        "width_px": [record.size_hw[1] for record in records],
        "text_height_px": [equivalent_height(region.points_px) for region in regions],
    }
    return {
        name: tuple(round(float(value), 1) for value in np.quantile(values, _QUANTILES))
        for name, values in measured.items()
        if values
    }
