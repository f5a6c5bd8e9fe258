"""An image on its way into a dataset: what was read, what decoding told, and the record it becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipelines.prep.images import ImageFacts
from pipelines.prep.label_frame import LabelFrame, shown_labels, usual_frame
from pipelines.prep.raw import RawImage, Region
from pipelines.prep.split import group_rule, joined_groups, val_groups
from pipelines.prep.target_names import target_names
from pipelines.records import Fault, Record

Annotate = Callable[[RawImage[Region], ImageFacts], "tuple[Any | None, list[Fault]]"]
"""The annotation of a decoded image, None if it can't be used, and all faults on the way."""
Examine = Callable[[Sequence[Path]], Sequence[ImageFacts]]
"""What decoding tells of every file, in order."""


@dataclass(frozen=True, eq=False)
class PreparedImage:
    """One image of the coming dataset.

    Attributes:
        raw: what the reader gave.
        facts: what decoding told.
        record: path in the dataset, size, repaired annotation and group.
        split: "train" or "val".
    """

    raw: RawImage[Any]
    facts: ImageFacts
    record: Record
    split: str


def examined(
    raws: Sequence[RawImage[Region]], examine: Examine, annotate: Annotate[Region], label_frame: LabelFrame
) -> tuple[list[PreparedImage], list[Fault]]:
    """Every image that can be decoded, with its annotation, sorted by path; and all faults on the way.

    Args:
        raws: as the reader gave them.
        examine: decodes.
        annotate: makes annotations of labels on upright pictures.
        label_frame: what labels were drawn on, see `label_frame`.
    """
    faults = [Fault(raw.label, f"{raw.name}: {raw.fault}", "dropped", raw.line) for raw in raws if raw.fault]
    raws = [raw for raw in raws if not raw.fault]
    all_facts = examine([raw.image for raw in raws])
    usual = usual_frame(zip(raws, all_facts, strict=True))
    usable = []
    for raw, facts in zip(raws, all_facts, strict=True):
        faults += _image_faults(raw, facts)
        if facts.fault:
            continue
        shown, found = shown_labels(raw, facts, label_frame, usual)
        faults += found
        if shown is None:
            continue
        annotation, found = annotate(shown, facts)
        faults += found
        if annotation is not None:
            usable.append((raw, facts, annotation))
    names = target_names([(raw.image, facts.suffix) for raw, facts, _ in usable])
    prepared = [
        PreparedImage(raw, facts, Record(name, facts.size_hw, annotation), raw.split)
        for (raw, facts, annotation), name in zip(usable, names, strict=True)
    ]
    return sorted(prepared, key=lambda image: image.record.path), faults


def _image_faults(raw: RawImage[Any], facts: ImageFacts) -> list[Fault]:
    file = str(raw.image)
    if facts.fault:
        return [Fault(file, f"{facts.fault} (labelled in {raw.label})", "dropped")]
    found = [Fault(file, facts.conversion, "repaired")] if facts.conversion else []
    return found + ([Fault(file, facts.note, "warning")] if facts.note else [])


def assigned(
    images: Sequence[PreparedImage], val_share: float, group_by: str | None, seed: int
) -> tuple[list[PreparedImage], list[Fault]]:
    """Give every image its group and split: the source's split where it has one, else whole groups by hash."""
    grouped, faults = _grouped(images, group_by)
    given = {image.record.group: image.split for image in sorted(grouped, key=lambda i: i.split) if image.split}
    sizes = Counter(image.record.group for image in grouped if image.record.group not in given)
    chosen = val_groups(sizes, val_share, seed)
    # A group with a given split takes its other images along; where it straddles, to val.
    placed = [
        image if image.split else replace(image, split=given.get(image.record.group, _side(image, chosen)))
        for image in grouped
    ]
    if given:
        kept, found = _without_leaks(placed)
        return kept, faults + found
    return placed, faults


def _side(image: PreparedImage, chosen: Container[str]) -> str:
    return "val" if image.record.group in chosen else "train"


def _grouped(images: Sequence[PreparedImage], group_by: str | None) -> tuple[list[PreparedImage], list[Fault]]:
    """Every image with its group: by the rule, else the source's, else its own; equal pictures share one."""
    rule = group_rule(group_by)
    faults: list[Fault] = []
    groups: list[str] = []
    for image in images:
        group = image.raw.group if group_by is None and image.raw.group else rule(image.raw.name)
        if group is None:
            reason = f"the group rule {group_by!r} says nothing about {image.raw.name}: it is a group of its own"
            faults.append(Fault(image.raw.label, reason, "warning", image.raw.line))
        groups.append(group or image.raw.name)
    groups = joined_groups(groups, [image.facts.sha256 for image in images])
    pairs = zip(images, groups, strict=True)
    return [replace(image, record=replace(image.record, group=group)) for image, group in pairs], faults


def _without_leaks(images: Sequence[PreparedImage]) -> tuple[list[PreparedImage], list[Fault]]:
    """A given split, without training images that validate too; groups that straddle it are told."""
    val = {image.facts.sha256: image for image in images if image.split == "val"}
    val_names = {image.record.group: image.raw.name for image in val.values()}
    kept: list[PreparedImage] = []
    faults: list[Fault] = []
    for image in images:
        twin = val.get(image.facts.sha256) if image.split == "train" else None
        if twin:
            reason = f"the same picture as {twin.raw.name} of val: left out of train"
            faults.append(Fault(str(image.raw.image), reason, "dropped"))
            continue
        if image.split == "train" and image.record.group in val_names:
            reason = f"group {image.record.group!r} is in train here and in val with {val_names[image.record.group]}"
            faults.append(Fault(str(image.raw.image), reason, "warning"))
        kept.append(image)
    return kept, faults
