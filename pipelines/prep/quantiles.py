"""How large the images of a split are, and what is labelled on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipelines.geometry import equivalent_height
from pipelines.records import Record

_QUANTILES = (0, 0.1, 0.5, 0.9, 1)


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
