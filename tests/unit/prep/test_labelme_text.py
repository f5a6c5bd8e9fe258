"""LabelMe for text, and parts of one object for defects. Run: pytest tests/unit/prep/test_labelme_text.py"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.prep.formats import TEXT_FORMATS
from pipelines.prep.raw import RawImage
from pipelines.records import Fault

QUAD = [[10.0, 10.0], [50.0, 12.0], [50.0, 22.0], [10.0, 20.0]]


def shape(points: Any, label: Any = "Total", kind: str = "polygon", **more: Any) -> dict[str, Any]:
    return {
        "label": label,
        "points": points,
        "group_id": None,
        "description": "",
        "shape_type": kind,
        "flags": {},
        "mask": None,
        **more,
    }


@pytest.fixture
def labelme(tmp_path, write_picture):
    """`labelme(name, *shapes)`: name.jpg and name.json as LabelMe 5 saves them."""

    def write(name: str, *shapes: Any) -> Path:
        write_picture(tmp_path / f"{name}.jpg", len(name))
        content = {
            "version": "5.5.0",
            "flags": {},
            "shapes": list(shapes),
            "imagePath": f"{name}.jpg",
            "imageData": None,
            "imageHeight": 60,
            "imageWidth": 80,
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False), "utf-8")
        return tmp_path

    return write


def read_text(source):
    found = list(TEXT_FORMATS["labelme"](source, None))
    return {f.image.name: f for f in found if isinstance(f, RawImage)}, [f for f in found if isinstance(f, Fault)]


def test_the_polygons_that_were_written_are_the_polygons_that_are_read(labelme):
    written = {"a": [QUAD, [[1.5, 2.0], [9.0, 2.0], [9.0, 9.25]]], "bb": []}
    for name, polygons in written.items():
        source = labelme(name, *map(shape, polygons))
    raws, faults = read_text(source)
    assert {Path(name).stem: [region.points for region in raw.regions] for name, raw in raws.items()} == written
    assert raws["a.jpg"].said_hw == (60, 80) and not faults


@pytest.mark.parametrize(
    "drag", [[[10, 20], [50, 30]], [[50, 30], [10, 20]], [[50, 20], [10, 30]], [[10, 30], [50, 20]]]
)
def test_a_rectangle_has_its_corners_in_order_whichever_way_it_was_dragged(labelme, drag):
    raws, _ = read_text(labelme("a", shape(drag, kind="rectangle")))
    assert raws["a.jpg"].regions[0].points == [[10, 20], [50, 20], [50, 30], [10, 30]]


@pytest.mark.parametrize(
    ("values", "transcription", "is_ignored"),
    [
        ({"label": "总计 3,50"}, "总计 3,50", False),
        ({"label": "text", "description": "Total 3,50"}, "Total 3,50", False),
        ({"label": "text", "description": None}, "text", False),
        ({"label": "###"}, "###", True),
        ({"label": "text", "description": "###"}, "###", True),
        ({"label": "__ignore__", "description": "x"}, "x", True),
        ({"flags": {"difficult": True}}, "Total", True),
        ({"difficult": True}, "Total", True),
        ({"label": None}, "", False),
    ],
)
def test_the_transcription_is_the_description_else_the_label(labelme, values, transcription, is_ignored):
    raws, faults = read_text(labelme("a", shape(QUAD, **values)))
    (region,) = raws["a.jpg"].regions
    assert (region.transcription, region.is_ignored) == (transcription, is_ignored) and not faults


def test_what_is_no_text_region_is_told_and_an_image_of_nothing_else_is_left_out(labelme):
    labelme("bb", shape([[1, 2], [30, 2]], kind="linestrip"), shape(QUAD))
    raws, faults = read_text(labelme("a", shape([[5, 5]], kind="point"), shape("x")))
    assert [fault.item for fault in faults] == ["shape 1", "shape 2", "shape 1"]
    assert "none of its 2 shape(s) can be used" in raws["a.jpg"].fault
    assert len(raws["bb.jpg"].regions) == 1 and not raws["bb.jpg"].fault


def test_an_image_without_a_label_file_is_no_image_without_text(labelme, write_picture):
    source = labelme("a", shape(QUAD))
    write_picture(source / "b.jpg", 9)
    raws, (fault,) = read_text(source)
    assert list(raws) == ["a.jpg"] and "it may hold text" in fault.reason and fault.file.endswith("b.jpg")


def test_coordinates_written_as_text_are_read_and_told(labelme, read):
    source = labelme("a", shape([["10", "20"], ["30", "40.5"]], kind="rectangle"))
    raws, (fault,) = read_text(source)
    assert raws["a.jpg"].regions[0].points[2] == [30, 40.5] and "read as numbers" in fault.reason
    assert "read as numbers" in read("labelme", source)[0]["a.jpg"].regions[0].repairs[0]


def test_polygons_of_one_group_and_class_are_one_defect_and_this_is_told(labelme, read):
    halves = [[[10, 10], [20, 10], [15, 20]], [[40, 30], [50, 30], [45, 40]]]
    parts = [shape(points, "scratch", group_id=0) for points in halves]
    others = [
        shape(halves[0], "dent", group_id=0),
        shape(halves[1], "scratch", group_id=1),
        shape("x", "scratch", group_id=0),
    ]
    source = labelme("a", parts[0], *others, parts[1])
    raws, _, _ = read("labelme", source)
    joined, dent, other, broken = raws["a.jpg"].regions
    assert joined.corners == (10, 10, 50, 40)
    assert joined.repairs == ("2 shapes of group 0 are one object: one box round them",)
    assert (dent.corners, other.corners) == ((10, 10, 20, 20), (40, 30, 50, 40)) and broken.fault
    assert len(read_text(source)[0]["a.jpg"].regions) == 4, "for text every shape is a line of its own"


def test_a_mask_is_the_box_round_it(labelme, read):
    source = labelme("a", shape([[10, 20], [30, 40]], "dent", "mask", mask="iVBORw0KGgo="))
    (box,) = read("labelme", source)[0]["a.jpg"].regions
    assert box.corners == (10, 20, 30, 40) and box.repairs == ("a mask: taken as the box round it",)
    assert read_text(source)[0]["a.jpg"].regions[0].is_ignored
