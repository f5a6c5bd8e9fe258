"""Classes by name: joined spellings, chosen classes, suggestions. Run: pytest tests/unit/prep/test_class_names.py"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import UsageError
from pipelines.prep.class_names import Meaning, class_names
from pipelines.prep.raw import RawBox, RawDefects, RawImage


def image(*names: object) -> RawDefects:
    boxes = tuple(RawBox((0, 0, 9, 9), name, item=f"object {n}") for n, name in enumerate(names, 1))
    return RawImage(Path("a.jpg"), "a.jpg", "a.xml", None, boxes)


def test_names_that_differ_in_case_or_blanks_are_one_class_under_the_most_frequent_spelling():
    classes, faults = class_names([image("pin hole", "pin hole", "Pin Hole", "pinhole ", "open")], (), None)
    assert classes.names == ("open", "pin hole")
    assert {classes.meanings[name].class_id for name in ("pin hole", "Pin Hole", "pinhole ")} == {1}
    assert [(fault.action, fault.item) for fault in faults] == [("repaired", "object 3"), ("repaired", "object 4")]
    assert "'pinhole ' differs from 'pin hole' in case or blanks alone" in faults[1].reason


def test_other_names_stay_apart():
    classes, faults = class_names([image("pin-hole", "pin_hole", "spot1", "spot2")], (), None)
    assert classes.names == ("pin-hole", "pin_hole", "spot1", "spot2") and not faults


def test_the_order_of_the_source_comes_first_then_the_alphabet_and_what_is_unused_is_told():
    classes, faults = class_names([image("zinc", "dent", "Open")], ("open", "short", "zinc"), None)
    assert classes.names == ("Open", "short", "zinc", "dent")
    assert [str(fault) for fault in faults] == [
        "classes: no object is called 'short': nothing to learn for it [warning]"
    ]


def test_chosen_classes_fix_spelling_order_and_selection():
    classes, faults = class_names([image("OPEN", "dust", "dust", "short")], ("short", "open"), ["open", " short"])
    assert classes.names == ("open", "short")
    assert classes.meanings["OPEN"] == Meaning(0) and classes.meanings["dust"] == Meaning(-1)
    assert "2 object(s) from here on left out, as background" in faults[1].reason and faults[1].item == "object 2"


def test_a_name_near_a_chosen_one_is_a_fault_with_a_suggestion_and_not_left_out_on_purpose():
    classes, _ = class_names([image("scratch", "scrtach")], (), ["scratch"])
    assert classes.meanings["scrtach"].fault == "class 'scrtach' is not in --classes; did you mean 'scratch'?"


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (["scrach"], "no object is called 'scrach'; did you mean 'scratch'"),
        (["dent", "Dent"], "every class once and none blank"),
        (["dent", " "], "none blank"),
        ([], "none blank"),
    ],
)
def test_a_choice_that_must_be_a_slip_is_refused(chosen, message):
    with pytest.raises(UsageError, match=message):
        class_names([image("scratch", "dent")], (), chosen)


def test_crowd_is_no_class_but_marks_ignore_regions():
    classes, (fault,) = class_names([image("dent", "Crowd", "Crowd")], (), None)
    assert classes.names == ("dent",) and classes.meanings["Crowd"] == Meaning(0, is_ignored=True)
    assert fault.action == "warning" and "2 object(s)" in fault.reason


def test_what_is_no_name_means_nothing():
    classes, faults = class_names([image("dent", None, 3, " ", ["dent"])], (), None)
    assert classes.names == ("dent",) and set(classes.meanings) == {"dent"} and not faults
