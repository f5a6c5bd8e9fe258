"""`prepare text`: raw files of any known format become a dataset that trains, or a message that says why not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from typing_extensions import Unpack

from pipelines.dataset import format_label_line
from pipelines.dataset.counts import SplitCounts
from pipelines.prep.formats import TEXT_FORMATS, reader_of
from pipelines.prep.images import ImageFacts
from pipelines.prep.preparation import LabelKind, PrepareReport, prepare
from pipelines.prep.raw import RawImage, RawRegion, RawText
from pipelines.prep.recognise import AUTO, recognise
from pipelines.prep.repair import repaired_regions
from pipelines.prep.request import PrepareOptions, Request
from pipelines.records import Fault, Record, TextAnnotation


def prepare_text(
    source: Path,
    format: str,
    out: Path,
    *,
    images: Path | None = None,
    **options: Unpack[PrepareOptions],
) -> PrepareReport:
    """Read, check, repair, split and write a text detection dataset.

    A split that the source brings along is kept. Otherwise whole groups go to val until it holds `val_share`
    of the images; images of equal content share a group whatever the rule.

    Args:
        source: folder or label file of the raw data.
        format: a key of `TEXT_FORMATS`, or "auto": see `recognise`.
        out: new dataset folder; an existing one with anything in it is refused.
        images: where the images are, if not where the format has them.
        options: see `PrepareOptions`.

    Raises:
        UsageError: unknown format or none recognised, bad option, `out` not empty.
        DataError: nothing usable, no validation images, or a split without text.
    """
    format = recognise(Path(source), "text") if format == AUTO else format
    reader = reader_of(TEXT_FORMATS, format, "text")
    request = Request(Path(source), format, Path(out), **options)
    request.refuse_unless_possible([] if images is None else [images])
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
