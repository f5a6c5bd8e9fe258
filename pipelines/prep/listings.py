"""Every image file once, whether a source lists it twice or the user calls it OK besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pipelines.prep.raw import IMAGE_SUFFIXES, RawDefects, RawImage, Unlabelled, name_below
from pipelines.records import Fault


def listed_once(raws: Sequence[RawDefects]) -> tuple[list[RawDefects], list[Fault]]:
    """The same labels twice are one listing; different labels leave nobody the wiser, so the image gets a fault.

    Of an image that is in both splits the one in val is kept.
    """
    listings: dict[Path, list[RawDefects]] = {}
    for raw in raws:
        listings.setdefault(raw.image.resolve(), []).append(raw)
    kept: list[RawDefects] = []
    faults: list[Fault] = []
    for found in listings.values():
        first, *others = sorted(found, key=lambda raw: ("val", "train", "").index(raw.split))
        if any(_labels(raw) != _labels(first) for raw in others):
            fault = f"is listed {len(found)} times with different labels, also in {others[0].label}: left out"
            first, others = replace(first, fault=first.fault or fault), []
        kept.append(first)
        for raw in others:
            into = f": kept in {first.split}" if raw.split != first.split else " with the same labels: kept once"
            reason = f"{raw.name} is listed twice, also in {first.label}{into}"
            faults.append(Fault(raw.label, reason, "repaired", raw.line))
    return kept, faults


def _labels(raw: RawDefects) -> list[str]:
    """What a listing says, whatever its order."""
    return sorted(str((box.corners, box.class_name, box.is_ignored)) for box in raw.regions)


def with_ok_images(
    raws: Sequence[RawDefects], folders: Sequence[Path], unlabelled: Sequence[Unlabelled]
) -> tuple[list[RawDefects], list[Fault]]:
    """The source's images and those of the OK folders; a fault for every unlabelled image that is in neither.

    Where the source knows an image of an OK folder, what it says counts: also that it can't be used.
    """
    known = {raw.image.resolve(): raw for raw in raws}
    barred = {item.image.resolve() for item in unlabelled if not item.may_be_ok}
    found = list(raws)
    taken: set[Path] = set()
    clashes: list[Path] = []
    for folder in folders:
        for path in _pictures(folder):
            raw = known.get(path.resolve())
            if path.resolve() in barred or (raw is not None and (raw.regions or raw.fault)):
                clashes.append(path)
            elif raw is None and path.resolve() not in taken:
                taken.add(path.resolve())
                found.append(RawImage(path, name_below(path, folder.parent), str(folder), None, ()))
    way_out = "left out; if such images are OK, say so with --ok"
    faults = [
        Fault(str(item.image), f"{item.reason}: {way_out} {item.image.parent}", "dropped")
        for item in unlabelled
        if item.may_be_ok and item.image.resolve() not in taken
    ]
    if clashes:
        reason = f"this and {len(clashes) - 1} more of the --ok folders have labels in the source: those count"
        faults.append(Fault(str(clashes[0]), reason, "warning"))
    return found, faults


def _pictures(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
