"""Metrics of a text run made by hand."""

from __future__ import annotations

from typing import Any


def metrics(
    small: float | None, large: float | None, setting: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """hmean `small` and `large` at IoU .5; .1 less at .7 and .2 less at .8."""

    def values(hmean: float | None, num_images: int) -> dict[str, Any]:
        cells: dict[str, Any] = {"num_images": num_images, "num_regions": 50, "num_ignored_regions": 3}
        for percent, less in ((50, 0.0), (70, 0.1), (80, 0.2)):
            value = None if hmean is None else hmean - less
            cells |= {f"{name}_{percent}": value for name in ("hmean", "precision", "recall")}
        return cells

    by_bucket = {"under 4000 px": values(small, 20), "4000 px and more": values(large, 4)}
    return {**values(small, 24), "by_bucket": by_bucket, "setting": setting, **more}
