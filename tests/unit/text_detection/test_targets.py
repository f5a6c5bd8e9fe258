"""Targets agree with PaddleOCR's (ratio) or with what the post-processing undoes (unclip); bad labels never raise."""

from __future__ import annotations

import cv2
import numpy as np
import pyclipper
import pytest
import shapely

from pipelines.errors import UsageError
from pipelines.geometry import polygon_area, polygon_perimeter
from pipelines.records import TextAnnotation, TextRegion
from pipelines.text_detection.boxes import PostProcess
from pipelines.text_detection.targets import TextTargets

ASPECTS = (1.0, 2.5, 12.0)
ANGLES_DEG = (0.0, 0.7, 17.0, 45.0)


def rectangle(centre_xy: tuple[float, float], width: float, height: float, angle_deg: float = 0.0) -> np.ndarray:
    """Corners, clockwise from the top left, float32 (4, 2)."""
    angle = np.deg2rad(angle_deg)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = np.array([[-width, -height], [width, -height], [width, height], [-width, height]]) / 2
    return (corners @ turn.T + centre_xy).astype(np.float32)


def annotation(*polygons, ignored: bool = False) -> TextAnnotation:
    return TextAnnotation(tuple(TextRegion(np.asarray(polygon, np.float32), "", ignored) for polygon in polygons))


def worst_round_trip_iou(rule: str, unclip_ratio: float, height: float = 160.0) -> float:
    """Least IoU of a label with the box that the post-processing makes of its own shrink map."""
    targets, post_process = TextTargets(rule, unclip_ratio=unclip_ratio), PostProcess(unclip_ratio=unclip_ratio)
    worst = 1.0
    for aspect in ASPECTS:
        side = int(height * aspect * 1.2 + 3 * height)
        for angle in ANGLES_DEG:
            label = rectangle((side / 2 + 0.3, side / 2 - 0.2), height * aspect, height, angle)
            maps = targets.draw((side, side), annotation(label)).maps
            (found,) = post_process(maps["shrink_map"].astype(np.float32), (side, side)).polygons_px
            one, other = shapely.Polygon(label), shapely.Polygon(found)
            worst = min(worst, one.intersection(other).area / one.union(other).area)
    return worst


@pytest.mark.parametrize("unclip_ratio", [1.2, 1.5, 2.0])
def test_unclip_rule_gives_the_label_back_for_every_aspect_and_angle(unclip_ratio: float) -> None:
    assert worst_round_trip_iou("unclip", unclip_ratio) >= 0.97


def test_ratio_rule_does_not_give_the_label_back() -> None:
    """The control: with r = 0.4 no single unclip ratio fits both a square and a long line."""
    assert max(worst_round_trip_iou("ratio", unclip_ratio) for unclip_ratio in (1.5, 2.0, 2.6)) < 0.85


def test_offsets_worked_by_hand() -> None:
    square, line = rectangle((0, 0), 70, 70), rectangle((0, 0), 4000, 40)
    # square of side s: 28 (u + 2) ... gives d = s u / (2 (u + 2)) = 70 * 1.5 / 7
    assert TextTargets("unclip").offset_px(square) == pytest.approx(15.0)
    # ratio: 4900 * 0.84 / 280
    assert TextTargets("ratio").offset_px(square) == pytest.approx(14.7)
    # long line: d -> h u / (2 (1 + u)) = 0.3 h against 0.42 h
    assert TextTargets("unclip").offset_px(line) == pytest.approx(12, rel=0.02)
    assert TextTargets("ratio").offset_px(line) == pytest.approx(16.8, rel=0.02)


@pytest.mark.parametrize("direction", [1, -1])
def test_unclip_offset_solves_its_equation_on_a_polygon_with_a_reflex_corner(direction: int) -> None:
    arrow = np.array([[0, 0], [200, 0], [200, 60], [100, 40], [0, 60]], np.float64)[::direction]
    distance = TextTargets("unclip", unclip_ratio=1.5).offset_px(arrow)
    kernel = np.array(shapely.Polygon(arrow).buffer(-distance, quad_segs=64).exterior.coords[:-1])
    assert polygon_area(kernel) * 1.5 / polygon_perimeter(kernel) == pytest.approx(distance, rel=1e-3)


