"""The images of a dataset, each decoded once: what that told, and what they look like beside the other split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.prep.images import ImageFacts, examine_image
from pipelines.prep.near_duplicates import Look, NearDuplicate, look_at, near_duplicates
from pipelines.records import Fault, Record

_CHUNK = 8  # images that a process gets at once
_SHOWN = 3  # pictures that are there several times, and names of each, in a message


@dataclass(frozen=True, eq=False)
class SeenImage:
    """One image of a dataset.

    Attributes:
        split: "train" or "val".
        record: as the dataset has it.
        facts: what decoding told.
        look: to compare it by; None where it can't be decoded.
    """

    split: str
    record: Record
    facts: ImageFacts
    look: Look | None


def see_images(root: Path, records: Mapping[str, Sequence[Record]], executor: Executor) -> list[SeenImage]:
    """Decode the images of all splits, in order."""
    everything = [(split, record) for split, of_split in records.items() for record in of_split]
    found = executor.map(_see, [root / record.path for _, record in everything], chunksize=_CHUNK)
    return [SeenImage(*item, *of_image) for item, of_image in zip(everything, found, strict=True)]


def _see(path: Path) -> tuple[ImageFacts, Look | None]:
    facts = examine_image(path)
    if facts.fault:
        return facts, None
    try:
        return facts, look_at(path, facts.size_hw)
    except DataError:  # PIL takes some formats that OpenCV does not; `prepare` would have converted it
        return facts, None


def image_faults(root: Path, image: SeenImage, known: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    """What is wrong with the file; `known` are the images of `dataset.yml`, by path."""
    file, facts, record = str(root / image.record.path), image.facts, image.record
    if facts.fault:
        return [Fault(file, facts.fault, "error", image=record.path)]
    if facts.size_hw != record.size_hw:
        sizes = "{1} x {0} px, but dataset.yml says {3} x {2} px".format(*facts.size_hw, *record.size_hw)
        reason = f"is {sizes}: the labels belong to another image; run prepare again"
        return [Fault(file, reason, "error", image=record.path)]
    if known.get(record.path, {}).get("sha256", facts.sha256) != facts.sha256:
        return [Fault(file, "is not the file that prepare wrote (sha256 differs)", "warning", image=record.path)]
    return [Fault(file, facts.note, "warning", image=record.path)] if facts.note else []


def copy_faults(root: Path, seen: Sequence[SeenImage]) -> list[Fault]:
    """One warning a split whose images are the same bytes under several names: they weigh so many times."""
    copies: dict[str, dict[str, list[str]]] = {}
    for image in seen:
        if image.facts.sha256:
            copies.setdefault(image.split, {}).setdefault(image.facts.sha256, []).append(image.record.path)
    faults = []
    for split, by_content in copies.items():
        repeated = sorted((paths for paths in by_content.values() if len(paths) > 1), key=len, reverse=True)
        if repeated:
            number = sum(len(paths) - 1 for paths in repeated)
            most = "; ".join(" = ".join(paths[:_SHOWN]) for paths in repeated[:_SHOWN])
            reason = f"weighs more than once: {number} image(s) of {split} are copies of others of {split}: {most}"
            faults.append(Fault(str(root / repeated[0][0]), reason, "warning", image=repeated[0][0]))
    return faults


def across_splits(root: Path, seen: Sequence[SeenImage], executor: Executor) -> tuple[list[NearDuplicate], int]:
    """Images of train that look like one of val, unless they are copies of it or share its group.

    The second value is the number of pairs that were too many to compare.
    """
    looks: dict[str, dict[str, Look]] = {"train": {}, "val": {}}
    for image in seen:
        if image.look is not None:
            looks[image.split][image.record.path] = image.look
    of = {(image.split, image.record.path): image for image in seen}
    pairs, num_left = near_duplicates(root, looks["train"], looks["val"], executor)
    return [pair for pair in pairs if not _is_told(of["train", pair.train], of["val", pair.val])], num_left


def _is_told(first: SeenImage, second: SeenImage) -> bool:
    return first.facts.sha256 == second.facts.sha256 or first.record.group == second.record.group
