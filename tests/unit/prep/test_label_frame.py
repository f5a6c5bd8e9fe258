"""Labels drawn before EXIF turned the picture turn with it, and nothing is guessed. Run: pytest, this file.

The photo is stored as 80 x 60 px and, with EXIF orientation 6, shown as 60 x 80.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipelines.dataset import read_image
from pipelines.errors import DataError
from pipelines.prep import prepare_text
from pipelines.prep.images import ImageFacts
from pipelines.prep.label_frame import in_shown_frame, orientation_matrix
from pipelines.prep.raw import RawBox, RawImage, RawRegion

STORED_HW = (60, 80)
TURNED = ImageFacts(STORED_HW[::-1], orientation=6)
UPRIGHT = ImageFacts(STORED_HW)
SMALL = (10, 20, 30, 40)
"""Inside both frames."""
STORED_ALONE = (60, 5, 78, 20)
SHOWN_ALONE = (5, 62, 20, 78)
NOWHERE = (200, 200, 300, 300)


def box_image(*corners, said_hw=None) -> RawImage[RawBox]:
    boxes = tuple(RawBox(one, "dent", item=f"object {n}") for n, one in enumerate(corners, 1))
    return RawImage(Path("a.jpg"), "a.jpg", "a.xml", None, boxes, said_hw=said_hw)


def text_image(*corners, said_hw=None) -> RawImage[RawRegion]:
    quads = [[[left, top], [right, top], [right, bottom], [left, bottom]] for left, top, right, bottom in corners]
    regions = tuple(RawRegion(quad, "text", False, 1) for quad in quads)
    return RawImage(Path("a.jpg"), "a.jpg", "Label.txt", 1, regions, said_hw=said_hw)


@pytest.mark.parametrize("image_of", [box_image, text_image])
@pytest.mark.parametrize(
    ("corners", "said_hw", "is_turned", "told"),
    [
        ([STORED_ALONE, SMALL], None, True, "repaired"),
        ([SHOWN_ALONE, SMALL], None, False, ""),
        ([SMALL], STORED_HW, True, "repaired"),
        ([SMALL], STORED_HW[::-1], False, ""),
        ([SMALL], None, False, "warning"),
        ([NOWHERE], None, False, "warning"),
        ([SHOWN_ALONE], STORED_HW, False, "warning"),  # the size is the sensor's, the labels can't be
        ([STORED_ALONE], STORED_HW[::-1], True, "repaired"),
        ([], STORED_HW, False, ""),
    ],
)
def test_labels_and_the_said_size_tell_the_frame_for_both_tasks(image_of, corners, said_hw, is_turned, told):
    raw = image_of(*corners, said_hw=said_hw)
    shown, faults = in_shown_frame(raw, TURNED, "auto")
    assert (shown.regions != raw.regions) == is_turned
    assert [fault.action for fault in faults] == ([told] if told else [])


@pytest.mark.parametrize("orientation", [2, 3, 4])
def test_of_a_picture_that_keeps_its_size_nothing_tells_and_this_is_said_with_the_way_out(orientation):
    raw = box_image(SMALL, said_hw=STORED_HW)
    shown, (fault,) = in_shown_frame(raw, ImageFacts(STORED_HW, orientation=orientation), "auto")
    assert shown == raw and fault.action == "warning" and "--label-frame raw" in fault.reason


@pytest.mark.parametrize(("asked", "is_turned"), [("raw", True), ("displayed", False)])
def test_what_the_user_says_counts_where_nothing_else_does(asked, is_turned):
    raw = box_image(SMALL)
    shown, _ = in_shown_frame(raw, TURNED, asked)
    # stored (x, y) is shown at (60 - y, x)
    assert [box.corners for box in shown.regions] == [(20, 10, 40, 30) if is_turned else SMALL]
    assert in_shown_frame(raw, UPRIGHT, asked) == (raw, [])


def test_no_image_is_turned_by_a_guess_where_exif_says_nothing():
    for raw in (box_image(SHOWN_ALONE, SMALL), text_image(SHOWN_ALONE, SMALL)):
        shown, (fault,) = in_shown_frame(raw, UPRIGHT, "auto")
        assert shown is None and fault.action == "dropped"
        assert "fit 60 x 80 px but not its 80 x 60 px: drawn on the turned image?" in fault.reason
        # the control: the same labels on an upright image of that size
        assert in_shown_frame(raw, ImageFacts(STORED_HW[::-1]), "auto") == (raw, [])


@pytest.mark.parametrize("image_of", [box_image, text_image])
@pytest.mark.parametrize(
    ("corners", "said_hw", "is_kept", "reason"),
    [
        ([SMALL], STORED_HW, True, ""),
        ([SMALL], STORED_HW[::-1], True, "width and height swapped? the labels fit the picture"),
        ([SMALL], (600, 800), False, "labels of another picture or scale?"),
        ([], (600, 800), True, "the label file says 800 x 600 px"),
    ],
)
def test_a_label_file_that_says_another_size_is_believed_only_where_the_labels_agree(
    image_of, corners, said_hw, is_kept, reason
):
    shown, faults = in_shown_frame(image_of(*corners, said_hw=said_hw), UPRIGHT, "auto")
    assert (shown is not None) == is_kept
    assert reason in "".join(fault.reason for fault in faults) and bool(faults) == bool(reason)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_mark_lies_where_opencv_shows_it(tmp_path, orientation):
    pixels = np.zeros((*STORED_HW, 3), np.uint8)
    pixels[10:18, 50:70] = 255  # x 50 to 70, y 10 to 18
    exif = Image.Exif()
    exif[274] = orientation
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    corners = np.array([[50, 10], [70, 18]]) @ orientation_matrix(orientation, STORED_HW)[:, :2].T
    corners = corners + orientation_matrix(orientation, STORED_HW)[:, 2]
    (left, top), (right, bottom) = corners.min(axis=0).astype(int), corners.max(axis=0).astype(int)
    shown = read_image(tmp_path / "a.png")
    assert shown[top:bottom, left:right].min() == 255 and shown.sum() == 255 * 3 * 20 * 8


def test_what_is_no_number_and_what_is_reversed_is_still_told_after_turning():
    raw = box_image(STORED_ALONE, (30, 40, 10, 20), ("a", 1, 2, 3))
    shown, _ = in_shown_frame(raw, TURNED, "auto")
    assert shown.regions[1].corners == (20, 10, 40, 30)
    assert shown.regions[1].repairs == ("corners reversed: swapped",)
    assert shown.regions[2] == raw.regions[2]
    written = replace(text_image(STORED_ALONE).regions[0], points=[["60", "5"], ["78", "5"], ["78.5", "20"]])
    shown, _ = in_shown_frame(replace(text_image(), regions=(written,)), TURNED, "auto")
    assert shown.regions[0].points == [["55.0", "60.0"], ["55.0", "78.0"], ["40.0", "78.5"]]


@pytest.mark.parametrize("frame", ["auto", "displayed"])
def test_prepare_turns_labels_of_the_sensor_unless_told_that_they_were_drawn_as_shown(
    tmp_path, write_picture, label_line, frame
):
    exif = Image.Exif()
    exif[274] = 6
    source = tmp_path / "source"
    source.mkdir()
    quad = [[60, 5], [78, 5], [78, 20], [60, 20]]
    for number in range(4):
        pixels = np.random.default_rng(number).integers(0, 256, (*STORED_HW, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(source / f"{number}.jpg", exif=exif)
    lines = [label_line(f"{number}.jpg", quad, [[5, 5], [30, 5], [30, 20], [5, 20]]) for number in range(4)]
    (source / "Label.txt").write_text("".join(lines))
    if frame == "displayed":
        # Labels that fit the stored pixels alone can't have been drawn so: the images are left out, told.
        with pytest.raises(DataError, match="drawn on the turned image"):
            prepare_text(source, "paddleocr", tmp_path / "out", label_frame=frame)
        return
    report = prepare_text(source, "paddleocr", tmp_path / "out", label_frame=frame)
    assert sum("turned with it" in fault.reason for fault in report.faults) == 4
    label = next(line for line in (tmp_path / "out" / "train.txt").read_text().splitlines())
    assert "[[55, 60], [55, 78], [40, 78], [40, 60]]" in label
