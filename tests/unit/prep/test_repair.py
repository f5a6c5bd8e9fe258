"""What is repaired, dropped or left alone. The image is 80 x 60 px. Run: pytest tests/unit/prep/test_repair.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.dataset.region_checks import region_fault
from pipelines.prep.raw import RawImage, RawRegion
from pipelines.prep.repair import repaired_regions

BOX = [[10, 10], [50, 10], [50, 20], [10, 20]]


def repaired(*polygons):
    raws = tuple(RawRegion(points, "text", False, line) for line, points in enumerate(polygons, 1))
    raw = RawImage(Path("a.jpg"), "a.jpg", "a.csv", None, raws)
    return repaired_regions(raw, (60, 80))


@pytest.mark.parametrize(
    "points",
    [BOX, BOX[::-1], [[10, 10], [50, 12], [30, 40]], [[0, 0], [80, 0], [80, 60], [0, 60]], [[1.5, 2], [9, 2], [9, 8]]],
    ids=["box", "counter-clockwise", "triangle", "whole image", "fractions"],
)
def test_a_sound_region_is_left_as_it_is_and_nothing_is_told(points):
    (region,), faults = repaired(points)
    assert region.points_px.tolist() == points and not faults


@pytest.mark.parametrize(
    ("points", "expected", "told"),
    [
        ([[10, 10], [50, 20], [50, 10], [10, 20]], BOX, "bow-tie"),
        ([[-3, 10], [50, 10], [50, 20], [-3, 20]], [[0, 10], [50, 10], [50, 20], [0, 20]], "clipped"),
        ([[70, 50], [85, 50], [85, 66], [70, 66]], [[70, 50], [80, 50], [80, 60], [70, 60]], "clipped"),
        ([["10", "10"], ["50", "10.0"], [50, 20], [10, 20]], BOX, "read as numbers"),
        ([[10, 10], [10, 10], [50, 10], [50, 20], [10, 20], [10, 10]], BOX, "2 repeated point(s) removed"),
        ([[-4, 10], [50, 20], [50, 10], [-4, 20]], [[0, 10], [50, 10], [50, 20], [0, 20]], "clipped"),
    ],
    ids=["bow-tie", "left", "right and bottom", "text", "repeats", "bow-tie and left"],
)
def test_a_safe_repair_is_made_and_told(points, expected, told):
    (region,), (fault,) = repaired(points)
    assert sorted(map(tuple, region.points_px.tolist())) == sorted(map(tuple, expected))
    assert region_fault(region.points_px, (60, 80)) == "" and not region.is_ignored
    assert fault.action == "repaired" and told in fault.reason and (fault.file, fault.line) == ("a.csv", 1)


@pytest.mark.parametrize(
    ("points", "told"),
    [
        ([[10, 10], [50, 10]], "at least 3 different points, but this has 2"),
        ([[10, 10], [10, 10], [50, 10], [50, 10]], "at least 3 different points, but this has 2"),
        ([[10, 10]] * 4, "but this has 0"),
        ([[10, 10], [20, 10], [30, 10], [40, 10]], "encloses no area"),
        ([[10, 10], [10.5, 10], [10.5, 10.5], [10, 10.5]], "encloses no area"),
        ([[90, 10], [99, 10], [99, 20], [90, 20]], "wholly outside the image of 80 x 60 px"),
        ([[79.99, 10], [99, 10], [99, 20], [79.99, 20]], "encloses no area"),
        (None, "must be numbers"),
        ([[10, "ten"], [50, 10], [50, 20]], "must be numbers"),
        ([[10, float("nan")], [50, 10], [50, 20]], "must be numbers"),
        ([[10], [50, 10], [50, 20]], "must be numbers"),
    ],
)
def test_a_region_with_nothing_to_learn_from_is_dropped_and_told(points, told):
    regions, (fault,) = repaired(points)
    assert regions == () and fault.action == "dropped" and told in fault.reason


def test_a_tangled_polygon_becomes_an_ignore_region_over_its_hull():
    star = [[40, 5], [50, 45], [15, 20], [65, 20], [30, 45]]
    (region,), (fault,) = repaired(star)
    assert region.is_ignored and len(region.points_px) == 5 and "ignore region" in fault.reason


def test_a_slanted_box_is_cut_at_the_frame_exactly():
    (region,), _ = repaired([[70, 20], [90, 40], [80, 50], [60, 30]])
    assert region.points_px.max(axis=0).tolist() == [80, 50]
    # The part right of x = 80 is the triangle (80, 30) (90, 40) (80, 50): 100 px² of the box's 400.
    x, y = region.points_px.astype(float).T
    assert abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2 == pytest.approx(300)


def test_one_bad_region_takes_nothing_from_its_neighbours():
    regions, faults = repaired(BOX, [[1, 1]], BOX[::-1])
    assert len(regions) == 2 and [fault.line for fault in faults] == [2]


def test_one_outline_twice_is_kept_once_and_told():
    regions, (fault,) = repaired(BOX, BOX)
    assert (
        len(regions) == 1 and (fault.line, fault.action) == (2, "repaired") and "the same outline twice" in fault.reason
    )


def test_two_hundred_random_polygons_end_sound_or_told():
    rng = np.random.default_rng(11)
    for _ in range(200):
        points = np.round(rng.uniform(-20, 100, (int(rng.integers(3, 8)), 2)), 1).tolist()
        regions, faults = repaired(points)
        assert len(regions) + sum(fault.action == "dropped" for fault in faults) == 1
        assert all(region_fault(region.points_px, (60, 80)) == "" for region in regions)
        if regions and regions[0].points_px.tolist() != np.array(points, np.float32).tolist():
            assert faults[0].action == "repaired"
