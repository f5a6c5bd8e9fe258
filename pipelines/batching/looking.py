"""Looking at an image file through a view, decoding a JPEG no finer than the view can show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from pipelines.batching.views import largest_scale, warp
from pipelines.dataset import read_image
from pipelines.errors import DataError

_REDUCTIONS = (8, 4, 2)
_LARGEST_SCALE = 0.5
"""Sample pixels per decoded pixel at most. Linear sampling at half size or less hits single pixels either way; on
receipts scanned with 600 dpi and shown at 0.18, decoding at half size changes a sample by 2 of 255 on average."""


def look_at(
    file: Path,
    source_hw: tuple[int, int],
    matrix: np.ndarray,
    size_hw: tuple[int, int],
    *,
    read: Callable[[Path, int], np.ndarray] = read_image,
) -> np.ndarray:
    """What a view shows of an image file.

    Args:
        file: the image.
        source_hw: (height, width) that the dataset says it has, pixels.
        matrix: 2 x 3 or 3 x 3, source to sample pixels.
        size_hw: (height, width) of the sample.
        read: what decodes the file at 1 / reduction of its size.

    Returns:
        uint8 (height, width, 3), BGR.

    Raises:
        DataError: no such image, damaged, or of another size, so that its labels can't be trusted; names the file.
    """
    reduction = decode_reduction(matrix, size_hw)
    image = read(file, reduction)
    if image.shape[:2] == source_hw:  # no JPEG, or wanted whole
        return warp(image, matrix, size_hw)
    if image.shape[:2] != tuple(-(-side // reduction) for side in source_hw):
        height, width = image.shape[0] * reduction, image.shape[1] * reduction
        about = "about " if reduction > 1 else ""
        raise DataError(
            f"{file}: the image is {about}{height} x {width} (height x width), but the dataset says"
            f" {source_hw[0]} x {source_hw[1]}; prepare the dataset again"
        )
    return warp(image, matrix * (reduction, reduction, 1), size_hw)


def decode_reduction(matrix: np.ndarray, size_hw: tuple[int, int]) -> int:
    """How many source pixels, along each side, may become one before a view of that scale is warped: 1, 2, 4 or 8."""
    scale = largest_scale(matrix, size_hw)
    return next((reduction for reduction in _REDUCTIONS if reduction * scale <= _LARGEST_SCALE), 1)
