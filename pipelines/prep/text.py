"""`prepare text`: raw files of any known format become a dataset that trains, or a message that says why not."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from pipelines.dataset import format_label_line
from pipelines.dataset.counts import SplitCounts
from pipelines.prep.formats import TEXT_FORMATS, reader_of
from pipelines.prep.images import DEFAULT_MAX_PIXELS, ImageFacts
from pipelines.prep.label_frame import LabelFrame
from pipelines.prep.preparation import LabelKind, PrepareReport, prepare
from pipelines.prep.raw import RawImage, RawRegion, RawText
from pipelines.prep.recognise import AUTO, recognise
from pipelines.prep.repair import repaired_regions
from pipelines.prep.request import Request
from pipelines.records import Fault, Record, TextAnnotation


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
    label_frame: LabelFrame = "auto",
    max_pixels: int = DEFAULT_MAX_PIXELS,
    executor: Executor | None = None,
    repair: bool = True,
) -> PrepareReport:
    """Read, check, repair, split and write a text detection dataset.

    A split that the source brings along is kept. Otherwise whole groups go to val until it holds `val_share`
    of the images; images of equal content share a group whatever the rule.

    Args:
        source: folder or label file of the raw data.
        format: a key of `TEXT_FORMATS`, or "auto": see `recognise`.
        out: new dataset folder; an existing one with anything in it is refused.
        val_share: share of images that validate, between 0 and 1.
        group_by: see `split.group_rule`.
        seed: of the split.
        images: where the images are, if not where the format has them.
        dry_run: report only.
        workers: threads that decode; the result does not depend on it. None: one a core. With `executor`: how many
            jobs that does at once.
        label_frame: whether labels were drawn on pictures as they are shown ("displayed"), or on their pixels before
            EXIF turns them ("raw"); "auto": what each image's labels say.
        max_pixels: larger images are left out and told, from their headers.
        executor: where to decode and write instead (processes, a cluster that sees the same files); it stays open.
        repair: False: refuse where labels would have to be repaired, and list what.

    Raises:
        UsageError: unknown format or none recognised, bad group rule or share, `out` not empty.
        DataError: nothing usable, no validation images, or a split without text.
    """
    format = recognise(Path(source), "text") if format == AUTO else format
    reader = reader_of(TEXT_FORMATS, format, "text")
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
        folders=[] if images is None else [images],
    )
    found = list(reader(request.source, images))
    faults = [item for item in found if isinstance(item, Fault)]
    raws, twice = _listed_once([item for item in found if isinstance(item, RawImage)])
    return prepare(request, _TEXT, raws, [*faults, *twice])


def _listed_once(raws: Sequence[RawText]) -> tuple[list[RawText], list[Fault]]:
    """The first listing of every file, and a fault for each further one."""
    first: dict[Path, RawText] = {}
    faults: list[Fault] = []
    for raw in raws:
        kept = first.setdefault(raw.image.resolve(), raw)
        if kept is not raw:
            at = kept.label if kept.line is None else f"{kept.label}:{kept.line}"
            faults.append(Fault(raw.label, f"{raw.name} is already labelled at {at}", "dropped", raw.line))
    return list(first.values()), faults


def _annotated(raw: RawText, facts: ImageFacts) -> tuple[TextAnnotation | None, list[Fault]]:
    """The regions that can be used; None where all are lost, as text must not be learnt as background."""
    regions, faults = repaired_regions(raw, facts.size_hw)
    if raw.regions and not regions:
        reason = f"{raw.name}: none of its {len(raw.regions)} region(s) can be used, so it may hold text: left out"
        return None, [*faults, Fault(raw.label, reason, "dropped", raw.line)]
    return TextAnnotation(regions), faults


def _has_no_text(annotation: TextAnnotation) -> bool:
    return all(region.is_ignored for region in annotation.regions)


def _label_file(records: Sequence[Record]) -> str:
    return "".join(format_label_line(record) + "\n" for record in records)


_TEXT: LabelKind[RawRegion] = LabelKind(
    task="text_detection",
    classes=("text",),
    noun="text",
    annotate=_annotated,
    is_blank=_has_no_text,
    counts_of=SplitCounts.of,
    label_file=(".txt", _label_file),
)
