"""An image on its way into a dataset: what was read, what decoding told, and the record it becomes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.prep.images import ImageFacts, examine_image
from pipelines.prep.raw import RawImage
from pipelines.prep.repair import repaired_regions
from pipelines.prep.split import group_rule, joined_groups, val_groups
from pipelines.records import Fault, Record, TextAnnotation


@dataclass(frozen=True, eq=False)
class PreparedImage:
    """One image of the coming dataset.

    Attributes:
        raw: what the reader gave.
        facts: what decoding told.
        record: path in the dataset, size, repaired regions and group.
        split: "train" or "val".
    """

    raw: RawImage
    facts: ImageFacts
    record: Record
    split: str


@dataclass(frozen=True)
class SplitCounts:
    """What a split holds; `ignored` of the `regions` are ignore regions, `text_free` images have no region."""

    images: int
    regions: int
    ignored: int
    text_free: int

    @classmethod
    def of(cls, records: Sequence[Record]) -> SplitCounts:
        regions = [region for record in records for region in record.annotation.regions]
        return cls(
            images=len(records),
            regions=len(regions),
            ignored=sum(region.is_ignored for region in regions),
            text_free=sum(not record.annotation.regions for record in records),
        )


def examined(raws: Sequence[RawImage], workers: int) -> tuple[list[PreparedImage], list[Fault]]:
    """Every image that can be decoded, with repaired regions, sorted by path; and all faults on the way."""
    raws, faults = _listed_once(raws)
    # Decoding and hashing release the GIL, so threads use all cores and nothing needs pickling.
    with ThreadPoolExecutor(workers) as pool:
        all_facts = list(pool.map(examine_image, [raw.image for raw in raws]))
    usable = []
    for raw, facts in zip(raws, all_facts, strict=True):
        faults += _image_faults(raw, facts)
        if not facts.fault:
            usable.append((raw, facts))
    names = target_names([(raw.image, facts.suffix) for raw, facts in usable])
    prepared = []
    for (raw, facts), name in zip(usable, names, strict=True):
        regions, found = repaired_regions(raw, facts.size_hw)
        faults += found
        record = Record(name, facts.size_hw, TextAnnotation(regions))
        prepared.append(PreparedImage(raw, facts, record, raw.split))
    return sorted(prepared, key=lambda image: image.record.path), faults


def _listed_once(raws: Iterable[RawImage]) -> tuple[list[RawImage], list[Fault]]:
    """The first listing of every file, and a fault for each further one."""
    first: dict[Path, RawImage] = {}
    faults: list[Fault] = []
    for raw in raws:
        kept = first.setdefault(raw.image.resolve(), raw)
        if kept is not raw:
            at = kept.label if kept.line is None else f"{kept.label}:{kept.line}"
            faults.append(Fault(raw.label, f"{raw.name} is already labelled at {at}", "dropped", raw.line))
    return list(first.values()), faults


def _image_faults(raw: RawImage, facts: ImageFacts) -> list[Fault]:
    file = str(raw.image)
    if facts.fault:
        return [Fault(file, f"{facts.fault} (labelled in {raw.label})", "dropped")]
    found = [Fault(file, facts.conversion, "repaired")] if facts.conversion else []
    return found + ([Fault(file, facts.note, "warning")] if facts.note else [])


def target_names(files: Sequence[tuple[Path, str]]) -> list[str]:
    """Paths in the dataset, "images/...", for (file, suffix to append): folders below the common one are kept."""
    if not files:
        return []
    base = os.path.commonpath([path.parent.resolve() for path, _ in files])
    names: list[str] = []
    taken: set[str] = set()
    for path, suffix in files:
        inside = Path(os.path.relpath(path.resolve(), base)).as_posix()
        # Tabs and line breaks would break label lines, and a back-slash is a folder to Windows only.
        stem, end = os.path.splitext(re.sub(r"[\t\r\n\\]", "_", inside) + suffix)
        candidates = (f"images/{stem}{'_' * n}{end}" for n in range(len(files) + 1))
        # Case is ignored so that a dataset can move to a file system that does.
        name = next(candidate for candidate in candidates if candidate.casefold() not in taken)
        taken.add(name.casefold())
        names.append(name)
    return names


def assigned(
    images: Sequence[PreparedImage], val_share: float, group_by: str | None, seed: int
) -> tuple[list[PreparedImage], list[Fault]]:
    """Give every image its group and split: the source's split where it has one, else whole groups by hash."""
    rule = group_rule(group_by)
    faults: list[Fault] = []
    groups: list[str] = []
    for image in images:
        group = rule(image.raw.name)
        if group is None:
            reason = f"the group rule {group_by!r} says nothing about {image.raw.name}: it is a group of its own"
            faults.append(Fault(image.raw.label, reason, "warning", image.raw.line))
        groups.append(group or image.raw.name)
    groups = joined_groups(groups, [image.facts.sha256 for image in images])
    grouped = [
        replace(image, record=replace(image.record, group=group)) for image, group in zip(images, groups, strict=True)
    ]
    if all(image.split for image in images):
        kept, found = _without_leaks(grouped)
        return kept, faults + found
    sizes = {group: groups.count(group) for group in set(groups)}
    chosen = val_groups(sizes, val_share, seed)
    return [replace(image, split="val" if image.record.group in chosen else "train") for image in grouped], faults


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
