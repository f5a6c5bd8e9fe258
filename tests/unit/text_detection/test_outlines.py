"""Polygons measured together give what `geometry` gives one by one, and move inwards as clipper moves them."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from pipelines.geometry import equivalent_height, exterior_angles, offset_polygon, polygon_area, polygon_perimeter
from pipelines.text_detection.outlines import Outlines


def random_polygons(seed: int, count: int = 40) -> list[np.ndarray]:
    """Polygons of 3 to 9 points around a centre, in either direction, convex and not; float64."""
    rng = np.random.default_rng(seed)
    polygons = []
    for _ in range(count):
        angles = np.sort(rng.uniform(0, 2 * np.pi, int(rng.integers(3, 10))))[:: rng.choice([-1, 1])]
        radii = rng.uniform(20, 60, len(angles))
        polygons.append(np.stack([np.cos(angles), np.sin(angles)], axis=1) * radii[:, None] + rng.uniform(-50, 700, 2))
    return polygons


def test_measures_equal_those_of_one_polygon_at_a_time() -> None:
    polygons = random_polygons(0)
    outlines = Outlines.of(polygons)
    for index, polygon in enumerate(polygons):
        np.testing.assert_array_equal(outlines[index], polygon)
        assert outlines.areas[index] == pytest.approx(polygon_area(polygon))
        assert outlines.perimeters[index] == pytest.approx(polygon_perimeter(polygon))
        assert outlines.heights[index] == pytest.approx(equivalent_height(polygon))
        np.testing.assert_allclose(outlines.split(outlines.angles)[index], exterior_angles(polygon), atol=1e-9)


def test_what_can_be_drawn_is_what_shapely_calls_valid() -> None:
    rng = np.random.default_rng(1)
    polygons = random_polygons(1) + [rng.uniform(0, 90, (int(rng.integers(4, 7)), 2)) for _ in range(60)]
    drawable = Outlines.of(polygons).are_drawable
    expected = [shapely.Polygon(polygon).is_valid and polygon_area(polygon) >= 1 for polygon in polygons]
    assert drawable.tolist() == expected
    assert 20 < sum(expected) < 90  # both kinds are there


def test_convex_polygons_move_as_clipper_moves_them() -> None:
    polygons = [np.array(shapely.Polygon(each).convex_hull.exterior.coords[:-1]) for each in random_polygons(2)]
    outlines = Outlines.of(polygons)
    assert outlines.are_convex.all()
    distances = np.random.default_rng(2).uniform(0.02, 0.5, len(polygons)) * outlines.heights
    moved, is_exact = outlines.moved_inwards(distances)
    assert 10 < is_exact.sum() < len(polygons)  # some lose an edge
    for index in np.flatnonzero(is_exact):
        (expected,) = offset_polygon(polygons[index], -distances[index])
        difference = shapely.symmetric_difference(shapely.Polygon(moved[index]), shapely.Polygon(expected))
        assert difference.area < 0.02 * polygon_perimeter(expected)  # clipper has whole 1/128 px


def test_a_square_moved_by_hand_and_what_is_left_to_others() -> None:
    square = np.array([[10, 20], [50, 20], [50, 60], [10, 60]], float)
    arrow = np.array([[0, 0], [200, 0], [200, 60], [100, 40], [0, 60]], float)
    moved, is_exact = Outlines.of([square, square[::-1], arrow, square]).moved_inwards(np.array([5.0, 5.0, 5.0, 20.0]))
    np.testing.assert_allclose(moved[0], [[15, 25], [45, 25], [45, 55], [15, 55]])
    np.testing.assert_allclose(moved[1], moved[0][::-1])
    assert is_exact.tolist() == [True, True, False, False]  # not convex; nothing left


def test_repeated_points_are_left_out_and_a_polygon_of_one_point_stays() -> None:
    square = np.array([[0, 0], [8, 0], [8, 8], [0, 8]], float)
    outlines = Outlines.of([np.full((4, 2), 9.0), np.repeat(square, 2, axis=0), np.vstack([square, square[:1]])])
    assert outlines.starts.tolist() == [0, 1, 5]
    assert outlines[0].tolist() == [[9, 9]]
    assert sorted(map(tuple, outlines[2])) == sorted(map(tuple, square))
    assert outlines.are_drawable.tolist() == [False, True, True]
    assert outlines.areas.tolist() == [0, 64, 64]


def test_no_polygon_at_all() -> None:
    outlines = Outlines.of([])
    assert len(outlines) == 0 and outlines.split(outlines.points) == []
    assert outlines.areas.shape == outlines.heights.shape == outlines.are_drawable.shape == (0,)
    moved, is_exact = outlines.moved_inwards(np.zeros(0))
    assert len(moved) == len(is_exact) == 0
