"""One detection an object, whether tiles saw it whole, twice or in pieces; two neighbours stay two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.records import DefectAnnotation, DefectPrediction
from pipelines.tiles import MergeRule, Window, merge_tiles, tile_grid, view_boxes

NO_RULE = MergeRule(iou_threshold=2.0, min_contact=2.0, min_inside=2.0)
"""The control: nothing is ever joined."""


def seen_in_tiles(
    boxes: np.ndarray, windows: list[Window], confidences: np.ndarray, class_ids: np.ndarray
) -> list[DefectPrediction]:
    """What a perfect detector finds: in every tile, the part of every object that lies in it."""
    predictions = []
    for window in windows:
        whole = DefectAnnotation(boxes, np.arange(len(boxes)), np.zeros(len(boxes), bool))
        view = view_boxes(whole, window)
        index = view.class_ids
        predictions.append(DefectPrediction(view.boxes_xyxy_px, class_ids[index], confidences[index]))
    return predictions


def merged(
    *boxes: tuple[float, ...], size_hw: tuple[int, int], tile_hw: tuple[int, int], overlap_px: int = 20, **rule: float
) -> list[list[float]]:
    windows = tile_grid(size_hw, tile_hw, overlap_px)
    zeros = np.zeros(len(boxes), np.int64)
    tiles = seen_in_tiles(np.array(boxes, np.float32), windows, np.linspace(0.9, 0.8, len(boxes)), zeros)
    return merge_tiles(tiles, windows, size_hw, MergeRule(**rule)).boxes_xyxy_px.tolist()


def predicted(*rows: tuple[float, ...]) -> DefectPrediction:
    """Rows of left, top, right, bottom, confidence, and a class if it isn't 0."""
    values = np.array([(*row, 0)[:6] for row in rows], dtype=np.float64).reshape(-1, 6)
    return DefectPrediction(values[:, :4], values[:, 5], values[:, 4])


# Two tiles of 100 px that share 20: [0, 100] and [80, 180].
PAIR: list[Window] = [(0, 0, 100, 100), (80, 0, 180, 100)]
PAIR_HW = (100, 180)


def pair(first: DefectPrediction, second: DefectPrediction) -> list[list[float]]:
    """Merged boxes with their confidences, two decimals."""
    found = merge_tiles([first, second], PAIR, PAIR_HW)
    rows = np.column_stack((found.boxes_xyxy_px, found.confidences))
    return rows.astype(np.float64).round(2).tolist()


def test_a_scratch_over_four_tiles_in_a_row_is_found_once_with_its_full_extent() -> None:
    scratch = (30, 40, 300, 52)
    assert len(tile_grid((100, 340), (100, 100), 20)) == 4
    assert merged(scratch, size_hw=(100, 340), tile_hw=(100, 100)) == [list(scratch)]


def test_without_the_rule_the_same_scratch_is_found_four_times() -> None:
    boxes = merged((30, 40, 300, 52), size_hw=(100, 340), tile_hw=(100, 100), **vars(NO_RULE))
    assert sorted(boxes) == [[30, 40, 100, 52], [80, 40, 180, 52], [160, 40, 260, 52], [240, 40, 300, 52]]


@pytest.mark.parametrize("overlap_px", [0, 20, 45])
def test_a_stain_over_two_by_two_tiles_is_found_once(overlap_px: int) -> None:
    stain = (60, 55, 130, 140)
    size_hw = (200 - overlap_px, 200 - overlap_px)
    assert len(tile_grid(size_hw, (100, 100), overlap_px)) == 4
    assert merged(stain, size_hw=size_hw, tile_hw=(100, 100), overlap_px=overlap_px) == [list(stain)]


def test_a_stain_over_nine_tiles_is_found_once() -> None:
    assert merged((10, 10, 250, 240), size_hw=(260, 260), tile_hw=(100, 100)) == [[10, 10, 250, 240]]


def test_a_slanting_scratch_is_joined_though_its_pieces_have_other_heights() -> None:
    # Slope 1/2 from (20, 10) to (160, 80): up to x = 100 in the first tile, from x = 80 in the second.
    assert pair(predicted((20, 10, 100, 50, 0.7)), predicted((0, 40, 80, 80, 0.9))) == [[20, 10, 160, 80, 0.9]]


def test_an_object_seen_whole_by_both_tiles_is_the_more_confident_of_the_two() -> None:
    assert pair(predicted((85, 30, 94, 50, 0.6)), predicted((5, 31, 15, 50, 0.8))) == [[85, 31, 95, 50, 0.8]]


def test_of_two_boxes_of_an_object_the_one_that_no_border_cuts_is_better_however_confident_the_other() -> None:
    assert pair(predicted((82, 30, 94, 50, 0.6)), predicted((0, 30, 14, 50, 0.8))) == [[82, 30, 94, 50, 0.8]]


