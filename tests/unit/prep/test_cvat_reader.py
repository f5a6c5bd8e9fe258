"""CVAT for images, written the way CVAT exports it. Run: pytest tests/unit/prep/test_cvat_reader.py"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from pipelines.errors import DataError
from pipelines.prep.formats import TEXT_FORMATS
from pipelines.prep.raw import ClassList, RawImage
from pipelines.records import Fault

TASK = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta>
    <task>
      <id>4</id>
      <name>line 3</name>
      <size>2</size>
      <mode>annotation</mode>
      <overlap>0</overlap>
      <bugtracker></bugtracker>
      <created>2024-05-02 09:14:31.617558+00:00</created>
      <subset>{subset}</subset>
      <labels>
        <label>
          <name>scratch</name>
          <color>#33ddff</color>
          <type>any</type>
          <attributes>
            <attribute>
              <name>text</name>
              <mutable>False</mutable>
              <input_type>text</input_type>
              <default_value></default_value>
              <values></values>
            </attribute>
          </attributes>
        </label>
        <label>
          <name>dent</name>
          <color>#fa3253</color>
          <type>any</type>
          <attributes>
          </attributes>
        </label>
      </labels>
    </task>
    <dumped>2024-05-02 09:20:28.799808+00:00</dumped>
  </meta>
{images}
</annotations>
"""


def image(name: str, *shapes: str, size: Sequence[int] = (80, 60), more: str = "") -> str:
    width, height = size
    opening = f'  <image id="0" name={quoteattr(name)} width="{width}" height="{height}"{more}>'
    return "\n".join([opening, *shapes, "  </image>"])


def box(corners: Sequence[float], label: str = "dent", more: str = "", inside: str = "") -> str:
    sides = "".join(f' {name}="{v:.2f}"' for name, v in zip(("xtl", "ytl", "xbr", "ybr"), corners, strict=True))
    return f'    <box label="{label}" source="manual" occluded="0"{sides}{more} z_order="0">\n{inside}    </box>'


def polygon(points: Sequence[Sequence[float]], tag: str = "polygon", more: str = "") -> str:
    text = ";".join(f"{x:.2f},{y:.2f}" for x, y in points)
    return f'    <{tag} label="scratch" source="manual" occluded="0" points="{text}"{more} z_order="0">\n    </{tag}>'


def attribute(name: str, value: str) -> str:
    return f'      <attribute name="{name}">{value}</attribute>\n'


@pytest.fixture
def export(tmp_path, write_picture):
    """`export(*images, subset=...)`: an unpacked export with a picture for every name in `pictures`."""

    def write(*images: str, subset: str = "default", pictures: Sequence[str] = ("images/a.jpg",)) -> Path:
        source = tmp_path / "line 3"
        for seed, name in enumerate(pictures):
            write_picture(source / name, seed)
        text = TASK.format(subset=subset, images="\n".join(images))
        (source / "annotations.xml").write_text(text, encoding="utf-8")
        return source

    return write


def read_text(source):
    found = list(TEXT_FORMATS["cvat"](source, None))
    return {f.image.name: f for f in found if isinstance(f, RawImage)}, [f for f in found if isinstance(f, Fault)]


def test_the_boxes_that_were_written_are_the_boxes_that_are_read(read, export):
    written = {
        "a.jpg": [(10.0, 20.0, 30.5, 40.25), (1.0, 2.0, 9.0, 9.0)],
        "b.jpg": [(5.0, 5.0, 60.0, 50.0)],
        "c.jpg": [],
    }
    images = [image(name, *map(box, boxes)) for name, boxes in written.items()]
    raws, faults, others = read("cvat", export(*images, pictures=[f"images/{name}" for name in written]))
    assert {name: [shape.corners for shape in raw.regions] for name, raw in raws.items()} == written
    assert {raw.said_hw for raw in raws.values()} == {(60, 80)} and not faults
    assert others == [ClassList(("scratch", "dent"))]