def paddleocr_maps(size_hw: tuple[int, int], polygons: list[np.ndarray]) -> dict[str, np.ndarray]:
    """What MakeShrinkMap and MakeBorderMap of PaddleOCR compute, written straight from their definition."""
    height, width = size_hw
    y, x = np.mgrid[:height, :width].astype(np.float64)
    shrink_map, mask, border = np.zeros(size_hw, np.uint8), np.zeros(size_hw, np.uint8), np.zeros(size_hw)
    for polygon in polygons:
        shape = shapely.Polygon(polygon)
        distance = shape.area * (1 - 0.4**2) / shape.length
        offset = pyclipper.PyclipperOffset()
        offset.AddPath([tuple(point) for point in polygon], pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
        cv2.fillPoly(shrink_map, [np.array(offset.Execute(-distance)[0])], 1)
        outer = np.array(offset.Execute(distance)[0])
        cv2.fillPoly(mask, [outer], 1)
        away = np.full(size_hw, np.inf)
        for start, end in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            ex, ey = (end - start).astype(np.float64)
            t = np.clip(((x - start[0]) * ex + (y - start[1]) * ey) / (ex**2 + ey**2), 0, 1)
            away = np.minimum(away, np.hypot(x - start[0] - t * ex, y - start[1] - t * ey))
        border = np.maximum(border, 1 - np.clip(away / distance, 0, 1))
    return {"shrink_map": shrink_map, "threshold_map": border * 0.4 + 0.3, "threshold_mask": mask}


def test_ratio_rule_draws_paddleocrs_maps() -> None:
    curved = np.array([[170, 60], [205, 70], [240, 60], [240, 95], [205, 105], [170, 95]], np.float32)
    polygons = [rectangle((90, 40), 140, 24), rectangle((100, 100), 150, 30, 8), rectangle((150, 180), 40, 60, -30)]
    polygons.append(curved)
    ours = TextTargets("ratio").draw((240, 256), annotation(*polygons)).maps
    theirs = paddleocr_maps((240, 256), polygons)
    for name in ("shrink_map", "threshold_mask"):
        different = (ours[name] != theirs[name]).astype(np.uint8)
        # pyclipper's whole numbers against ours to 1/128 px: outlines may differ by one pixel
        assert different.sum() < 0.12 * theirs[name].sum()
        assert cv2.erode(different, np.ones((3, 3), np.uint8)).sum() == 0
    learnt = (theirs["threshold_mask"] > 0) & (ours["threshold_mask"] > 0)
    assert np.abs(ours["threshold_map"] / 255.0 - theirs["threshold_map"])[learnt].max() < 0.0025
    assert ours["shrink_mask"].all()


def test_threshold_map_peaks_on_the_outline_and_is_low_far_away() -> None:
    maps = TextTargets().draw((96, 256), annotation(rectangle((128, 48), 160, 40))).maps
    assert maps["threshold_map"][28, 128] == 179  # 0.7 * 255 = 178.5
    assert maps["threshold_map"][0, 0] == 77
    assert maps["threshold_map"][48, 128] == 77  # the middle is 20 px from the outline, d about 12
    assert maps["threshold_mask"][28, 128] == 1 and maps["threshold_mask"][0, 0] == 0
    assert all(array.dtype == np.uint8 for array in maps.values())


BAD_POLYGONS = {
    "1 x 1 px": [[5, 5], [6, 5], [6, 6], [5, 6]],
    "all points equal": [[9, 9]] * 4,
    "a line": [[5, 5], [90, 5], [90, 5], [5, 5]],
    "two points and a repeat": [[5, 5], [90, 9], [5, 5]],
    "collinear": [[5, 5], [30, 30], [60, 60], [90, 90]],
    "bow-tie": [[10, 10], [90, 60], [90, 10], [10, 60]],
    "waist that vanishes first": [
        [0, 0], [40, 0], [50, 28], [60, 0], [100, 0], [100, 60], [60, 60], [50, 32], [40, 60], [0, 60],
    ],
    "far outside and tiny": [[-900, -900], [-899, -900], [-899, -899]],
}  # fmt: skip


@pytest.mark.parametrize("rule", ["ratio", "unclip"])
@pytest.mark.parametrize("name", BAD_POLYGONS)
def test_degenerate_polygon_is_masked_and_counted_not_drawn(name: str, rule: str) -> None:
    good = rectangle((60, 85), 90, 16)
    drawn = TextTargets(rule).draw((100, 120), annotation(BAD_POLYGONS[name], good))
    assert drawn.num_dropped + drawn.num_small == 1
    assert drawn.num_drawn == 1
    alone = TextTargets(rule).draw((100, 120), annotation(good)).maps
    assert np.array_equal(drawn.maps["shrink_map"], alone["shrink_map"])
    assert np.array_equal(drawn.maps["threshold_mask"], alone["threshold_mask"])
    if name != "far outside and tiny":
        assert (drawn.maps["shrink_mask"] == 0).any()


def test_bow_tie_is_dropped_and_both_its_lobes_are_masked() -> None:
    drawn = TextTargets().draw((100, 120), annotation(BAD_POLYGONS["bow-tie"]))
    assert drawn.num_dropped == 1
    assert drawn.maps["shrink_mask"][35, 20] == 0 and drawn.maps["shrink_mask"][35, 80] == 0


@pytest.mark.parametrize("rule", ["ratio", "unclip"])
def test_direction_of_travel_and_repeated_points_do_not_matter(rule: str) -> None:
    polygon = rectangle((70, 50), 100, 30, 5)
    expected = TextTargets(rule).draw((100, 140), annotation(polygon)).maps
    for same in (polygon[::-1], np.repeat(polygon, 2, axis=0), np.roll(polygon, 1, axis=0)):
        drawn = TextTargets(rule).draw((100, 140), annotation(same))
        assert drawn.num_drawn == 1
        assert all(np.abs(drawn.maps[name].astype(int) - expected[name]).max() <= 1 for name in expected)


def test_three_point_polygon_is_drawn() -> None:
    assert TextTargets().draw((100, 100), annotation([[10, 90], [50, 10], [90, 90]])).num_drawn == 1


def test_polygon_beyond_the_canvas_has_the_offset_of_the_whole() -> None:
    polygon = rectangle((100, 60), 180, 30)
    whole = TextTargets().draw((128, 224), annotation(polygon)).maps
    crop = TextTargets().draw((64, 96), annotation(polygon - np.float32([64, 32]))).maps
    for name in whole:
        assert np.array_equal(crop[name], whole[name][32:96, 64:160])


def test_ignored_and_small_regions_are_masked_out() -> None:
    ignored = TextTargets().draw((64, 64), annotation(rectangle((32, 32), 40, 20), ignored=True))
    small = TextTargets().draw((64, 64), annotation(rectangle((32, 32), 40, 6, 20)))
    assert (ignored.num_ignored, small.num_small) == (1, 1)
    for drawn in (ignored, small):
        assert drawn.num_drawn == drawn.num_dropped == 0
        assert drawn.maps["shrink_mask"][32, 32] == 0 and drawn.maps["shrink_mask"][2, 2] == 1
        assert not drawn.maps["shrink_map"].any() and not drawn.maps["threshold_mask"].any()


def test_blank_page_counts_everywhere_as_background() -> None:
    maps = TextTargets().draw((32, 64), TextAnnotation()).maps
    assert maps["shrink_mask"].all() and not maps["shrink_map"].any() and not maps["threshold_mask"].any()


def test_inputs_are_not_changed() -> None:
    regions = annotation(rectangle((40, 30), 60, 20, 4))
    before = regions.regions[0].points_px.copy()
    image = np.zeros((64, 96, 3), np.uint8)
    sample = TextTargets()(image, regions, "a.jpg")
    assert np.array_equal(regions.regions[0].points_px, before)
    assert sample.image is image and sample.source == "a.jpg" and sample.targets["num_dropped"] == 0


def test_two_hundred_random_quads_at_shrinking_scales_never_raise() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        quads = [rng.uniform(-40, 140, (4, 2)) * rng.choice([1, 0.3, 0.02]) for _ in range(6)]
        drawn = TextTargets(str(rng.choice(["ratio", "unclip"]))).draw((96, 96), annotation(*quads))
        assert drawn.num_drawn + drawn.num_small + drawn.num_dropped == 6


@pytest.mark.parametrize("wrong", [{"shrink": "none"}, {"ratio": 1.0}, {"unclip_ratio": 0.0}])
def test_impossible_settings_are_refused_by_name(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        TextTargets(**wrong)
