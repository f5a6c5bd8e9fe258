"""Where tiles lie: a grid for evaluation and deployment, and the few more that training needs."""

from __future__ import annotations

import math

import numpy as np

from pipelines.errors import UsageError
from pipelines.records import DefectAnnotation

Window = tuple[int, int, int, int]
"""Left, top, right, bottom in whole pixels of the image."""


def tile_grid(size_hw: tuple[int, int], tile_hw: tuple[int, int], overlap_px: int) -> list[Window]:
    """Windows of one size that cover the image, row by row.

    Along a side of length L, tiles of T px that share at least V px need n = ceil((L - T) / (T - V)) steps; tile
    i starts at floor(i (L - T) / n). So the last one ends at the edge, and what is left over widens all overlaps
    evenly instead of making the last tile a near copy of the one before.

    Args:
        size_hw: (height, width) of the image, pixels.
        tile_hw: of a tile; a side that is longer than the image's shrinks to it.
        overlap_px: what neighbours share at least.

    Returns:
        Windows without repetition; the whole image if it fits a tile.

    Raises:
        UsageError: no room between `overlap_px` and the tile's sides.
    """
    if not 0 <= overlap_px < min(tile_hw):
        raise UsageError(
            f"overlap_px must be at least 0 and less than both sides of a tile, but got {overlap_px} for tiles of "
            f"{tile_hw[1]} x {tile_hw[0]} px; a fifth of the shorter side is usual"
        )
    rows, columns = (_spans(side, tile, overlap_px) for side, tile in zip(size_hw, tile_hw, strict=True))
    return [(left, top, right, bottom) for top, bottom in rows for left, right in columns]


def _spans(side: int, tile: int, overlap_px: int) -> list[tuple[int, int]]:
    if side <= tile:
        return [(0, side)]
    num_steps = math.ceil((side - tile) / (tile - overlap_px))
    starts = (index * (side - tile) // num_steps for index in range(num_steps + 1))
    return [(start, start + tile) for start in starts]


def training_tiles(
    size_hw: tuple[int, int], tile_hw: tuple[int, int], overlap_px: int, annotation: DefectAnnotation
) -> list[Window]:
    """The grid, and a window around every object that fits a tile but is whole in none.

    An object larger than a tile is whole nowhere; `view_boxes` says what its pieces are.

    Args:
        size_hw: (height, width) of the image, pixels.
        tile_hw: of a tile.
        overlap_px: as in `tile_grid`.
        annotation: of the image; ignore regions need no window.

    Returns:
        The grid's windows, then the others, without repetition.

    Raises:
        UsageError: as in `tile_grid`.
    """
    windows = tile_grid(size_hw, tile_hw, overlap_px)
    size_wh = np.array(size_hw[::-1])
    tile_wh = np.minimum(tile_hw[::-1], size_wh)
    boxes = np.clip(annotation.boxes_xyxy_px[~annotation.is_ignored].astype(np.float64), 0, np.tile(size_wh, 2))
    # Windows are whole pixels, so a box needs room for the pixels that it only touches.
    first, last = np.floor(boxes[:, :2]), np.ceil(boxes[:, 2:])
    fits = (last - first <= tile_wh).all(axis=1)
    num_in_grid = len(windows)
    for index in np.flatnonzero(fits & ~_is_whole(boxes, windows)):
        if not _is_whole(boxes[index : index + 1], windows[num_in_grid:]).item():  # its neighbour's may hold it
            start = np.clip((first[index] + last[index] - tile_wh) // 2, 0, size_wh - tile_wh).astype(int)
            left, top, right, bottom = np.concatenate((start, start + tile_wh)).tolist()
            windows.append((left, top, right, bottom))
    return windows


def _is_whole(boxes: np.ndarray, windows: list[Window]) -> np.ndarray:
    """Whether any of the windows holds the whole box; bool, one a box."""
    corners = np.array(windows, dtype=np.int64).reshape(-1, 1, 4)
    inside = (corners[..., :2] <= boxes[:, :2]) & (boxes[:, 2:] <= corners[..., 2:])
    return np.asarray(inside.all(axis=-1).any(axis=0))
