"""Odd labels are found and ordinary ones are not. Run: pytest tests/unit/prep/test_oddities.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.dataset import SPLITS, scan_split
from pipelines.prep.oddities import judge, oddities, outlines_of, usual_size
from pipelines.records import DefectAnnotation, Record, TextAnnotation, TextRegion

PAGE = np.random.default_rng(0).integers(0, 256, (400, 600), dtype=np.uint8)


def box(left: float, top: float, width: float, height: float) -> np.ndarray:
    return np.array([[left, top], [left + width, top], [left + width, top + height], [left, top + height]], np.float32)


def reasons(*outlines: np.ndarray, grey: np.ndarray | None = PAGE, ignored: bool = False) -> tuple[str, ...]:
    """Of these labels among ordinary ones, which are 20 px high."""
    ordinary = [box(10, 300, 100, 20), box(10, 330, 100, 20)]
    mask = np.array([False, False] + [ignored] * len(outlines))
    return judge([*ordinary, *outlines], mask, grey, 20.0).reasons


@pytest.mark.parametrize(
    ("outline", "reason"),
    [
        (box(200, 50, 200, 121), "1 more than 6 times as large as usual"),
        (box(200, 50, 200, 4.9), "1 less than a quarter of the usual size"),
        (box(60, 300, 80, 20), "1 mostly inside another"),
        (np.array([[200, 50], [300, 70], [296, 90], [196, 70]]), "1 turned by more than 10 degrees"),
    ],
)
def test_each_kind_of_odd_label_has_its_reason(outline: np.ndarray, reason: str) -> None:
    assert reasons(outline) == (reason,)
    assert reasons(outline, ignored=True) == ()


@pytest.mark.parametrize(
    "outline",
    [
        box(200, 50, 200, 119),
        box(200, 50, 200, 5.1),
        box(61, 300, 100, 20),
        np.array([[200, 50], [300, 60], [298, 80], [198, 70]]),
    ],
)
def test_just_inside_the_limits_nothing_is_odd(outline: np.ndarray) -> None:
    assert reasons(outline) == ()


def test_a_label_on_blank_paper_is_odd_and_what_cannot_be_seen_is_not_judged_by_its_ink() -> None:
    page = PAGE.copy()
    page[50:90, 190:320] = 240
    assert reasons(box(200, 55, 100, 20), grey=page) == ("1 without anything visible inside",)
    assert reasons(box(200, 55, 100, 20), grey=None) == ()


def test_of_equal_boxes_one_is_odd_and_of_a_huge_one_only_itself() -> None:
    twice = judge([box(10, 10, 100, 20)] * 2, np.zeros(2, bool), PAGE, 20.0)
    assert twice.is_odd.tolist() == [False, True]
    huge = judge([box(0, 0, 500, 200), box(10, 10, 100, 20)], np.zeros(2, bool), PAGE, 20.0)
    assert huge.is_odd.tolist() == [True, False]


def test_no_label_is_nothing_odd_and_the_usual_size_counts_both_tasks() -> None:
    assert judge([], np.zeros(0, bool), PAGE, 1.0).reasons == ()
    region = TextRegion(box(0, 0, 100, 30))
    text = Record("a.png", (400, 600), TextAnnotation((region, TextRegion(box(0, 0, 9, 9), is_ignored=True))))
    defects = DefectAnnotation(np.array([[10, 20, 40, 30]]), np.array([0]), np.array([False]))
    assert usual_size([text]) == pytest.approx(30) and usual_size([Record("b.png", (9, 9), defects)]) == 10
    assert usual_size([]) == 1
    assert outlines_of(defects)[0].tolist() == [[10, 20], [40, 20], [40, 30], [10, 30]]


def test_the_shipped_invoices_are_not_odd(repository: Path) -> None:
    root = repository / "data" / "sample_invoices"
    records = [record for split in SPLITS for record in scan_split(root, split)[0]]
    usual = usual_size(records)
    assert {record.path: found.reasons for record in records if (found := oddities(root, record, usual)).reasons} == {}
