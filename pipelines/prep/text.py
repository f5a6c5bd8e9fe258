"""`prepare text`: raw files of any known format become a dataset that trains, or a message that says why not."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.dataset import refuse_existing
from pipelines.dataset.splits import SPLITS, faults_message
from pipelines.errors import DataError, UsageError
from pipelines.prep.formats import FORMATS
from pipelines.prep.prepared import PreparedImage, SplitCounts, assigned, examined
from pipelines.prep.raw import RawImage
from pipelines.prep.split import group_rule
from pipelines.prep.write import write_dataset
from pipelines.records import Fault


@dataclass(frozen=True)
class PrepareReport:
    """What `prepare` found and wrote (or, as a dry run, would write).

    Attributes:
        source: where the raw files are.
        format: which reader read them.
        out: the dataset.
        dry_run: nothing was written.
        split_rule: how the split was made; goes into `dataset.yml`.
        counts: by split.
        num_groups: by split.
        num_converted: images that could not be copied byte for byte.
        faults: everything repaired, dropped or worth knowing.
    """

    source: str
    format: str
    out: str
    dry_run: bool
    split_rule: Mapping[str, Any]
    counts: Mapping[str, SplitCounts]
    num_groups: Mapping[str, int]
    num_converted: int
    faults: tuple[Fault, ...]

    def actions(self) -> dict[str, int]:
        """How many faults were repaired, dropped, warnings."""
        return dict(sorted(Counter(fault.action for fault in self.faults).items()))

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "actions": self.actions()}


def prepare_text(
    source: Path,
    format: str,
    out: Path,
    *,
    val_share: float = 0.2,
    group_by: str | None = None,
    seed: int = 0,
    images: Path | None = None,
    dry_run: bool = False,
    workers: int | None = None,
) -> PrepareReport:
    """Read, check, repair, split and write a text detection dataset.

    A split that the source brings along is kept. Otherwise whole groups go to val until it holds `val_share`
    of the images; images of equal content share a group whatever the rule.

    Args:
        source: folder or label file of the raw data.
        format: a key of `FORMATS`.
        out: new dataset folder; an existing one with anything in it is refused.
        val_share: share of images that validate, between 0 and 1.
        group_by: see `split.group_rule`.
        seed: of the split.
        images: where the images are, if not where the format has them.
        dry_run: report only.
        workers: threads that decode; the result does not depend on it. None: one a core.

    Raises:
        UsageError: unknown format, bad group rule or share, `out` not empty.
        DataError: nothing usable, no validation images, or a split without text.
    """
    source, out = Path(source), Path(out)
    workers = workers or os.cpu_count() or 1
    reader = FORMATS.get(format)
    if reader is None:
        near = difflib.get_close_matches(format, FORMATS, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown text format {format!r}; expected one of {', '.join(FORMATS)}{meant}")
    _check_arguments(source, out, val_share, group_by, images)
    found = list(reader(source, images))
    raws = [item for item in found if isinstance(item, RawImage)]
    prepared, faults = examined(raws, workers)
    faults = [item for item in found if isinstance(item, Fault)] + faults
    if not prepared:
        raise DataError(faults_message(f"{source}: no usable image among {len(raws)}", faults, _MEND))
    is_given = all(image.split for image in prepared)
    prepared, split_faults = assigned(prepared, val_share, group_by, seed)
    faults += split_faults
    _check_splits(source, prepared, faults, is_given)
    rule = {"rule": "given"} if is_given else {"rule": "groups", "val_share": val_share, "seed": seed}
    report = _report(source, format, out, dry_run, {**rule, "group_by": group_by or "image"}, prepared, faults)
    if not dry_run:
        write_dataset(out, _header(report), prepared, faults, workers)
    return report


_MEND = "mend these and run prepare again"


def _check_arguments(source: Path, out: Path, val_share: float, group_by: str | None, images: Path | None) -> None:
    if not 0 < val_share < 1:
        raise UsageError(f"--val must be between 0 and 1 (a share of the images), but got {val_share}")
    group_rule(group_by)
    refuse_existing(out)
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    if images is not None and not images.is_dir():
        raise DataError(f"{images}: no such image folder")


def _check_splits(source: Path, images: Sequence[PreparedImage], faults: Sequence[Fault], is_given: bool) -> None:
    """Refuse what `check` would refuse afterwards: an empty split, or one without any text."""
    for split in SPLITS:
        chosen = [image for image in images if image.split == split]
        if not chosen:
            groups = len({image.record.group for image in images})
            why = f"all {len(images)} images are in {groups} group" if not is_given else "the source's list is empty"
            raise DataError(
                f"{source}: no images for {split}: {why}; at least two groups are needed, choose --group-by accordingly"
            )
        if all(region.is_ignored for image in chosen for region in image.record.annotation.regions):
            way_out = "label some text" if is_given else "label some text, or choose another --seed or --val"
            headline = f"{source}: {split} has {len(chosen)} images but no text to learn or score (ignored or empty)"
            raise DataError(faults_message(headline, faults, way_out) if faults else f"{headline}; {way_out}")


def _report(
    source: Path,
    format: str,
    out: Path,
    dry_run: bool,
    split_rule: Mapping[str, Any],
    images: Sequence[PreparedImage],
    faults: Sequence[Fault],
) -> PrepareReport:
    records = {split: [image.record for image in images if image.split == split] for split in SPLITS}
    return PrepareReport(
        source=str(source),
        format=format,
        out=str(out),
        dry_run=dry_run,
        split_rule=split_rule,
        counts={split: SplitCounts.of(records[split]) for split in SPLITS},
        num_groups={split: len({record.group for record in records[split]}) for split in SPLITS},
        num_converted=sum(bool(image.facts.conversion) for image in images),
        faults=tuple(faults),
    )


def _header(report: PrepareReport) -> dict[str, Any]:
    """The part of `dataset.yml` above the images: nothing in it depends on time, machine or workers."""
    return {
        "task": "text_detection",
        "classes": ["text"],
        "source": {"format": report.format, "path": report.source},
        "split": {**report.split_rule, "groups": dict(report.num_groups)},
        "counts": {split: asdict(counts) for split, counts in report.counts.items()},
        "faults": {**report.actions(), "listed_in": "faults.jsonl"},
    }