def test_a_piece_vanishes_into_the_whole_object_of_the_next_tile_and_leaves_its_confidence() -> None:
    assert pair(predicted((90, 30, 100, 50, 0.9)), predicted((10, 30, 50, 50, 0.6))) == [[90, 30, 130, 50, 0.9]]


def test_a_piece_in_the_border_corner_of_four_tiles_vanishes_too() -> None:
    assert merged((85, 85, 170, 170), size_hw=(180, 180), tile_hw=(100, 100)) == [[85, 85, 170, 170]]


def test_two_neighbours_on_either_side_of_a_seam_stay_two() -> None:
    # Both lie in what the tiles share or reach into it, so each tile sees one whole and one cut.
    left, right = (40, 30, 89, 50), (91, 30, 140, 50)
    assert merged(left, right, size_hw=PAIR_HW, tile_hw=(100, 100)) == [list(left), list(right)]


def test_two_scratches_side_by_side_across_a_seam_stay_two() -> None:
    upper, lower = (30, 30, 150, 40), (20, 41, 170, 50)
    assert merged(upper, lower, size_hw=PAIR_HW, tile_hw=(100, 100)) == [list(upper), list(lower)]


def test_scratches_whose_boxes_overlap_a_little_each_find_their_own_continuation() -> None:
    upper, lower = (30, 30, 150, 45), (20, 40, 170, 60)
    assert merged(upper, lower, size_hw=PAIR_HW, tile_hw=(100, 100)) == [list(upper), list(lower)]


def test_boxes_of_different_classes_are_never_joined() -> None:
    found = pair(predicted((20, 30, 100, 50, 0.9, 0)), predicted((0, 30, 60, 50, 0.8, 1)))
    assert found == [[20, 30, 100, 50, 0.9], [80, 30, 140, 50, 0.8]]


def test_overlapping_boxes_of_one_tile_are_left_to_the_model() -> None:
    inside = predicted((20, 30, 60, 50, 0.9), (20, 30, 58, 50, 0.8))
    assert len(pair(inside, predicted())) == 2


def test_the_images_own_border_is_no_seam() -> None:
    # One box inside another, of different tiles. Cut by a seam it is a piece, at the image's border whole.
    whole, at_seam, at_border = (20, 10, 100, 90, 0.9), (0, 30, 15, 50, 0.8), (5, 0, 15, 20, 0.8)
    assert pair(predicted(whole), predicted(at_seam)) == [list(whole)]
    assert len(pair(predicted((20, 0, 100, 90, 0.9)), predicted(at_border))) == 2


def test_what_a_network_draws_beyond_its_tile_is_cut_off() -> None:
    assert pair(predicted((-5, 30, 30, 50, 0.9)), predicted((70, 60, 120, 110, 0.8))) == [
        [0, 30, 30, 50, 0.9],
        [150, 60, 180, 100, 0.8],
    ]
    assert pair(predicted((101, 30, 120, 50, 0.9)), predicted()) == []


def test_one_window_passes_its_boxes_through() -> None:
    found = merge_tiles([predicted((1, 2, 30, 40, 0.3), (0, 0, 50, 60, 0.7))], [(0, 0, 50, 60)], (60, 50))
    assert found.boxes_xyxy_px.tolist() == [[0, 0, 50, 60], [1, 2, 30, 40]]


def test_no_detection_anywhere_gives_an_empty_prediction() -> None:
    assert len(merge_tiles([predicted(), predicted()], PAIR, PAIR_HW)) == 0


def test_a_missing_prediction_is_refused() -> None:
    with pytest.raises(ValueError, match="one prediction a window, but got 1 for 2"):
        merge_tiles([predicted()], PAIR, PAIR_HW)


def random_scene(rng: np.random.Generator, min_gap_px: int) -> tuple[np.ndarray, list[Window], tuple[int, int]]:
    """Objects of all sizes, long scratches among them, at least `min_gap_px` apart; a grid over the image."""
    size_hw = tuple(rng.integers(150, 900, 2).tolist())
    windows = tile_grid(size_hw, tuple(rng.integers(150, 400, 2).tolist()), int(rng.integers(64, 110)))
    boxes: list[np.ndarray] = []
    for _ in range(30):
        wh = rng.integers(5, [size_hw[1] + 1 if rng.random() < 0.3 else 60, 60])
        wh = np.minimum(wh[:: rng.choice([1, -1])], size_hw[::-1])
        start = rng.integers(0, np.array(size_hw[::-1]) - wh + 1)
        box = np.concatenate((start, start + wh))
        if all((box[:2] - min_gap_px >= b[2:]).any() or (b[:2] - min_gap_px >= box[2:]).any() for b in boxes):
            boxes.append(box)
    return np.array(boxes, dtype=np.float32), windows, size_hw


