"""What a split holds, in numbers: one value a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.records import Record


@dataclass(frozen=True)
class SplitCounts:
    """What a text split holds; `ignored` of the `regions` are ignore regions, `text_free` images have no region."""

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


@dataclass(frozen=True)
class DefectCounts:
    """What a defect split holds.

    Attributes:
        images: all of them.
        ok_images: images without any defect (they may hold ignore regions).
        defects: boxes that count.
        ignored: ignore regions.
        per_class: defects by class name, in the dataset's order; 0 where the split has none.
    """

    images: int
    ok_images: int
    defects: int
    ignored: int
    per_class: Mapping[str, int]

    @classmethod
    def of(cls, records: Sequence[Record], classes: Sequence[str]) -> DefectCounts:
        ids = [record.annotation.class_ids[~record.annotation.is_ignored] for record in records]
        per_id = Counter(int(class_id) for of_image in ids for class_id in of_image)
        return cls(
            images=len(records),
            ok_images=sum(record.annotation.is_ok for record in records),
            defects=sum(per_id.values()),
            ignored=sum(int(record.annotation.is_ignored.sum()) for record in records),
            per_class={name: per_id[class_id] for class_id, name in enumerate(classes)},
        )


Counts = SplitCounts | DefectCounts
