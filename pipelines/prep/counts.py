"""What a split holds, in numbers: one value a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.geometry import equivalent_height
from pipelines.records import Record

_QUANTILES = (0, 0.1, 0.5, 0.9, 1)


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


def text_quantiles(records: Sequence[Record]) -> dict[str, tuple[float, ...]]:
    """0, 10, 50, 90, 100 % points of image sides and of the heights of text that is not ignored, px."""
    regions = [region for record in records for region in record.annotation.regions if not region.is_ignored]
    heights = [equivalent_height(region.points_px) for region in regions]
    return _quantiles({**_image_sides(records), "text_height_px": heights})


def defect_quantiles(records: Sequence[Record]) -> dict[str, tuple[float, ...]]:
    """0, 10, 50, 90, 100 % points of image sides and of the short and long sides of defects, px."""
    empty = np.zeros((0, 4), np.float32)
    boxes = [record.annotation.boxes_xyxy_px[~record.annotation.is_ignored] for record in records]
    sides = np.sort(np.diff(np.concatenate([empty, *boxes]).reshape(-1, 2, 2), axis=1)[:, 0], axis=1)
    measured = {"defect_short_px": sides[:, 0].tolist(), "defect_long_px": sides[:, 1].tolist()}
    return _quantiles({**_image_sides(records), **measured})


def _image_sides(records: Sequence[Record]) -> dict[str, list[float]]:
    return {
        "height_px": [record.size_hw[0] for record in records],
        "width_px": [record.size_hw[1] for record in records],
    }


def _quantiles(measured: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    return {
        name: tuple(round(float(value), 1) for value in np.quantile(values, _QUANTILES))
        for name, values in measured.items()
        if len(values)
    }
