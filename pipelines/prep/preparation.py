"""What `prepare text` and `prepare defect` have in common: from raw images to a dataset written, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic

from pipelines.dataset import SPLITS, faults_message
from pipelines.dataset.counts import Counts
from pipelines.errors import DataError
from pipelines.prep.examination import examine_images
from pipelines.prep.executors import JobPool, job_pool
from pipelines.prep.images import ImageFacts
from pipelines.prep.journal import Journal
from pipelines.prep.label_frame import TURNED
from pipelines.prep.prepared import Annotate, PreparedImage, assigned, examined
from pipelines.prep.raw import RawImage, Region
from pipelines.prep.request import Request
from pipelines.prep.work_folder import work_folder
from pipelines.prep.write import write_dataset
from pipelines.records import Fault, Record

_MEND = "mend these and run prepare again"


@dataclass(frozen=True)
class LabelKind(Generic[Region]):
    """What sets a task's labels apart from another's.

    Attributes:
        task: as in `dataset.yml`.
        classes: names in order.
        noun: what there must be some of in every split: "text", "defect".
        annotate: raw regions of a decoded image to its annotation.
        is_blank: whether an annotation has nothing to learn.
        counts_of: the numbers of a split.
        label_file: (suffix, function that formats a split's records).
    """

    task: str
    classes: tuple[str, ...]
    noun: str
    annotate: Annotate[Region]
    is_blank: Callable[[Any], bool]
    counts_of: Callable[[Sequence[Record]], Counts]
    label_file: tuple[str, Callable[[Sequence[Record]], str]]


@dataclass(frozen=True)
class PrepareReport:
    """What `prepare` found and wrote (or, as a dry run, would write).

    Attributes:
        source: where the raw files are.
        format: which reader read them.
        out: the dataset.
        dry_run: nothing was written.
        task: as in `dataset.yml`.
        classes: names in order.
        split_rule: how the split was made; goes into `dataset.yml`.
        counts: by split.
        num_groups: by split.
        num_converted: images that could not be copied byte for byte.
        faults: everything repaired, dropped or worth knowing.
        resumed: what became of an earlier run's work folder, or "".
    """

    source: str
    format: str
    out: str
    dry_run: bool
    task: str
    classes: tuple[str, ...]
    split_rule: Mapping[str, Any]
    counts: Mapping[str, Counts]
    num_groups: Mapping[str, int]
    num_converted: int
    faults: tuple[Fault, ...]
    resumed: str = ""

    def actions(self) -> dict[str, int]:
        """How many faults were repaired, dropped, warnings."""
        return dict(sorted(Counter(fault.action for fault in self.faults).items()))

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "actions": self.actions()}


def prepare(
    request: Request, kind: LabelKind[Region], raws: Sequence[RawImage[Region]], faults: Sequence[Fault]
) -> PrepareReport:
    """Check, repair, split and write raw images of a kind; `faults` were found on the way here.

    Raises:
        DataError: nothing usable, an empty split, one with nothing to learn, or a repair that was not wanted.
        WorkerLost: a worker died; the same request goes on from there.
    """
    with job_pool(request.num_workers, request.executor) as pool:
        if request.dry_run:
            return _planned(request, kind, raws, faults, pool, None)[0]
        with work_folder(request.out, request.decides_images()) as work:
            report, images = _planned(request, kind, raws, faults, pool, work.journal)
            suffix, formatted = kind.label_file
            labels = {f"{split}{suffix}": formatted(_records(images, split)) for split in SPLITS}
            write_dataset(work, _header(report), images, labels, report.faults, pool)
            return replace(report, resumed=work.told)


def _planned(
    request: Request,
    kind: LabelKind[Region],
    raws: Sequence[RawImage[Region]],
    faults: Sequence[Fault],
    pool: JobPool,
    journal: Journal | None,
) -> tuple[PrepareReport, list[PreparedImage]]:
    """What is to be written: all found, repaired and split, and the images."""
    all_faults = list(faults)

    def examine(paths: Sequence[Path]) -> list[ImageFacts]:
        return examine_images(paths, pool, request.max_pixels, journal)

    prepared, found = examined(raws, examine, kind.annotate, request.label_frame)
    all_faults += found
    if not request.repair:
        _refuse_repairs(request, prepared, all_faults)
    if not prepared:
        raise DataError(faults_message(f"{request.source}: no usable image among {len(raws)}", all_faults, _MEND))
    all_faults += _contradictions(kind, prepared)
    num_given = sum(bool(image.split) for image in prepared)
    is_given = num_given == len(prepared)
    prepared, found = assigned(prepared, request.val_share, request.group_by, request.seed)
    all_faults += found
    _check_splits(request.source, kind, prepared, all_faults, is_given)
    return _report(request, kind, _split_rule(request, num_given, is_given), prepared, all_faults), prepared


def _refuse_repairs(request: Request, images: Sequence[PreparedImage], faults: Sequence[Fault]) -> None:
    """Refuse if any label was repaired; a picture turned upright or saved as PNG shows what it showed.

    Labels that the user says were drawn on stored pixels turn with them; a guess that they were is a repair.
    """
    conversions = {(str(image.raw.image), image.facts.conversion) for image in images}
    repairs = [
        fault
        for fault in faults
        if fault.action == "repaired"
        and (fault.file, fault.reason) not in conversions
        and not (request.label_frame == "raw" and TURNED in fault.reason)
    ]
    if repairs:
        way_out = "mend these, or leave --no-repair out; --dry-run --json FILE without it lists all"
        raise DataError(
            faults_message(f"{request.source}: labels need repairs, and --no-repair forbids them", repairs, way_out)
        )


def _records(images: Sequence[PreparedImage], split: str) -> list[Record]:
    return [image.record for image in images if image.split == split]


def _contradictions(kind: LabelKind[Region], images: Sequence[PreparedImage]) -> list[Fault]:
    """A warning for every picture that is there twice under other names, once with labels and once without."""
    labelled = {image.facts.sha256: image for image in images if not kind.is_blank(image.record.annotation)}
    faults = []
    for image in images:
        twin = labelled.get(image.facts.sha256)
        if twin is not None and kind.is_blank(image.record.annotation):
            reason = f"the same picture as {twin.raw.name}, which has {kind.noun} labels: one of them must be wrong"
            faults.append(Fault(str(image.raw.image), reason, "warning"))
    return faults


def _split_rule(request: Request, num_given: int, is_given: bool) -> dict[str, Any]:
    group_by = request.group_by or "image"
    if is_given:
        return {"rule": "given", "group_by": group_by}
    rule = "given where the source has one, else groups" if num_given else "groups"
    return {"rule": rule, "val_share": request.val_share, "seed": request.seed, "group_by": group_by}


def _check_splits(
    source: Path, kind: LabelKind[Region], images: Sequence[PreparedImage], faults: Sequence[Fault], is_given: bool
) -> None:
    """Refuse what `check` would refuse afterwards: an empty split, or one with nothing to learn."""
    for split in SPLITS:
        records = _records(images, split)
        if not records:
            groups = len({image.record.group for image in images})
            why = f"all {len(images)} images are in {groups} group" if not is_given else "the source's list is empty"
            raise DataError(
                f"{source}: no images for {split}: {why}; at least two groups are needed, choose --group-by accordingly"
            )
        if all(kind.is_blank(record.annotation) for record in records):
            way_out = f"label some {kind.noun}" + ("" if is_given else ", or choose another --seed or --val")
            headline = (
                f"{source}: {split} has {len(records)} images but no {kind.noun} to learn or score (ignored or empty)"
            )
            raise DataError(faults_message(headline, faults, way_out) if faults else f"{headline}; {way_out}")


def _report(
    request: Request,
    kind: LabelKind[Region],
    split_rule: Mapping[str, Any],
    images: Sequence[PreparedImage],
    faults: Sequence[Fault],
) -> PrepareReport:
    records = {split: _records(images, split) for split in SPLITS}
    return PrepareReport(
        source=str(request.source),
        format=request.format,
        out=str(request.out),
        dry_run=request.dry_run,
        task=kind.task,
        classes=kind.classes,
        split_rule=split_rule,
        counts={split: kind.counts_of(records[split]) for split in SPLITS},
        num_groups={split: len({record.group for record in records[split]}) for split in SPLITS},
        num_converted=sum(bool(image.facts.conversion) for image in images),
        faults=tuple(faults),
    )


def _header(report: PrepareReport) -> dict[str, Any]:
    """The part of `dataset.yml` above the images: nothing in it depends on time, machine or workers."""
    return {
        "task": report.task,
        "classes": list(report.classes),
        "source": {"format": report.format, "path": report.source},
        "split": {**report.split_rule, "groups": dict(report.num_groups)},
        "counts": {split: asdict(counts) for split, counts in report.counts.items()},
        "faults": {**report.actions(), "listed_in": "faults.jsonl"},
    }
