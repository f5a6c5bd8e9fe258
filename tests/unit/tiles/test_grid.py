"""The grid covers every pixel with the overlap asked for, for all small sizes; training tiles hold every object."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pipelines.errors import UsageError
from pipelines.records import DefectAnnotation
from pipelines.tiles import tile_grid, training_tiles


def annotated(*boxes: tuple[float, ...], is_ignored: bool = False) -> DefectAnnotation:
    return DefectAnnotation(np.array(boxes), np.zeros(len(boxes), np.int64), np.full(len(boxes), is_ignored))


SMALL_CASES = [
    (length, tile, overlap)
    for length, tile in itertools.product(range(1, 41), range(1, 13))
    for overlap in range(tile)  # all that are allowed
]


def test_all_small_sizes_are_covered_once_over_with_the_overlap_and_a_last_tile_at_the_edge() -> None:
    for length, tile, overlap in SMALL_CASES:
        spans = [(top, bottom) for _, top, _, bottom in tile_grid((length, 1), (tile, tile), overlap)]
        case = f"length {length}, tile {tile}, overlap {overlap}: {spans}"
        assert spans[0][0] == 0 and spans[-1][1] == length, case
        assert {end - start for start, end in spans} == {min(tile, length)}, case
        assert all(first[1] - second[0] >= overlap for first, second in itertools.pairwise(spans)), case
        assert len(set(spans)) == len(spans), case
    assert len(SMALL_CASES) == 40 * 78


def test_no_grid_with_fewer_tiles_would_keep_the_overlap() -> None:
    for length, tile, overlap in SMALL_CASES:
        num_tiles = len(tile_grid((1, length), (tile, tile), overlap))
        most_with_one_less = tile + (num_tiles - 2) * (tile - overlap)
        assert num_tiles == 1 or most_with_one_less < length, (length, tile, overlap)


def test_what_is_left_over_widens_all_overlaps_evenly() -> None:
    # 2 steps for the 14 px behind the first tile: starts 0, 7, 14 instead of 0, 8, 14.
    assert tile_grid((10, 24), (10, 10), 2) == [(0, 0, 10, 10), (7, 0, 17, 10), (14, 0, 24, 10)]


def test_rows_and_columns_are_windows_row_by_row() -> None:
    assert tile_grid((6, 8), (4, 5), 0) == [(0, 0, 5, 4), (3, 0, 8, 4), (0, 2, 5, 6), (3, 2, 8, 6)]


@pytest.mark.parametrize("size_hw", [(5, 7), (10, 10), (1, 1)])
def test_an_image_that_fits_is_one_window(size_hw: tuple[int, int]) -> None:
    assert tile_grid(size_hw, (10, 10), 4) == [(0, 0, size_hw[1], size_hw[0])]


def test_an_image_that_fits_in_one_direction_is_a_strip() -> None:
    assert tile_grid((5, 16), (10, 10), 2) == [(0, 0, 10, 5), (6, 0, 16, 5)]


@pytest.mark.parametrize("overlap_px", [-1, 320, 400])
def test_an_overlap_without_room_is_refused_with_both_numbers(overlap_px: int) -> None:
    with pytest.raises(UsageError, match=rf"overlap_px .* got {overlap_px} for tiles of 640 x 320 px"):
        tile_grid((1000, 1000), (320, 640), overlap_px)


def test_every_object_that_fits_is_whole_in_a_training_tile() -> None:
    rng = np.random.default_rng(5)
    num_fitting, num_beyond_grid = 0, 0
    for _ in range(150):
        size_hw, tile_hw = (tuple(rng.integers(low, high, 2).tolist()) for low, high in ((20, 200), (10, 60)))
        overlap = int(rng.integers(0, min(tile_hw) // 2))
        start = rng.uniform(0, np.array(size_hw[::-1]) - 2, (12, 2))
        boxes = np.concatenate((start, np.minimum(start + rng.uniform(1, 50, (12, 2)), size_hw[::-1])), axis=1)
        grid = tile_grid(size_hw, tile_hw, overlap)
        windows = training_tiles(size_hw, tile_hw, overlap, annotated(*boxes))
        assert windows[: len(grid)] == grid and len(set(windows)) == len(windows)
        tile_wh = np.minimum(tile_hw, size_hw)[::-1]
        corners = np.array(windows)
        assert (corners[:, 2:] - corners[:, :2] == tile_wh).all()
        assert (corners[:, :2] >= 0).all() and (corners[:, 2:] <= size_hw[::-1]).all()

        boxes = boxes.astype(np.float32)
        fits = (np.ceil(boxes[:, 2:]) - np.floor(boxes[:, :2]) <= tile_wh).all(axis=1)
        is_whole = ((corners[:, None, :2] <= boxes[:, :2]) & (boxes[:, 2:] <= corners[:, None, 2:])).all(axis=2)
        assert is_whole[:, fits].any(axis=0).all()
        num_fitting += int(fits.sum())
        num_beyond_grid += int((fits & ~is_whole[: len(grid)].any(axis=0)).sum())
    assert num_fitting > 800 and num_beyond_grid > 100  # the grid alone would fail


def test_one_more_window_is_laid_around_an_object_on_a_seam_and_shared_by_its_neighbour() -> None:
    on_seam, neighbour = (8, 2, 12, 4), (9, 5, 11, 7)
    windows = training_tiles((10, 20), (10, 10), 0, annotated(on_seam, neighbour))
    assert windows == [(0, 0, 10, 10), (10, 0, 20, 10), (5, 0, 15, 10)]


def test_ignore_regions_and_objects_larger_than_a_tile_need_no_window() -> None:
    grid = tile_grid((10, 20), (10, 10), 0)
    assert training_tiles((10, 20), (10, 10), 0, annotated((8, 2, 12, 4), is_ignored=True)) == grid
    assert training_tiles((10, 20), (10, 10), 0, annotated((4, 2, 15, 4))) == grid
    assert training_tiles((10, 20), (10, 10), 0, DefectAnnotation()) == grid


def test_an_object_that_touches_one_pixel_more_than_a_tile_has_does_not_fit() -> None:
    assert len(training_tiles((10, 20), (10, 10), 0, annotated((4.5, 2, 14.5, 4)))) == 2
    assert len(training_tiles((10, 20), (10, 10), 0, annotated((4.5, 2, 14.0, 4)))) == 3
