"""Findings in few rows, and repairs refused. Run: pytest tests/unit/prep/test_findings.py"""

from __future__ import annotations

import os

import pytest
from PIL import Image

from pipelines.errors import DataError
from pipelines.prep import prepare_text
from pipelines.prep.findings import FindingKind, finding_kinds
from pipelines.records import Fault

BOW_TIE = '[{"transcription": "x", "points": [[10, 10], [50, 20], [50, 10], [10, 20]]}]'


def test_findings_that_differ_in_numbers_points_and_names_are_one_row():
    outside = "reaches outside the image of {} x {} px [[1, 2], [{}, 4]]: clipped"
    faults = [
        Fault("a.txt", outside.format(80, 60, 81), "repaired", 3),
        Fault("b.txt", f"2 repeated point(s) removed; {outside.format(8, 6, 81.5)}", "repaired", 4),
        Fault("rolls/x1.jpg", "can't be decoded as an image: damaged (labelled in Label.txt)", "dropped"),
        Fault("Label.txt", "rolls/x2.jpg is already labelled at Label.txt:4", "dropped", 9),
        Fault("Label.txt", "rolls/y.jpg is already labelled at Label.txt:5", "dropped", 10),
        Fault("c.txt", "worth knowing", "warning"),
    ]
    assert finding_kinds(faults) == [
        FindingKind("repaired", "reaches outside the image of … x … px …: clipped", 2, "a.txt:3"),
        FindingKind("repaired", "… repeated point… removed", 1, "b.txt:4"),
        FindingKind("dropped", "… is already labelled at …:…", 2, "Label.txt:9"),
        FindingKind("dropped", "can't be decoded as an image: damaged …", 1, "rolls/x1.jpg"),
    ]


def test_no_findings_no_rows():
    assert finding_kinds([Fault("c.txt", "worth knowing", "warning")]) == []


def test_no_repair_refuses_labels_that_need_one_and_names_them(labelled, tmp_path):
    with (labelled / "Label.txt").open("a") as labels:
        labels.write(f"roll9_0.jpg\t{BOW_TIE}\n")
    (labelled / "roll0_0.jpg").rename(labelled / "roll9_0.jpg")
    for dry_run in (False, True):
        with pytest.raises(DataError, match=r"(?s)no-repair forbids them: 1 fault.*Label.txt:11: .*bow-tie"):
            prepare_text(labelled, "paddleocr", tmp_path / "out", repair=False, dry_run=dry_run)
    assert os.listdir(tmp_path) == ["source"]
    assert prepare_text(labelled, "paddleocr", tmp_path / "out").actions()["repaired"] == 1


def test_no_repair_lets_pictures_be_converted(labelled, tmp_path):
    Image.new("RGBA", (40, 30), (9, 9, 9, 99)).save(labelled / "odd.png")
    with (labelled / "Label.txt").open("a") as labels:
        labels.write('odd.png\t[{"transcription": "x", "points": [[1, 1], [20, 1], [20, 9], [1, 9]]}]\n')
    assert prepare_text(labelled, "paddleocr", tmp_path / "out", repair=False).num_converted == 1
