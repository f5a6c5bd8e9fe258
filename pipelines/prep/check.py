"""`check`: every fault of a dataset in one pass, and what it holds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.dataset import SPLITS, defect_classes, read_index, scan_defect_split, scan_split
from pipelines.errors import DataError
from pipelines.prep.counts import Counts, DefectCounts, SplitCounts, defect_quantiles, text_quantiles
from pipelines.prep.images import ImageFacts, examine_image
from pipelines.records import Fault, Record

_DEFECTS = "defect_detection"


@dataclass(frozen=True)
class CheckReport:
    """What `check` found.

    Attributes:
        root: the dataset.
        task: "text_detection" or "defect_detection".
        counts: by split.
        quantiles: by split, then by "height_px", "width_px" (of images) and "text_height_px", or "defect_short_px" and
            "defect_long_px" (of what is not ignored): the 0, 10, 50, 90 and 100 % points; absent where there is
            nothing to measure.
        faults: everything found; "error" means that it can't be trained on.
    """

    root: str
    task: str
    counts: Mapping[str, Counts]
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
    index = read_index(root)
    task = _task_of(root, index)
    scan = scan_defect_split if task == _DEFECTS else scan_split
    faults: list[Fault] = []
    records: dict[str, list[Record]] = {}
    for split in SPLITS:
        records[split], found = scan(root, split)
        faults += found
    everything = [(split, record) for split in SPLITS for record in records[split]]
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        facts = list(pool.map(examine_image, [root / record.path for _, record in everything]))
    for (_, record), fact in zip(everything, facts, strict=True):
        faults += _image_faults(root, record, fact, index["images"].get(record.path, {}))
    faults += _leaks(root, everything, facts)
    counts = _counts(root, task, records)
    quantiles = defect_quantiles if task == _DEFECTS else text_quantiles
    return CheckReport(
        root=str(root),
        task=task,
        counts=counts,
        quantiles={split: quantiles(records[split]) for split in SPLITS},
        faults=(*faults, *_unscored(root, counts)),
    )


def _task_of(root: Path, index: Mapping[str, Any]) -> str:
    """As `dataset.yml` says; without it, by the kind of label file that is there."""
    said = index.get("task")
    if said is not None:
        return str(said)
    return _DEFECTS if any((root / f"{split}.json").is_file() for split in SPLITS) else "text_detection"


def _counts(root: Path, task: str, records: Mapping[str, Sequence[Record]]) -> dict[str, Counts]:
    if task != _DEFECTS:
        return {split: SplitCounts.of(records[split]) for split in SPLITS}
    try:
        classes = defect_classes(root)
    except DataError:
        classes = ()  # told with the splits, which then have no records
    return {split: DefectCounts.of(records[split], classes) for split in SPLITS}


def _unscored(root: Path, counts: Mapping[str, Counts]) -> list[Fault]:
    """A warning for every class that a split has nothing of: it can't be learned, or not be scored."""
    faults = []
    for split, lack in zip(SPLITS, ("learn it from", "score it on"), strict=True):
        of_split = counts[split]
        if isinstance(of_split, DefectCounts) and of_split.defects:
            missing = [name for name, number in of_split.per_class.items() if number == 0]
            file = str(root / f"{split}.json")
            faults += [
                Fault(file, f"class {name!r} has no object here: nothing to {lack}", "warning") for name in missing
            ]
    return faults


def _image_faults(root: Path, record: Record, facts: ImageFacts, known: Mapping[str, Any]) -> list[Fault]:
    file = str(root / record.path)
    if facts.fault:
        return [Fault(file, facts.fault, "error")]
    if facts.size_hw != record.size_hw:
        sizes = "{1} x {0} px, but dataset.yml says {3} x {2} px".format(*facts.size_hw, *record.size_hw)
        return [Fault(file, f"is {sizes}: the labels belong to another image; run prepare again", "error")]
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
