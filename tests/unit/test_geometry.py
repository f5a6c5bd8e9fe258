"""Plane geometry of label faults, against shapes worked out by hand. Run: pytest tests/unit/test_geometry.py"""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from pipelines.geometry import (
    box_areas,
    box_intersection_wh,
    box_intersections,
    clip_polygon,
    equivalent_height,
    is_simple_polygon,
    polygon_area,
    transform_boxes,
    transform_points,
    untangle_quad,
    upright_matrix,
)


def polygon(*points):
    return np.array(points, np.float32)


def test_the_equivalent_height_of_a_rectangle_is_its_short_side_however_it_lies():
    assert equivalent_height(polygon((0, 0), (40, 0), (40, 10), (0, 10))) == pytest.approx(10)
    assert equivalent_height(polygon((0, 0), (0, 40), (10, 40), (10, 0))) == pytest.approx(10)
    # 5 x 20, turned so that its sides run along (3, 4) and (-4, 3).
    assert equivalent_height(polygon((0, 0), (3, 4), (-13, 16), (-16, 12))) == pytest.approx(5)


def test_a_shape_rounder_than_a_square_still_has_a_height():
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    circle = 10 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert equivalent_height(circle) == pytest.approx(10 * np.pi / 2, rel=1e-2)


@pytest.mark.parametrize(
    ("points", "is_simple"),
    [
        (((0, 0), (9, 0), (9, 9), (0, 9)), True),
        (((0, 0), (9, 9), (9, 0), (0, 9)), False),
        (((0, 0), (9, 0), (3, 3), (0, 9)), True),
        (((0, 0), (5, 0), (9, 0)), False),
        (((0, 0), (9, 0), (9, 9), (5, 0)), False),
    ],
    ids=["square", "bow-tie", "arrow head", "line", "touching itself"],
)
def test_simple_polygons_are_told_from_crossing_ones(points, is_simple):
    assert is_simple_polygon(polygon(*points)) is is_simple


def test_untangling_keeps_the_first_point_and_gives_the_area_of_the_hull():
    for first in range(4):
        bow_tie = np.roll(polygon((0, 0), (8, 5), (8, 0), (0, 5)), -first, axis=0)
        quad = untangle_quad(bow_tie)
        assert quad[0].tolist() == bow_tie[0].tolist()
        assert is_simple_polygon(quad) and polygon_area(quad) == 40


def test_clipping_an_upright_box_keeps_the_order_of_its_points():
    box = polygon((-3, 2), (10, 2), (10, 9), (-3, 9))
    assert clip_polygon(box, (7, 8)).tolist() == [[0, 2], [8, 2], [8, 7], [0, 7]]


def test_clipping_a_slanted_box_is_exact_where_moving_its_points_is_not():
    diamond = polygon((8, -4), (16, 4), (8, 12), (0, 4))
    clipped = clip_polygon(diamond, (20, 20))
    # The part above y = 0 is the triangle (8, -4) (12, 0) (4, 0): 16 px² of the diamond's 128.
    assert polygon_area(clipped) == pytest.approx(112)
    assert polygon_area(np.clip(diamond, 0, 20)) == pytest.approx(96)


def test_of_two_parts_inside_the_frame_the_larger_is_kept():
    horseshoe = polygon((0, -5), (20, -5), (20, 8), (15, 8), (15, -2), (6, -2), (6, 4), (0, 4))
    clipped = clip_polygon(horseshoe, (50, 50))
    assert polygon_area(clipped) == pytest.approx(5 * 8) and clipped[:, 0].min() == 15


def test_nothing_is_left_of_a_polygon_outside():
    assert clip_polygon(polygon((30, 0), (40, 0), (40, 9)), (20, 20)).shape == (0, 2)


def test_box_areas_and_what_boxes_share_by_hand() -> None:
    first, second = np.array([[0, 0, 4, 3.0]] * 3), np.array([[1, 1, 9, 9], [4, 0, 5, 3], [6, 1, 7, 2.0]])
    assert box_areas(first).tolist() == [12, 12, 12]
    assert box_intersection_wh(first, second).tolist() == [[3, 2], [0, 3], [-2, 1]]
    assert box_intersections(first, second).tolist() == [6, 0, 0]
    assert box_intersections(first[:2, None], second[None]).tolist() == [[6, 0, 0]] * 2
    assert box_intersections(first[:0, None], second[None]).shape == (0, 3)


_PIL_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_pixel_of_a_stored_picture_is_found_where_pil_shows_it(orientation):
    stored = np.zeros((4, 6), np.uint8)
    stored[1, 4] = 255  # from (4, 1) to (5, 2)
    image = Image.fromarray(stored)
    shown = np.asarray(image.transpose(_PIL_TURNS[orientation]) if orientation in _PIL_TURNS else image)
    box = transform_boxes(np.array([[4, 1, 5, 2]]), upright_matrix(orientation, (4, 6)))[0].astype(int)
    assert shown[box[1] : box[3], box[0] : box[2]].tolist() == [[255]]


def test_a_portrait_phone_photo_turns_clockwise():
    """By hand: orientation 6, stored 6 wide and 4 high; the stored top-left corner is shown at the top right."""
    assert transform_points(np.array([[0, 0], [6, 0], [1, 3]]), upright_matrix(6, (4, 6))).tolist() == [
        [4, 0],
        [4, 6],
        [1, 1],
    ]
