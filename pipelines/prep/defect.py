"""`prepare defect`: labelled and OK images of any known format become a dataset that trains, or a message says why."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from typing_extensions import Unpack

from pipelines.dataset import format_coco
from pipelines.dataset.counts import DefectCounts
from pipelines.errors import UsageError
from pipelines.prep.box_repair import annotate_boxes
from pipelines.prep.class_names import ClassNames, class_names
from pipelines.prep.formats import DEFECT_FORMATS, reader_of
from pipelines.prep.images import ImageFacts
from pipelines.prep.listings import listed_once, with_ok_images
from pipelines.prep.preparation import LabelKind, PrepareReport, prepare
from pipelines.prep.raw import ClassList, RawBox, RawDefects, RawImage, Unlabelled
from pipelines.prep.recognise import AUTO, recognise
from pipelines.prep.request import PrepareOptions, Request
from pipelines.records import DefectAnnotation, Fault, Record


def prepare_defect(
    source: Path,
    format: str,
    out: Path,
    *,
    images: Path | None = None,
    ok_folders: Sequence[Path] = (),
    classes: Sequence[str] | None = None,
    **options: Unpack[PrepareOptions],
) -> PrepareReport:
    """Read, check, repair, split and write a defect detection dataset; OK images are kept and counted.

    A split that the source brings along is kept. Otherwise whole groups go to val until it holds `val_share`
    of the images; images of equal content share a group whatever the rule.

    Args:
        source: folder or label file of the raw data.
        format: a key of `DEFECT_FORMATS`, or "auto": see `recognise`.
        out: new dataset folder; an existing one with anything in it is refused.
        images: where the images are, if not where the format has them.
        ok_folders: every image below these that the source does not label is an OK image.
        classes: names to keep, in order; None: all, in the source's order.
        options: see `PrepareOptions`.

    Raises:
        UsageError: unknown format or none recognised, bad option or classes, `out` not empty.
        DataError: nothing usable, no validation images, or a split without a defect.
    """
    if format == "folder":
        raise UsageError(
            "--from folder: a folder of images has OK images alone, and nothing to learn from; name the format of the"
            " labelled images and add the folder with --ok DIR"
        )
    format = recognise(Path(source), "defect") if format == AUTO else format
    reader = reader_of(DEFECT_FORMATS, format, "defect")
    request = Request(Path(source), format, Path(out), **options)
    request.refuse_unless_possible([*([] if images is None else [images]), *ok_folders])
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