@pytest.mark.parametrize(
    ("shape", "corners"),
    [
        # 20 x 10 about (30, 25): a quarter turn swaps its sides, a half turn changes nothing.
        (box((20, 20, 40, 30), more=' rotation="90.00"'), (25, 15, 35, 35)),
        (box((20, 20, 40, 30), more=' rotation="180.00"'), (20, 20, 40, 30)),
        # A square of side 20 about (30, 30) on its corner: half its diagonal is 14.142.
        (box((20, 20, 40, 40), more=' rotation="45.00"'), (15.858, 15.858, 44.142, 44.142)),
        (polygon([(10, 20), (30, 25), (20, 40)]), (10, 20, 30, 40)),
        (polygon([(10, 20), (30, 25), (20, 40)], "polyline"), (10, 20, 30, 40)),
        ('<ellipse label="dent" cx="30" cy="25" rx="10" ry="5" occluded="0"></ellipse>', (20, 20, 40, 30)),
        ('<ellipse label="dent" cx="30" cy="25" rx="10" ry="5" rotation="90"></ellipse>', (25, 15, 35, 35)),
    ],
)
def test_every_shape_has_the_box_round_it(read, export, shape, corners):
    raws, faults, _ = read("cvat", export(image("a.jpg", shape)))
    (found,) = raws["a.jpg"].regions
    assert found.corners == pytest.approx(corners, abs=1e-3) and not faults and not found.repairs


def test_a_turned_text_box_keeps_its_corners_in_order_clockwise_about_its_centre(export):
    text = attribute("text", "Total &amp; net")
    raws, faults = read_text(export(image("a.jpg", box((20, 20, 40, 30), more=' rotation="30"', inside=text))))
    (region,) = raws["a.jpg"].regions
    # The corner at (-10, -5) from the centre (30, 25): x = -10 cos 30 + 5 sin 30, y = -10 sin 30 - 5 cos 30.
    assert region.points[0] == pytest.approx([30 - 6.1603, 25 - 9.3301], abs=1e-3)
    assert region.points[1] == pytest.approx([30 + 11.1603, 25 + 0.6699], abs=1e-3)
    assert region.transcription == "Total & net" and not faults


def test_text_comes_from_its_attribute_and_marks_are_ignore_regions(export):
    def word(inside: str, **more: str) -> str:
        return box((10, 10, 50, 20), inside=inside, **more)

    shapes = [
        word(attribute("Transcription", "A-17")),
        word(attribute("text", "###")),
        word(attribute("difficult", "true") + attribute("text", "B")),
        word("", label="__ignore__"),
        word(attribute("colour", "red")),
    ]
    raws, _ = read_text(export(image("a.jpg", *shapes)))
    found = [(region.transcription, region.is_ignored) for region in raws["a.jpg"].regions]
    assert found == [("A-17", False), ("###", True), ("B", True), ("", True), ("", False)]


def test_a_mask_is_the_box_round_it_for_defects_and_an_ignore_region_for_text_and_both_are_told(read, export):
    mask = '<mask label="dent" source="manual" occluded="0" rle="1, 2, 3" left="10" top="20" width="15" height="5">'
    source = export(image("a.jpg", f"{mask}</mask>", box((1, 2, 9, 9))))
    first = read("cvat", source)[0]["a.jpg"].regions[0]
    assert first.corners == (10, 20, 25, 25) and first.repairs == ("a mask: taken as the box round it",)
    raws, (fault,) = read_text(source)
    assert [region.is_ignored for region in raws["a.jpg"].regions] == [True, False]
    assert fault.action == "repaired" and "image 0 a.jpg: mask 1" in str(fault)


def test_what_can_not_be_read_is_named_and_its_image_does_not_pass_as_ok(read, export):
    shapes = [
        '<cuboid label="dent" xtl1="1" ytl1="2"></cuboid>',
        '<box label="dent" xtl="1" ytl="x" xbr="3" ybr="4"></box>',
        '<box label="dent" xtl="nan" ytl="1" xbr="3" ybr="4"></box>',
        '<polygon label="dent" points="1,2;3"></polygon>',
        '<polygon label="dent"></polygon>',
    ]
    source = export(image("a.jpg", *shapes))
    raws, _, _ = read("cvat", source)
    faults = [shape.fault for shape in raws["a.jpg"].regions]
    assert "a cuboid is not read" in faults[0] and "ytl='x'" in faults[1] and "xtl='nan'" in faults[2]
    assert all("expected points" in fault for fault in faults[3:])
    texts, told = read_text(source)
    assert len(told) == 5 and "none of its 5 shape(s) can be used" in texts["a.jpg"].fault


def test_an_open_line_is_no_text(export):
    raws, (fault,) = read_text(export(image("a.jpg", polygon([(1, 2), (30, 2)], "polyline"), box((1, 2, 9, 9)))))
    assert len(raws["a.jpg"].regions) == 1 and "enclose no text" in fault.reason


