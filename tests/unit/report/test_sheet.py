"""The contact sheet shows what it was given and overwrites no other file.

Run: pytest tests/unit/report/test_sheet.py
"""

from __future__ import annotations

import base64
import dataclasses
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.errors import UsageError
from pipelines.report import SheetImage, write_sheet
from pipelines.report.pictures import MISSED, RIGHT, WRONG
from tests.unit.report.run_values import square
from tests.unit.report.test_pictures import shows


def image(name: str = "a.jpg", size_hw: tuple[int, int] = (600, 300), is_odd: bool = True) -> SheetImage:
    """Grey, with an odd label and an ordinary one."""
    labels = [square(20, 20), square(150, 150)]
    pixels = np.full((*size_hw, 3), 200, np.uint8)
    return SheetImage(name, "train", pixels, labels, [], np.array([is_odd, False]), ["1 tiny"] * is_odd)


def pictures(file: Path) -> list[bytes]:
    found = re.findall(r"data:image/jpeg;base64,([^\"]+)", file.read_text(encoding="utf-8"))
    return [base64.b64decode(each) for each in found]


def test_odd_labels_are_orange_and_others_green(tmp_path: Path) -> None:
    odd, ordinary = pictures(write_sheet(tmp_path / "sheet.html", "set", [image(), image(is_odd=False)]))
    assert shows(odd, WRONG) and shows(odd, RIGHT)
    assert shows(ordinary, RIGHT) and not shows(ordinary, WRONG)


def test_places_without_a_label_are_blue(tmp_path: Path) -> None:
    place = dataclasses.replace(image(is_odd=False), unlabelled_px=[square(60, 400)])
    (drawn,) = pictures(write_sheet(tmp_path / "sheet.html", "set", [place]))
    assert shows(drawn, MISSED) and shows(drawn, RIGHT) and not shows(drawn, WRONG)


def test_thumbnails_are_bounded_whatever_the_shape(tmp_path: Path) -> None:
    shapes = [(3000, 200), (200, 3000), (4000, 4000)]
    file = write_sheet(tmp_path / "sheet.html", "set", [image(size_hw=shape) for shape in shapes])
    sizes = [cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR).shape[:2] for jpeg in pictures(file)]
    assert sizes == [(900, 60), (25, 380), (380, 380)]


def test_names_are_escaped_and_an_image_that_is_none_is_said(tmp_path: Path) -> None:
    shown = SheetImage("<b>发票.jpg", "val", None, [], [], np.zeros(0, bool), ["is cut off"])
    text = write_sheet(tmp_path / "sheet.html", "set", [shown], ["It is <so>."], ["x:1: y"]).read_text(encoding="utf-8")
    assert "&lt;b&gt;发票.jpg" in text and "no picture" in text and "is cut off" in text and "0 labels" in text
    assert "It is &lt;so&gt;." in text and "<li>x:1: y</li>" in text and "src=" not in text


def test_an_older_sheet_is_replaced_and_another_file_is_not(tmp_path: Path) -> None:
    sheet = write_sheet(tmp_path / "sheet.html", "first", [])
    assert "second" in write_sheet(sheet, "second", []).read_text(encoding="utf-8")
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(UsageError, match="is no contact sheet"):
        write_sheet(tmp_path / "mine.html", "third", [])
    assert (tmp_path / "mine.html").read_text() == "mine" and len(list(tmp_path.iterdir())) == 2
