"""What the network cannot see is counted. Run: pytest tests/unit/prep/test_too_small.py"""

from __future__ import annotations

import numpy as np

from pipelines.prep.too_small import too_small_defects, too_small_text
from pipelines.records import DefectAnnotation, Record, TextAnnotation, TextRegion


def page(longest_px: int, heights: list[float], num_ignored: int = 0) -> Record:
    """Lines of 200 px and of these heights; the first ones are ignore regions."""
    regions = tuple(
        TextRegion(np.array([[0, 0], [200, 0], [200, height], [0, height]]), is_ignored=number < num_ignored)
        for number, height in enumerate(heights)
    )
    return Record("a.png", (longest_px, longest_px // 2), TextAnnotation(regions))


def board(longest_px: int, boxes_wh: list[tuple[float, float]]) -> Record:
    boxes = np.array([[0, 0, *box] for box in boxes_wh], np.float32).reshape(-1, 4)
    ids = np.zeros(len(boxes), np.int64)
    return Record("a.png", (longest_px, longest_px), DefectAnnotation(boxes, ids, np.zeros(len(boxes), bool)))


def test_shares_are_those_worked_by_hand() -> None:
    # at 960 a page of 1920 px is halved: 10 and 15 px become 5 and 7.5; at 1280, two thirds, 6.7 and 10
    found = too_small_text([page(1920, [10, 15, 30, 40])], 960)
    assert found is not None and (found.number, found.share, found.full_share) == (4, 0.5, 0)
    assert found.shares == {640: 0.5, 960: 0.5, 1280: 0.25, 1600: 0}
    sentence = "50 % of the text is lower than 8 px at longest side 960; at 1280 it would be 25 %; at full size 0 %"
    assert str(found) == sentence


def test_small_pages_are_not_enlarged() -> None:
    found = too_small_text([page(480, [7, 9])], None)
    assert found is not None and (found.side_px, found.share, found.shares) == (960, 0.5, {})
    assert str(found) == "50 % of the text is lower than 8 px at longest side 960"


def test_ignore_regions_do_not_count_and_no_text_has_no_share() -> None:
    found = too_small_text([page(960, [5, 20], num_ignored=1)], 960)
    assert found is not None and found.share == 0
    assert too_small_text([page(960, [5], num_ignored=1)], 960) is None
    assert too_small_defects([board(960, [])], None) is None


def test_defects_count_by_their_short_side() -> None:
    # a fifth of 3200 px is 640: short sides of 12 and 30 px become 2.4 and 6; at 960 3.6 and 9
    boards = [board(3200, [(12, 100), (90, 30)])]
    full, small = str(too_small_defects(boards, None)), str(too_small_defects(boards, 640))
    narrower = "of the defects are narrower than 8 px"
    assert full == f"0 % {narrower} at full size; at 640 it would be 100 %; at 960 it would be 50 %"
    assert small == f"100 % {narrower} at longest side 640; at 960 it would be 50 %; at full size 0 %"


def test_a_small_share_is_not_rounded_to_none() -> None:
    assert str(too_small_text([page(960, [20] * 249 + [7])], 960)).startswith("0.4 % of the text")