def test_parts_of_one_group_are_one_object_whole_shapes_of_another_class_are_not(read, export):
    parts = [
        polygon([(10, 10), (20, 10), (15, 20)], more=' group_id="1"'),
        polygon([(40, 30), (50, 30), (45, 40)], more=' group_id="1"'),
        box((1, 2, 9, 9), more=' group_id="1"'),
        box((2, 3, 9, 9), more=' group_id="0"'),
        box((3, 4, 9, 9), more=' group_id="0"'),
    ]
    raws, _, _ = read("cvat", export(image("a.jpg", *parts)))
    joined, *others = raws["a.jpg"].regions
    assert joined.corners == (10, 10, 50, 40) and "2 shapes of group 1 are one object" in joined.repairs[0]
    assert [(other.corners, other.repairs) for other in others] == [
        ((1, 2, 9, 9), ()),
        ((2, 3, 9, 9), ()),
        ((3, 4, 9, 9), ()),
    ]


def test_subsets_of_a_project_are_the_split_and_their_folders_keep_equal_names_apart(read, export):
    pictures = ("images/Train/a.jpg", "images/Validation/a.jpg")
    names = [
        image("a.jpg", box((1, 2, 9, 9)), more=f' subset="{name}" task_id="7"') for name in ("Train", "Validation")
    ]
    found = [item for item in _items(export(*names, pictures=pictures)) if isinstance(item, RawImage)]
    assert [(raw.name, raw.split) for raw in found] == [(pictures[0], "train"), (pictures[1], "val")]


def test_one_subset_alone_is_no_split(read, export):
    raws, _, _ = read("cvat", export(image("a.jpg"), subset="Train"))
    assert raws["a.jpg"].split == ""


def test_several_tasks_below_one_folder_are_read_together_each_with_its_own_images(export, tmp_path, write_picture):
    source = tmp_path / "all"
    for number, subset in enumerate(("train", "test")):
        task = source / f"task_{number}"
        write_picture(task / "images" / "0001.png", number)
        text = TASK.format(subset=subset, images=image("0001.png", box((number, 2, 9, 9))))
        (task / "annotations.xml").write_text(text)
    found = [item for item in _items(source) if isinstance(item, RawImage)]
    assert [(raw.name, raw.split, raw.regions[0].corners[0]) for raw in found] == [
        ("task_0/images/0001.png", "train", 0),
        ("task_1/images/0001.png", "val", 1),
    ]


def test_a_frame_of_a_video_is_found_although_its_name_has_no_suffix(read, export):
    raws, faults, _ = read("cvat", export(image("frame_000000"), pictures=["images/frame_000000.PNG"]))
    assert list(raws) == ["frame_000000.PNG"] and not faults


def test_missing_and_unlisted_images_are_told(read, export):
    source = export(image("a.jpg"), image("gone.jpg", box((1, 2, 9, 9))), pictures=["images/a.jpg", "images/c.jpg"])
    raws, (fault,), others = read("cvat", source)
    assert list(raws) == ["a.jpg"] and "image not found: gone.jpg" in fault.reason and fault.item == "image 0 gone.jpg"
    assert others[-1].image.name == "c.jpg" and others[-1].reason == "no entry in annotations.xml"


def test_tags_alone_are_told_as_they_may_mean_anything(read, export):
    raws, (fault,), _ = read("cvat", export(image("a.jpg", '<tag label="nok" source="manual"></tag>')))
    assert raws["a.jpg"].regions == () and fault.action == "warning" and "first a.jpg: nok" in fault.reason


def test_a_video_export_and_an_xml_of_another_kind_are_refused_with_the_way_out(read, tmp_path):
    (tmp_path / "annotations.xml").write_text('<annotations><track id="0" label="dent"></track></annotations>')
    with pytest.raises(DataError, match=r"CVAT for images 1\.1"):
        read("cvat", tmp_path)
    (tmp_path / "annotations.xml").write_text("<annotation/>")
    with pytest.raises(DataError, match="starts with <annotations>"):
        read("cvat", tmp_path)


def test_an_xml_that_declares_entities_is_not_read(read, tmp_path):
    bomb = '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]><annotations><image name="&y;"/></annotations>'
    (tmp_path / "annotations.xml").write_text(bomb)
    with pytest.raises(DataError, match="declares the entity 'x'"):
        read("cvat", tmp_path)


def _items(source: Path) -> list[object]:
    from pipelines.prep.formats import DEFECT_FORMATS

    return list(DEFECT_FORMATS["cvat"](source, None))
