"""The window holds what changed and stays inside the image; the drawing shows each kind of box in its colour.

Run: pytest tests/unit/report/test_pictures.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import cv2
import numpy as np
import pytest

from pipelines.report import ChangedImage, Findings, draw_findings, window_of_change
from pipelines.report.pictures import MISSED, RIGHT, WRONG, _shrunk, amount_of_change
from tests.unit.report.run_values import square

Make = Callable[..., ChangedImage]


def chroma(bgr: np.ndarray) -> np.ndarray:
    """The part of a colour that is not grey; mixing with white only shortens it."""
    return bgr - bgr.mean(axis=-1, keepdims=True)


def shows(jpeg: bytes, colour: str) -> bool:
    """Whether some pixel has the colour's hue and at least half of its strength."""
    found = chroma(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR).astype(float))
    wanted = chroma(np.array([int(colour[i : i + 2], 16) for i in (5, 3, 1)], float))
    length, wanted_length = np.linalg.norm(found, axis=-1), np.linalg.norm(wanted)
    return bool(((found @ wanted > 0.95 * length * wanted_length) & (length > wanted_length / 2)).any())


def test_a_small_image_is_shown_whole(changed_image: Make) -> None:
    assert window_of_change(changed_image((400, 300), [(10, 10)], [True])) == (0, 0, 300, 400)


def test_the_window_of_a_scan_is_where_most_labels_changed(changed_image: Make) -> None:
    # A window of 1600 px. Two labels changed at the bottom right, one at the top left.
    corners = [(100, 100), (4000, 6000), (4100, 6100), (2400, 3500)]
    left, top, right, bottom = window_of_change(changed_image((7000, 5000), corners, [True, True, True, False]))
    assert (right - left, bottom - top) == (1600, 1600)
    assert left <= 4000
    assert right >= 4140
    assert top <= 6000
    assert bottom >= 6140


def test_the_window_stays_inside_the_image(changed_image: Make) -> None:
    assert window_of_change(changed_image((7000, 5000), [(0, 6960)], [True])) == (0, 5400, 1600, 7000)


def test_a_page_without_labels_has_a_window_too(changed_image: Make) -> None:
    left, top, right, bottom = window_of_change(changed_image((2000, 3000), [], []))
    assert (left, top, right, bottom) == (1340, 840, 1660, 1160)


def test_each_kind_of_box_has_its_colour_and_no_other(changed_image: Make) -> None:
    page = changed_image((300, 300), [(30, 30), (150, 150)], [True, False])
    window = (0, 0, 300, 300)
    before, after = draw_findings(page, page.before, window), draw_findings(page, page.after, window)
    assert shows(after, RIGHT)
    assert shows(after, MISSED)
    assert not shows(after, WRONG)
    assert shows(before, MISSED)
    assert not shows(before, RIGHT)


def test_a_box_on_an_ignore_region_is_grey_and_a_wrong_one_is_not(changed_image: Make) -> None:
    page = changed_image((300, 300), [], [])
    page = replace(page, ignored_px=[square(40, 40)])
    found = Findings(
        [square(40, 40), square(200, 200)], np.array([False, False]), np.array([True, False]), np.zeros(0, bool)
    )
    drawn = draw_findings(page, found, (0, 0, 300, 300))
    assert shows(drawn, WRONG)
    assert not shows(drawn, RIGHT)
    assert not shows(draw_findings(page, replace(found, is_ignored=np.array([True, True])), (0, 0, 300, 300)), WRONG)
    assert found.counts("lines") == "0 of 0 lines found, 1 box fits none"


def test_a_drawing_has_the_same_width_for_any_resolution(changed_image: Make) -> None:
    for size_hw, window in (((300, 200), (0, 0, 200, 300)), ((7000, 5000), (100, 200, 1700, 2600))):
        page = changed_image(size_hw, [(110, 210)], [True])
        height, width = cv2.imdecode(np.frombuffer(draw_findings(page, page.after, window), np.uint8), 1).shape[:2]
        assert (height, width) == (780, 520)  # both windows are 2 : 3


def test_shrinking_takes_means_of_whole_blocks() -> None:
    # 1041 wide: blocks of 2 x 2, the odd last column and row left out.
    image = np.zeros((3, 1041, 3), np.uint8)
    image[:2, 0:2] = [[[0], [10]], [[20], [30]]]
    shrunk = _shrunk(image)
    assert shrunk.shape == (1, 520, 3)
    assert shrunk[0, 0].tolist() == [15, 15, 15]
    assert shrunk[0, 1:].max() == 0


@pytest.mark.parametrize("num_found", [0, 1, 2])
def test_counts_are_of_the_whole_image(changed_image: Make, num_found: int) -> None:
    page = changed_image((300, 300), [(30, 30), (150, 150)], [i < num_found for i in range(2)])
    assert page.after.counts("lines") == f"{num_found} of 2 lines found, 0 boxes fit none"
    assert int(page.differs.sum()) == num_found


def test_without_a_changed_label_the_window_is_where_boxes_were_wrong(changed_image: Make) -> None:
    page = changed_image((7000, 5000), [], [])
    alarm = Findings([square(4000, 6000)], np.array([False]), np.array([False]), np.zeros(0, bool))
    left, top, right, bottom = window_of_change(replace(page, before=alarm))
    assert left <= 4000 <= right - 40
    assert top <= 6000 <= bottom - 40


def test_captions_stand_beside_what_they_name_in_its_colour(changed_image: Make) -> None:
    page = changed_image((300, 300), [(30, 60), (150, 200)], [True, False])
    named = replace(page, captions=["scratch", "pit"], after=replace(page.after, captions=["scratch 0.87"]))
    plain, written = (draw_findings(each, each.after, (0, 0, 300, 300)) for each in (page, named))

    def strip_above(jpeg: bytes, left: int, top: int) -> np.ndarray:
        shown = cv2.imdecode(np.frombuffer(jpeg, np.uint8), 1)
        scale = shown.shape[1] / 300
        return shown[int((top - 12) * scale) : int((top - 3) * scale), int(left * scale) : int((left + 20) * scale)]

    for left, top in ((30, 60), (150, 200)):
        assert strip_above(plain, left, top).min() > 200
        assert strip_above(written, left, top).min() < 150


def test_images_are_sorted_by_labels_that_changed_and_then_by_wrong_boxes(changed_image: Make) -> None:
    page = changed_image((300, 300), [(30, 30), (150, 150)], [True, False])
    alarm = replace(page.before, outlines_px=[square(0, 0)], is_right=np.array([False]), is_ignored=np.array([False]))
    assert amount_of_change(page.before, page.after) == (1, 0)
    assert amount_of_change(page.before, alarm) == (0, 1)
    assert amount_of_change(alarm, alarm) == (0, 0)
