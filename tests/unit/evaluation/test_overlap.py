"""Overlap areas of any polygons, also broken ones, are those of shapely taken pair by pair."""

from __future__ import annotations

import numpy as np
import shapely

from pipelines.evaluation.overlap import as_geometries, intersection_areas, iou_matrix

SQUARE = np.array([[0, 0], [10, 0], [10, 10], [0, 10]], dtype=np.float32)
BOW_TIE = SQUARE[[0, 2, 1, 3]]


def test_bow_tie_becomes_the_quad_that_its_corners_span() -> None:
    assert not shapely.Polygon(BOW_TIE).is_valid
    assert shapely.area(as_geometries([BOW_TIE])).tolist() == [100]


def test_polygons_of_different_lengths_keep_their_order() -> None:
    triangle, hexagon = SQUARE[:3], np.array([[0, 0], [2, 0], [3, 1], [2, 2], [0, 2], [-1, 1]])
    assert shapely.area(as_geometries([hexagon, SQUARE[:2], triangle, SQUARE])).tolist() == [6, 0, 50, 100]


def test_concave_polygons_are_not_filled_in() -> None:
    corner = np.array([[0, 0], [10, 0], [10, 2], [2, 2], [2, 10], [0, 10]])
    geometries = as_geometries([corner, SQUARE + 2])
    assert shapely.area(geometries[0]) == 36
    assert intersection_areas(geometries[:1], geometries[1:]).item() == 0  # boxes overlap, polygons do not


def test_areas_equal_pairwise_shapely_and_some_are_zero_some_are_not() -> None:
    rng = np.random.default_rng(3)
    quads = [SQUARE * rng.uniform(1, 4, 2) + rng.uniform(-60, 60, 2) + rng.normal(0, 1, (4, 2)) for _ in range(60)]
    rows, columns = as_geometries(quads[:35]), as_geometries(quads[35:])
    areas = intersection_areas(rows, columns)
    expected = np.array([[row.intersection(column).area for column in columns] for row in rows])
    np.testing.assert_array_equal(areas, expected)
    assert 20 < np.count_nonzero(areas) < areas.size / 2


def test_no_polygons_give_an_empty_matrix() -> None:
    none, one = as_geometries([]), as_geometries([SQUARE])
    assert intersection_areas(none, one).shape == (0, 1) and intersection_areas(one, none).shape == (1, 0)


def test_iou_of_two_polygons_without_area_is_zero_not_nan() -> None:
    assert iou_matrix(np.zeros((1, 1)), np.zeros(1), np.zeros(1)).item() == 0
    assert iou_matrix(np.array([[50.0]]), np.array([100.0]), np.array([100.0])).item() == 50 / 150
