"""Labels lie on the picture as it is shown, whichever frame they were drawn in.

The picture of these tests is stored as 80 x 60 px; by orientation 6 it is shown as 60 x 80 px.
Run: pytest tests/unit/prep/test_label_frame.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipelines.dataset import load_split, read_image
from pipelines.errors import DataError, UsageError
from pipelines.prep import prepare_defect, prepare_text
from pipelines.prep.images import ImageFacts
from pipelines.prep.label_frame import shown_labels, usual_frame
from pipelines.prep.raw import RawBox, RawImage, RawRegion

STORED_HW, SHOWN_HW = (60, 80), (80, 60)
UPRIGHT, TURNED = ImageFacts(STORED_HW), ImageFacts(SHOWN_HW, orientation=6)
IN_BOTH, IN_STORED, IN_SHOWN = (10, 20, 30, 40), (62, 5, 78, 20), (5, 62, 20, 78)


def region(left: float, top: float, right: float, bottom: float) -> RawRegion:
    return RawRegion([[left, top], [right, top], [right, bottom], [left, bottom]], "text", False, 1, "region 1")


def labelled(*boxes: tuple[float, ...], kind: str = "text", said_hw: Any = None) -> RawImage[Any]:
    regions = [region(*box) if kind == "text" else RawBox(box, "dent", item="object 1") for box in boxes]
    return RawImage(Path("a.jpg"), "a.jpg", "labels", 1, tuple(regions), said_hw=said_hw)


def corners(raw: RawImage[Any] | None) -> list[list[float]] | None:
    """Left, top, right, bottom of every region."""
    if raw is None:
        return None
    found = []
    for one in raw.regions:
        if isinstance(one, RawBox):
            found.append([float(value) for value in one.corners])
        else:
            points = np.array(one.points, float)
            found.append([*points.min(axis=0), *points.max(axis=0)])
    return found


both_tasks = pytest.mark.parametrize("kind", ["text", "defect"])

# Orientation 6 is shown turned by 90 degrees clockwise: (x, y) comes to lie at (60 - y, x).
BOTH_TURNED = [20.0, 10.0, 40.0, 30.0]
STORED_TURNED = [40.0, 62.0, 55.0, 78.0]


@both_tasks
@pytest.mark.parametrize(
    ("box", "said_hw", "expected", "actions"),
    [
        (IN_BOTH, STORED_HW, BOTH_TURNED, ["repaired"]),  # the size tells
        (IN_BOTH, SHOWN_HW, [10, 20, 30, 40], []),
        (IN_STORED, None, STORED_TURNED, ["repaired"]),  # the box tells
        (IN_SHOWN, None, [5, 62, 20, 78], []),
        (IN_STORED, STORED_HW, STORED_TURNED, ["repaired"]),  # both tell
        (IN_SHOWN, SHOWN_HW, [5, 62, 20, 78], []),
        (IN_BOTH, None, [10, 20, 30, 40], ["warning"]),  # nothing tells
    ],
)
def test_size_and_boxes_tell_the_frame_and_labels_of_the_stored_one_turn_with_the_pixels(
    kind, box, said_hw, expected, actions
):
    shown, faults = shown_labels(labelled(box, kind=kind, said_hw=said_hw), TURNED, "auto", "auto")
    assert corners(shown) == [expected]
    assert [fault.action for fault in faults] == actions


def test_what_was_done_and_what_is_not_known_is_told():
    _, (turned,) = shown_labels(labelled(IN_STORED), TURNED, "auto", "auto")
    assert "a.jpg: labels drawn on the picture as stored (80 x 60 px): turned with it by EXIF" in turned.reason
    _, (unknown,) = shown_labels(labelled(IN_BOTH), TURNED, "auto", "auto")
    assert "taken as drawn on the displayed one; --label-frame" in unknown.reason


@both_tasks
def test_a_size_and_boxes_that_contradict_each_other_cost_the_image(kind):
    shown, (fault,) = shown_labels(labelled(IN_SHOWN, kind=kind, said_hw=STORED_HW), TURNED, "auto", "auto")
    assert shown is None and fault.action == "dropped"
    assert "says 80 x 60 px, the size of the raw picture, but its boxes fit only the displayed one" in fault.reason
    assert "--label-frame displayed" in fault.reason
    assert corners(shown_labels(labelled(IN_SHOWN, kind=kind, said_hw=STORED_HW), TURNED, "displayed", "auto")[0])


@both_tasks
@pytest.mark.parametrize(("asked", "expected"), [("displayed", [10, 20, 30, 40]), ("raw", BOTH_TURNED)])
def test_the_users_word_counts_more_than_the_label_files(kind, asked, expected):
    said_hw = STORED_HW if asked == "displayed" else SHOWN_HW
    shown, _ = shown_labels(labelled(IN_BOTH, kind=kind, said_hw=said_hw), TURNED, asked, "auto")
    assert corners(shown) == [expected]


def test_an_image_that_tells_nothing_goes_with_the_others_where_these_agree():
    silent, raw, displayed = labelled(IN_BOTH), labelled(IN_STORED), labelled(IN_SHOWN)
    assert usual_frame([(silent, TURNED), (raw, TURNED)]) == "raw"
    assert usual_frame([(silent, TURNED), (displayed, TURNED)]) == "displayed"
    assert usual_frame([(raw, TURNED), (displayed, TURNED)]) == usual_frame([(silent, TURNED)]) == "auto"
    assert usual_frame([(raw, UPRIGHT)]) == "auto"  # an upright image has but one frame
    shown, faults = shown_labels(silent, TURNED, "auto", "raw")
    assert corners(shown) == [BOTH_TURNED] and [fault.action for fault in faults] == ["warning", "repaired"]
    assert "as the others of this source are" in faults[0].reason


@both_tasks
def test_control_an_upright_image_keeps_its_labels_in_silence_whatever_is_asked(kind):
    for asked in ("auto", "displayed", "raw"):
        shown, faults = shown_labels(labelled(IN_BOTH, IN_STORED, kind=kind), UPRIGHT, asked, "raw")
        assert corners(shown) == [list(IN_BOTH), list(IN_STORED)] and not faults


@both_tasks
def test_boxes_that_fit_the_turned_image_alone_cost_the_image_and_are_not_turned_by_a_guess(kind):
    shown, (fault,) = shown_labels(labelled(IN_SHOWN, IN_BOTH, kind=kind), UPRIGHT, "auto", "auto")
    assert shown is None
    assert "its boxes fit 60 x 80 px but not its 80 x 60 px: drawn on the turned image?" in fault.reason
    assert shown_labels(labelled(IN_STORED, kind=kind), TURNED, "displayed", "auto")[0] is None


@both_tasks
def test_a_small_overshoot_is_not_taken_for_another_frame(kind):
    overshoot = labelled((5, 40, 20, 63), kind=kind)  # 3 px below 80 x 60, inside 60 x 80
    assert shown_labels(overshoot, UPRIGHT, "auto", "auto") == (overshoot, [])
    _, (fault,) = shown_labels(labelled((40, 5, 63, 20), kind=kind), TURNED, "auto", "auto")
    assert fault.action == "warning" and "nothing tells" in fault.reason


@both_tasks
@pytest.mark.parametrize(
    ("said_hw", "is_kept", "reason"),
    [
        ((60, 80), True, ""),
        (None, True, ""),
        ((80, 60), True, "width and height swapped? the boxes fit the picture"),
        ((600, 800), False, "labels of another picture or scale?"),
        ((30, 40), False, "labels of another picture or scale?"),  # a box might be of the small picture too
        ((20, 20), True, "the boxes fit the picture alone, and are kept"),
    ],
)
def test_a_label_file_that_says_another_size_is_believed_unless_the_boxes_say_no(kind, said_hw, is_kept, reason):
    raw = labelled((10, 20, 30, 30), kind=kind, said_hw=said_hw)
    shown, faults = shown_labels(raw, UPRIGHT, "auto", "auto")
    assert (shown is not None) == is_kept
    assert reason in "".join(fault.reason for fault in faults) and bool(faults) == bool(reason)


@both_tasks
def test_an_image_without_labels_is_welcome_whatever_size_its_label_file_says(kind):
    shown, (fault,) = shown_labels(labelled(kind=kind, said_hw=(600, 800)), UPRIGHT, "auto", "auto")
    assert shown is not None and fault.action == "warning"
    assert shown_labels(labelled(kind=kind), TURNED, "auto", "auto")[1] == []


def test_numbers_written_as_text_turn_and_are_told_and_broken_regions_stay_for_the_repair():
    text = RawRegion([["62", "5"], ["78", "5"], ["78", "20"], ["62", "20"]], "text", False, 1, "region 1")
    broken = RawRegion([[1, 2], [3]], "text", False, 1, "region 2")
    raw = RawImage(Path("a.jpg"), "a.jpg", "labels", 1, (text, broken))
    shown, faults = shown_labels(raw, TURNED, "auto", "auto")
    assert shown is not None and shown.regions[1] == broken
    assert shown.regions[0].points == [[55, 62], [55, 78], [40, 78], [40, 62]]
    assert [fault.item for fault in faults] == ["", "region 1"] and "read as numbers" in faults[1].reason


def marked(path: Path, orientation: int, shade: int = 90) -> tuple[int, int, int, int]:
    """Store a grey picture of 96 x 64 px with a white mark at its right end, and say how it is to be shown."""
    pixels = np.full((64, 96, 3), shade, np.uint8)
    left, top, right, bottom = mark = (72, 8, 92, 24)
    pixels[top:bottom, left:right] = 255
    exif = Image.Exif()
    exif[274] = orientation
    Image.fromarray(pixels).save(path, exif=exif, quality=100)
    return mark


def mean_inside(root: Path, record: Any, box: np.ndarray) -> float:
    left, top, right, bottom = np.rint(box).astype(int)
    assert (right - left) * (bottom - top) == 20 * 16
    return float(read_image(root / record.path)[top + 1 : bottom - 1, left + 1 : right - 1].mean())


def text_source(folder: Path, orientation: int) -> Path:
    folder.mkdir()
    lines = []
    for number in range(3):
        left, top, right, bottom = marked(folder / f"{number}.jpg", orientation, 90 + number)  # no two are one picture
        points = [[left, top], [right, top], [right, bottom], [left, bottom]]
        lines.append(f"{number}.jpg\t{json.dumps([{'transcription': 'x', 'points': points}])}\n")
    (folder / "Label.txt").write_text("".join(lines))
    return folder


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_label_of_a_mark_encloses_the_mark_in_the_dataset_of_every_orientation(tmp_path, orientation):
    source = text_source(tmp_path / "source", orientation)
    report = prepare_text(source, "paddleocr", tmp_path / "out", label_frame="raw", val_share=0.4)
    turned = [fault for fault in report.faults if "turned with it" in fault.reason]
    assert len(turned) == (0 if orientation == 1 else 3)
    for record in [*load_split(tmp_path / "out", "train"), *load_split(tmp_path / "out", "val")]:
        points = record.annotation.regions[0].points_px
        assert mean_inside(tmp_path / "out", record, np.concatenate([points.min(0), points.max(0)])) > 240


def test_control_labels_that_are_not_turned_miss_the_mark(tmp_path):
    source = text_source(tmp_path / "source", 3)
    prepare_text(source, "paddleocr", tmp_path / "out", label_frame="displayed", val_share=0.4)
    record = load_split(tmp_path / "out", "train")[0]
    points = record.annotation.regions[0].points_px
    assert mean_inside(tmp_path / "out", record, np.concatenate([points.min(0), points.max(0)])) < 120


def test_defects_of_labelme_turn_by_the_size_that_its_file_says(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for number, orientation in enumerate((6, 8, 5)):
        left, top, right, bottom = marked(source / f"{number}.jpg", orientation)
        shape = {"label": "dent", "shape_type": "rectangle", "points": [[left, top], [right, bottom]]}
        content = {"imagePath": f"{number}.jpg", "imageHeight": 64, "imageWidth": 96, "shapes": [shape]}
        (source / f"{number}.json").write_text(json.dumps(content))
    report = prepare_defect(source, "labelme", tmp_path / "out", val_share=0.4)
    assert sum("turned with it" in fault.reason for fault in report.faults) == 3
    for split in ("train", "val"):
        content = json.loads((tmp_path / "out" / f"{split}.json").read_text())
        for entry in content["annotations"]:
            image = next(image for image in content["images"] if image["id"] == entry["image_id"])
            left, top, width, height = np.rint(entry["bbox"]).astype(int)
            pixels = read_image(tmp_path / "out" / image["file_name"])
            assert pixels.shape[:2] == (96, 64)
            assert pixels[top + 1 : top + height - 1, left + 1 : left + width - 1].mean() > 240


def test_labels_turned_by_a_guess_are_repairs_and_by_the_users_word_are_none(tmp_path):
    source = text_source(tmp_path / "source", 6)
    with pytest.raises(DataError, match="labels need repairs, and --no-repair forbids them"):
        prepare_text(source, "paddleocr", tmp_path / "out", repair=False, val_share=0.4)
    prepare_text(source, "paddleocr", tmp_path / "out", repair=False, label_frame="raw", val_share=0.4)


def test_a_frame_that_there_is_not_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(UsageError, match=r"--label-frame must be one of auto, displayed, raw, but got 'shown'"):
        prepare_text(tmp_path, "paddleocr", tmp_path / "out", label_frame="shown")
