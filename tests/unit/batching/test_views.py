"""One affine map: pixels and points move together, and cut text is told from text that is still readable."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from pipelines.batching.views import crop_view, page_view, paper_colour, tilted, view_annotation, warp
from pipelines.geometry import transform_points
from pipelines.records import TextAnnotation, TextRegion

IDENTITY = np.array([[1.0, 0, 0], [0, 1, 0]])


def box(x0: float, y0: float, x1: float, y1: float, ignored: bool = False) -> TextRegion:
    return TextRegion(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]), "", ignored)


def shown(*regions: TextRegion, matrix: np.ndarray = IDENTITY, size_hw=(100, 200)) -> tuple[TextRegion, ...]:
    return view_annotation(TextAnnotation(regions), matrix, size_hw, min_visible=0.7).regions


def test_a_tilt_divides_offsets_from_the_centre_by_their_depth() -> None:
    """200 x 100 px, the right edge at depth 1.1 and the left at 0.9: 100 px become 100 / 1.1 and 100 / 0.9."""
    points = np.array([[100.0, 50], [200, 50], [0, 50], [200, 100]])
    expected = [[100, 50], [100 + 100 / 1.1, 50], [100 - 100 / 0.9, 50], [100 + 100 / 1.1, 50 + 50 / 1.1]]
    tilt = tilted((100, 200), np.array([0.2, 0.0]))
    np.testing.assert_allclose(transform_points(points, tilt), expected, rtol=1e-6)
    np.testing.assert_allclose(tilted((100, 200), np.zeros(2)), np.eye(3), atol=1e-12)


@pytest.mark.parametrize("lean", [None, 0.3])
@pytest.mark.parametrize("seed", range(8))
def test_points_land_on_the_pixels_that_they_marked(seed: int, lean: float | None) -> None:
    """A bright square on black; its warped centre of mass must be its warped centre, to a tenth of a pixel."""
    rng = np.random.default_rng(seed)
    image = np.zeros((300, 400, 3), np.uint8)
    x, y = int(rng.integers(50, 330)), int(rng.integers(50, 230))
    image[y : y + 20, x : x + 20] = 255
    centre = np.array([[x + 10.0, y + 10.0]])  # corner frame: pixels x..x+19 cover [x, x + 20]
    scale, angle = rng.uniform(0.5, 1.5), rng.uniform(-10, 10)
    tilt = None if lean is None else tilted((300, 400), np.array([lean, -lean / 2]))
    matrix = crop_view((300, 400), (256, 288), scale, angle, rng, (centre[0], 20.0), tilt)
    if tilt is not None:  # the control: without its depth the point lies elsewhere
        flat = transform_points(centre, matrix[:2])[0]
        assert np.abs(flat - transform_points(centre, matrix)[0]).max() > 0.1
    seen = warp(image, matrix, (256, 288))[..., 0].astype(np.float64)
    rows, columns = np.mgrid[:256, :288] + 0.5
    mass = np.array([(columns * seen).sum(), (rows * seen).sum()]) / seen.sum()
    # a tilted square's centre of mass is not its tilted centre, so ask that of the outline
    outline = np.array([[x, y], [x + 20, y], [x + 20, y + 20], [x, y + 20]], np.float64)
    moments = cv2.moments(transform_points(outline, matrix))
    expected = np.array([moments["m10"], moments["m01"]]) / moments["m00"]
    np.testing.assert_allclose(mass, expected, atol=0.1)


def test_page_view_is_the_resize_of_evaluation() -> None:
    rng = np.random.default_rng(0)
    image = cv2.GaussianBlur(rng.integers(0, 256, (233, 180, 3), dtype=np.uint8), (0, 0), 2)
    seen = warp(image, page_view((233, 180), (160, 128), 0.0), (160, 128))
    resized = cv2.resize(image, (128, 160))
    inner = np.abs(seen.astype(int) - resized)[1:-1, 1:-1]
    assert inner.max() <= 3  # OpenCV warps in steps of 1/32 px


def test_crop_is_inside_a_larger_image_and_shows_its_anchor() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        anchor = rng.uniform((0, 0), (1000, 800))
        matrix = crop_view((800, 1000), (256, 320), 0.7, 0.0, rng, (anchor, 12.0))
        corner = -matrix[:, 2]
        assert (corner >= -1e-9).all() and (corner <= np.array([700 - 320, 560 - 256]) + 1e-9).all()
        seen = transform_points(anchor[None], matrix)[0]
        room = np.minimum(12.0, np.minimum(0.7 * anchor, (700, 560) - 0.7 * anchor))  # less at the image's own edge
        assert (seen >= room - 1e-3).all() and (seen <= (320, 256) - room + 1e-3).all()


def test_crop_larger_than_the_image_shows_all_of_it() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        matrix = crop_view((100, 90), (256, 320), 1.0, 5.0, rng)
        corners = transform_points(np.array([[0, 0], [90, 0], [90, 100], [0, 100]]), matrix)
        assert (corners >= -1e-3).all() and (corners <= np.array([320, 256]) + 1e-3).all()


def test_text_outside_is_gone_and_text_inside_is_untouched() -> None:
    inside = box(10, 10, 90, 30)
    (kept,) = shown(inside, box(210, 10, 290, 30), box(10, -40, 90, -20), box(10, 100, 90, 120))
    assert np.array_equal(kept.points_px, inside.points_px) and not kept.is_ignored


def test_line_cut_across_stays_positive_with_its_whole_polygon() -> None:
    line = box(100, 10, 500, 30)  # 100 of 400 px are left, five heights
    (kept,) = shown(line)
    assert not kept.is_ignored
    assert np.array_equal(kept.points_px, line.points_px)


@pytest.mark.parametrize(("top", "is_ignored"), [(-5.0, False), (-7.0, True), (-15.0, True)])
def test_line_cut_through_its_height_is_ignored_below_seventy_percent(top: float, is_ignored: bool) -> None:
    (kept,) = shown(box(10, top, 150, top + 20))
    assert kept.is_ignored == is_ignored


def test_sliver_of_a_line_end_is_ignored() -> None:
    (kept,) = shown(box(190, 10, 400, 30))  # 10 px of a line 20 px high
    assert kept.is_ignored


def test_cut_is_measured_along_the_line_when_it_is_turned() -> None:
    angle = np.deg2rad(30)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = np.array([[-150, -10], [150, -10], [150, 10], [-150, 10]])
    across = TextRegion(corners @ turn.T + (190, 50))  # leaves through the right and bottom edges, lengthwise
    (kept,) = shown(across)
    assert not kept.is_ignored
    corner = TextRegion(np.array([[-60, -10], [60, -10], [60, 10], [-60, 10]]) @ turn.T + (-8, 104))
    (kept,) = shown(corner)  # a triangle of 5 x 3 px is left in the bottom left corner
    assert kept.is_ignored


def test_ignored_text_stays_ignored_and_a_tangled_polygon_passes_through() -> None:
    bow_tie = TextRegion(np.array([[-20, 10], [60, 40], [60, 10], [-20, 40]]))
    ignored, tangled = shown(box(-10, 10, 90, 30, ignored=True), bow_tie)
    assert ignored.is_ignored
    assert np.array_equal(tangled.points_px, bow_tie.points_px)


def test_outside_of_the_image_has_the_colour_of_its_margins() -> None:
    image = np.full((100, 100, 3), (200, 210, 220), np.uint8)
    image[20:80, 20:80] = 0
    assert paper_colour(image) == (200.0, 210.0, 220.0)
    seen = warp(image, np.array([[1.0, 0, 60], [0, 1, 60]]), (160, 160))
    assert (seen[:60] == (200, 210, 220)).all()
