"""`check`: every fault of a dataset in one pass, and what it holds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.dataset import SPLITS, defect_classes, read_index, scan_defect_split, scan_split
from pipelines.dataset.counts import Counts, DefectCounts, SplitCounts
from pipelines.errors import DataError, UsageError
from pipelines.prep.granularity import granularity_faults
from pipelines.prep.near_duplicates import NearDuplicate
from pipelines.prep.quantiles import defect_quantiles, text_quantiles
from pipelines.prep.remedies import with_remedies
from pipelines.prep.seen_images import SeenImage, across_splits, copy_faults, image_faults, see_images
from pipelines.prep.too_small import TooSmall, too_small_defects, too_small_text
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
        near_duplicates: images of train that look like one of val, the most alike first; copies and images of a
            common group are told as faults instead.
        num_not_compared: pairs of train and val that resemble each other and were too many to be compared.
        too_small: what the network can't see; None where there is nothing to see.
    """

    root: str
    task: str
    counts: Mapping[str, Counts]
    quantiles: Mapping[str, Mapping[str, tuple[float, ...]]]
    faults: tuple[Fault, ...]
    near_duplicates: tuple[NearDuplicate, ...] = ()
    num_not_compared: int = 0
    too_small: TooSmall | None = None

    @property
    def ok(self) -> bool:
        """Whether it can be trained on and scored."""
        return not any(fault.action == "error" for fault in self.faults)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


def check_dataset(
    root: Path, workers: int | None = None, executor: Executor | None = None, side_px: int | None = None
) -> CheckReport:
    """Decode and compare everything a dataset holds.

    Args:
        root: the dataset.
        workers: threads; None: one a core.
        executor: where to decode and compare instead (processes, a cluster that sees the same files); it stays open.
        side_px: longest side at which a network is to see the images; None: as the shipped configurations.

    Raises:
        DataError: no such folder, or a `dataset.yml` that is not one.
        UsageError: a side below 1.
    """
    if side_px is not None and side_px < 1:
        raise UsageError(f"the longest side that the network sees must be at least 1 px, but got {side_px}")
    root = Path(root)
    if not root.is_dir():
        raise DataError(f"{root}: no such dataset folder")
    index = read_index(root)
    task = _task_of(root, index)
    scan = scan_defect_split if task == _DEFECTS else scan_split
    scanned = {split: scan(root, split) for split in SPLITS}
    records = {split: found[0] for split, found in scanned.items()}
    # Decoding, hashing and comparing release the GIL, so threads use all cores and nothing needs pickling.
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as threads:
        seen = see_images(root, records, executor or threads)
        alike, num_not_compared = across_splits(root, seen, executor or threads)
    counts = _counts(root, task, records)
    quantiles = defect_quantiles if task == _DEFECTS else text_quantiles
    too_small = too_small_defects if task == _DEFECTS else too_small_text
    faults = [fault for split in SPLITS for fault in scanned[split][1]]
    faults += [fault for image in seen for fault in image_faults(root, image, index["images"])]
    faults += [*_leaks(root, seen), *copy_faults(root, seen), *_alike_fault(root, alike), *_unscored(root, counts)]
    if task != _DEFECTS:
        faults += granularity_faults(str(root), records)
    return CheckReport(
        root=str(root),
        task=task,
        counts=counts,
        quantiles={split: quantiles(records[split]) for split in SPLITS},
        faults=tuple(with_remedies(faults)),
        near_duplicates=tuple(alike),
        num_not_compared=num_not_compared,
        too_small=too_small([*records["train"], *records["val"]], side_px),
    )


def labelled_images(root: Path) -> list[tuple[str, Record]]:
    """Every image of a dataset that has usable labels, with its split; faults are `check_dataset`'s to tell."""
    scan = scan_defect_split if _task_of(root, read_index(root)) == _DEFECTS else scan_split
    return [(split, record) for split in SPLITS for record in scan(root, split)[0]]


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


def _leaks(root: Path, seen: Sequence[SeenImage]) -> list[Fault]:
    """Pictures, and groups, that train and validate at once."""
    val = [image for image in seen if image.split == "val"]
    val_contents = {image.facts.sha256: image.record.path for image in val if image.facts.sha256}
    val_groups = {image.record.group: image.record.path for image in val}
    faults = []
    for image in seen:
        if image.split != "train":
            continue
        file, group = str(root / image.record.path), image.record.group
        if image.facts.sha256 in val_contents:
            reason = f"trains and validates: the same picture as {val_contents[image.facts.sha256]} in val"
            faults.append(Fault(file, reason, "error", image=image.record.path))
        elif group in val_groups:
            reason = f"group {group!r} is in val too, with {val_groups[group]}"
            faults.append(Fault(file, reason, "warning", image=image.record.path))
    return faults


def _alike_fault(root: Path, alike: Sequence[NearDuplicate]) -> list[Fault]:
    """One warning, with the most alike of all."""
    if not alike:
        return []
    first, number = alike[0], len({pair.train for pair in alike})
    reason = (
        f"looks like {first.val} of val ({100 * first.similarity:.1f} % of it agrees); images of train like one of "
        f"val: {number}; what shows the same page or part belongs on one side (prepare --group-by)"
    )
    return [Fault(str(root / first.train), reason, "warning")]