@pytest.mark.parametrize("min_gap_px", [6, 0])
def test_random_objects_detected_in_pieces_are_recovered_one_to_one(min_gap_px: int) -> None:
    rng = np.random.default_rng(7)
    num_objects, num_left_in_pieces = 0, 0
    for _ in range(30):
        boxes, windows, size_hw = random_scene(rng, min_gap_px)
        class_ids = rng.integers(0, 2, len(boxes))
        confidences = rng.permutation(np.linspace(0.1, 0.9, len(boxes))).astype(np.float32)
        tiles = seen_in_tiles(boxes, windows, confidences, class_ids)
        found, order = merge_tiles(tiles, windows, size_hw), np.argsort(-confidences)
        np.testing.assert_array_equal(found.boxes_xyxy_px, boxes[order])
        np.testing.assert_array_equal(found.class_ids, class_ids[order])
        np.testing.assert_array_equal(found.confidences, confidences[order])
        num_objects += len(boxes)
        num_left_in_pieces += len(merge_tiles(tiles, windows, size_hw, NO_RULE)) - len(boxes)
    assert num_objects > 500 and num_left_in_pieces > 500  # the control: tiles as they are hold many more


def test_boxes_that_are_a_tenth_off_are_recovered_one_to_one() -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        boxes, windows, size_hw = random_scene(rng, min_gap_px=6)
        ones = np.ones(len(boxes), np.int64)
        tiles = []
        for prediction in seen_in_tiles(boxes, windows, ones.astype(np.float32), ones):
            xyxy, sides = (
                prediction.boxes_xyxy_px,
                np.tile(np.diff(prediction.boxes_xyxy_px.reshape(-1, 2, 2), axis=1)[:, 0], 2),
            )
            noise = rng.uniform(-1, 1, xyxy.shape) * np.minimum(4, 0.1 * sides)
            tiles.append(DefectPrediction(xyxy + noise, prediction.class_ids, prediction.confidences))
        found = merge_tiles(tiles, windows, size_hw).boxes_xyxy_px
        off = np.abs(found[:, None] - boxes[None]).max(axis=2)
        assert len(found) == len(boxes) and (off.min(axis=0) <= 4.01).all()


def test_neither_the_order_of_tiles_nor_that_inside_them_matters() -> None:
    rng = np.random.default_rng(9)
    windows = tile_grid((300, 400), (150, 150), 40)
    tiles = []
    for _ in windows:  # equal confidences and equal boxes, so that ties are many
        start = rng.integers(0, 120, (40, 2))
        boxes = np.concatenate((start, np.minimum(start + rng.integers(10, 60, (40, 2)), 150)), axis=1)
        tiles.append(DefectPrediction(boxes, rng.integers(0, 2, 40), rng.integers(1, 5, 40) / 4))
    expected = merge_tiles(tiles, windows, (300, 400))
    assert 100 < len(expected) < 40 * len(windows)
    for _ in range(5):
        shuffled = []
        for tile in rng.permutation(len(windows)).tolist():
            inner, one = rng.permutation(40), tiles[tile]
            shuffled.append(
                (
                    windows[tile],
                    DefectPrediction(one.boxes_xyxy_px[inner], one.class_ids[inner], one.confidences[inner]),
                )
            )
        found = merge_tiles([each for _, each in shuffled], [window for window, _ in shuffled], (300, 400))
        for name in ("boxes_xyxy_px", "class_ids", "confidences"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize(("tile_px", "overlap_px"), [(320, 64), (160, 32)])
def test_the_defects_of_real_boards_come_back_one_to_one_from_their_tiles(
    real_data: Path, tile_px: int, overlap_px: int
) -> None:
    num_objects, num_in_tiles = 0, 0
    windows = tile_grid((640, 640), (tile_px, tile_px), overlap_px)
    for file in sorted(real_data.glob("pcb/**/*_not/*.txt")):
        rows = np.array([line.replace(",", " ").split() for line in file.read_text().splitlines()], dtype=np.float32)
        boxes, class_ids = np.clip(rows[:, :4], 0, 640), rows[:, 4].astype(np.int64)
        tiles = seen_in_tiles(boxes, windows, np.full(len(boxes), 0.5), class_ids)
        found = merge_tiles(tiles, windows, (640, 640))
        merged_rows = np.column_stack((found.boxes_xyxy_px, found.class_ids))
        assert sorted(merged_rows.tolist()) == sorted(np.column_stack((boxes, class_ids)).tolist()), file.name
        num_objects += len(boxes)
        num_in_tiles += sum(len(tile) for tile in tiles)
    assert num_in_tiles > 2 * num_objects > 0
