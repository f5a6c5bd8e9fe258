"""`prepare defect`: labelled and OK images of any known format become a dataset that trains, or a message says why."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

from pipelines.dataset import format_coco
from pipelines.dataset.counts import DefectCounts
from pipelines.errors import UsageError
from pipelines.prep.box_repair import annotate_boxes
from pipelines.prep.class_names import ClassNames, class_names
from pipelines.prep.formats import DEFECT_FORMATS, reader_of
from pipelines.prep.images import DEFAULT_MAX_PIXELS, ImageFacts
from pipelines.prep.label_frame import LabelFrame
from pipelines.prep.listings import listed_once, with_ok_images
from pipelines.prep.preparation import LabelKind, PrepareReport, prepare
from pipelines.prep.raw import ClassList, RawBox, RawDefects, RawImage, Unlabelled
from pipelines.prep.recognise import AUTO, recognise
from pipelines.prep.request import Request
from pipelines.records import DefectAnnotation, Fault, Record


def prepare_defect(
    source: Path,
    format: str,
    out: Path,
    *,
    val_share: float = 0.2,
    group_by: str | None = None,
    seed: int = 0,
    images: Path | None = None,
    ok_folders: Sequence[Path] = (),
    classes: Sequence[str] | None = None,
    dry_run: bool = False,
    workers: int | None = None,
    label_frame: LabelFrame = "auto",
    max_pixels: int = DEFAULT_MAX_PIXELS,
    executor: Executor | None = None,
    repair: bool = True,
) -> PrepareReport:
    """Read, check, repair, split and write a defect detection dataset; OK images are kept and counted.

    A split that the source brings along is kept. Otherwise whole groups go to val until it holds `val_share`
    of the images; images of equal content share a group whatever the rule.

    Args:
        source: folder or label file of the raw data.
        format: a key of `DEFECT_FORMATS`, or "auto": see `recognise`.
        out: new dataset folder; an existing one with anything in it is refused.
        val_share: share of images that validate, between 0 and 1.
        group_by: see `split.group_rule`; None: the source's own groups where it has some, else every image its own.
        seed: of the split.
        images: where the images are, if not where the format has them.
        ok_folders: every image below these that the source does not label is an OK image.
        classes: names to keep, in order; None: all, in the source's order.
        dry_run: report only.
        workers: threads that decode; the result does not depend on it. None: one a core. With `executor`: how many
            jobs that does at once.
        label_frame: whether labels were drawn on pictures as they are shown ("displayed"), or on their pixels before
            EXIF turns them ("raw"); "auto": what each image's labels say.
        max_pixels: larger images are left out and told, from their headers.
        executor: where to decode and write instead (processes, a cluster that sees the same files); it stays open.
        repair: False: refuse where labels would have to be repaired, and list what.

    Raises:
        UsageError: unknown format or none recognised, bad group rule, share or classes, `out` not empty.
        DataError: nothing usable, no validation images, or a split without a defect.
    """
    if format == "folder":
        raise UsageError(
            "--from folder: a folder of images has OK images alone, and nothing to learn from; name the format of the"
            " labelled images and add the folder with --ok DIR"
        )
    format = recognise(Path(source), "defect") if format == AUTO else format
    reader = reader_of(DEFECT_FORMATS, format, "defect")
    request = Request.checked(
        Path(source),
        format,
        Path(out),
        val_share=val_share,
        group_by=group_by,
        seed=seed,
        dry_run=dry_run,
        workers=workers,
        label_frame=label_frame,
        max_pixels=max_pixels,
        executor=executor,
        repair=repair,
        folders=[*([] if images is None else [images]), *ok_folders],
    )
    found = list(reader(request.source, images))
    faults = [item for item in found if isinstance(item, Fault)]
    listed = [name for item in found if isinstance(item, ClassList) for name in item.names]
    raws, twice = listed_once([item for item in found if isinstance(item, RawImage)])
    raws, ok_faults = with_ok_images(raws, ok_folders, [item for item in found if isinstance(item, Unlabelled)])
    names, told = class_names(raws, listed, classes)
    return prepare(request, _defect_kind(names), raws, [*faults, *twice, *ok_faults, *told])


def _defect_kind(classes: ClassNames) -> LabelKind[RawBox]:
    def annotate(raw: RawDefects, facts: ImageFacts) -> tuple[DefectAnnotation | None, list[Fault]]:
        return annotate_boxes(raw, facts, classes)

    def label_file(records: Sequence[Record]) -> str:
        return format_coco(records, classes.names)

    return LabelKind(
        task="defect_detection",
        classes=classes.names,
        noun="defect",
        annotate=annotate,
        is_blank=lambda annotation: annotation.is_ok,
        counts_of=partial(DefectCounts.of, classes=classes.names),
        label_file=(".json", label_file),
    )
