"""Size buckets: the names under which images of like size are scored and repeated."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.evaluation.text import size_bucket
from pipelines.records import Record


def bucket_names(edges_px: Sequence[int]) -> list[str]:
    """One name more than there are edges, smallest first."""
    if not edges_px:
        return ["all sizes"]
    return [f"under {edges_px[0]} px", *(f"{edge} px and more" for edge in edges_px)]


def bucket_of(record: Record, edges_px: Sequence[int]) -> str:
    """The bucket of a record, by the longest side of its image."""
    return size_bucket(record.size_hw, edges_px, bucket_names(edges_px))
