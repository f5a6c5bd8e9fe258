"""Label Studio's exports, written the way it writes them. Run: pytest tests/unit/prep/test_label_studio_reader.py"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import DataError
from pipelines.prep.formats import TEXT_FORMATS
from pipelines.prep.raw import RawImage
from pipelines.records import Fault

WIDTH, HEIGHT = 80, 60
Box = tuple[float, float, float, float]


def percent(box: Box, **more: Any) -> dict[str, Any]:
    """left, top, right, bottom in px as Label Studio has it."""
    left, top, right, bottom = box
    return {
        "x": left * 100 / WIDTH,
        "y": top * 100 / HEIGHT,
        "width": (right - left) * 100 / WIDTH,
        "height": (bottom - top) * 100 / HEIGHT,
        "rotation": 0,
        **more,
    }


def result(value: dict[str, Any], kind: str, id: str = "Dx_aB91ISN", **more: Any) -> dict[str, Any]:
    return {
        "original_width": WIDTH,
        "original_height": HEIGHT,
        "image_rotation": 0,
        "value": value,
        "id": id,
        "from_name": "label",
        "to_name": "image",
        "type": kind,
        "origin": "manual",
        **more,
    }


def rectangle(box: Box, label: str = "dent", id: str = "r", **more: Any) -> dict[str, Any]:
    return result(percent(box, rectanglelabels=[label], **more), "rectanglelabels", id)


def annotation(
    *results: Any, id: int = 1001, updated: str = "2024-05-02T09:14:31.000000Z", **more: Any
) -> dict[str, Any]:
    return {
        "id": id,
        "completed_by": 1,
        "result": list(results),
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2024-05-02T09:00:00.000000Z",
        "updated_at": updated,
        "lead_time": 8.4,
        "result_count": len(results),
        "task": 1,
        **more,
    }


def task(image: str, *annotations: Any, id: int = 1, key: str = "image", upload: str = "") -> dict[str, Any]:
    return {
        "id": id,
        "annotations": list(annotations),
        "file_upload": upload,
        "drafts": [],
        "predictions": [],
        "data": {key: image},
        "meta": {},
        "created_at": "2024-05-02T08:00:00.000000Z",
        "updated_at": "2024-05-02T09:14:31.000000Z",
        "inner_id": id,
        "total_annotations": len(annotations),
        "cancelled_annotations": 0,
        "project": 3,
    }


@pytest.fixture
def export(tmp_path, write_picture):
    """`export(*tasks, pictures=...)`: project.json beside the pictures."""

    def write(*tasks: Any, pictures: Sequence[str] = ("a.jpg",)) -> Path:
        for seed, name in enumerate(pictures):
            write_picture(tmp_path / name, seed)
        (tmp_path / "project-3-at-2024-05-02.json").write_text(json.dumps(list(tasks), ensure_ascii=False), "utf-8")
        return tmp_path

    return write


def read_text(source):
    found = list(TEXT_FORMATS["labelstudio"](source, None))
    return {f.image.name: f for f in found if isinstance(f, RawImage)}, [f for f in found if isinstance(f, Fault)]


def one_shape(read, export, value: Any, kind: str = "rectanglelabels", **more: Any):
    raws, _, _ = read("labelstudio", export(task("a.jpg", annotation(result(value, kind, **more)))))
    (shape,) = raws["a.jpg"].regions
    return shape


def test_the_boxes_that_were_written_are_the_boxes_that_are_read(read, export):
    written = {
        "a.jpg": [(10.0, 20.0, 30.5, 40.25), (1.0, 2.0, 9.0, 9.0)],
        "b.jpg": [(5.0, 5.0, 60.0, 50.0)],
        "c.jpg": [],
    }
    tasks = [
        task(name, annotation(*(rectangle(box, id=str(n)) for n, box in enumerate(boxes))), id=number)
        for number, (name, boxes) in enumerate(written.items())
    ]
    raws, faults, _ = read("labelstudio", export(*tasks, pictures=list(written)))
    for name, boxes in written.items():
        assert [shape.corners for shape in raws[name].regions] == [pytest.approx(box) for box in boxes]
        assert {shape.class_name for shape in raws[name].regions} <= {"dent"}
    assert raws["a.jpg"].said_hw == (60, 80) and not faults


@pytest.mark.parametrize(
    ("value", "kind", "corners"),
    [
        # 20 x 10 px, turned a quarter about its top-left corner (30, 20): it hangs down to the left of it.
        (percent((30, 20, 50, 30), rotation=90), "rectanglelabels", (20, 20, 30, 40)),
        (percent((30, 20, 50, 30), rotation=180), "rectanglelabels", (10, 10, 30, 20)),
        # About its centre it would be (35, 15, 45, 35); turned in percent of this image it would be 15 px high.
        ({"points": [[12.5, 50], [37.5, 50], [25, 100]], "closed": True}, "polygonlabels", (10, 30, 30, 60)),
        ({"x": 50, "y": 50, "radiusX": 12.5, "radiusY": 25, "rotation": 0}, "ellipselabels", (30, 15, 50, 45)),
        ({"x": 50, "y": 50, "radiusX": 12.5, "radiusY": 25, "rotation": 90}, "ellipselabels", (25, 20, 55, 40)),
    ],
)
def test_every_shape_has_the_box_round_it(read, export, value, kind, corners):
    shape = one_shape(read, export, {**value, kind: ["dent"]}, kind)
    assert shape.corners == pytest.approx(corners, abs=1e-9) and shape.class_name == "dent"


def test_a_turned_text_box_keeps_its_corners_in_order_and_its_text_joins_it_by_its_id(export):
    # As the template for OCR writes it: the shape, its label and its text are results of one id.
    value = percent((30, 20, 50, 30), rotation=30)
    results = [
        result(value, "rectangle", "bb1", from_name="bbox"),
        result({**value, "labels": ["Text"]}, "labels", "bb1"),
        result({**value, "text": ["Total"]}, "textarea", "bb1", from_name="transcription"),
        result(percent((1, 2, 9, 9)), "rectangle", "bb2", from_name="bbox"),
        result({**percent((1, 2, 9, 9)), "text": ["###"]}, "textarea", "bb2", from_name="transcription"),
        {"from_id": "bb1", "to_id": "bb2", "type": "relation", "direction": "right"},
        {"id": "c1", "type": "choices", "value": {"choices": ["receipt"]}, "from_name": "kind", "to_name": "image"},
    ]
    raws, faults = read_text(export(task("a.jpg", annotation(*results), key="ocr")))
    first, second = raws["a.jpg"].regions
    assert (first.transcription, first.is_ignored, second.transcription, second.is_ignored) == (
        "Total",
        False,
        "###",
        True,
    )
    # From (30, 20): 20 px along 30 degrees clockwise, then 10 px at a right angle to it.
    assert first.points[0] == pytest.approx([30, 20])
    assert first.points[1] == pytest.approx([30 + 17.3205, 20 + 10], abs=1e-3)
    assert first.points[3] == pytest.approx([30 - 5, 20 + 8.6603], abs=1e-3)
    assert not faults


@pytest.mark.parametrize(
    ("reference", "picture"),
    [
        ("/data/local-files/?d=lines%2Fline%203%2Fa.jpg", "line 3/a.jpg"),
        ("/data/upload/1/3f2a1b4c-name.jpg", "3f2a1b4c-name.jpg"),
        ("/data/upload/1/3f2a1b4c-name.jpg", "shots/name.jpg"),
        ("/data/upload/1/3f2a1b4c-my_shot_1.jpg", "my shot (1).jpg"),
        ("/data/upload/1/3f2a1b4c-%E5%8F%91%E7%A5%A8.jpg", "发票.jpg"),
        ("s3://bucket/lines/a.jpg", "lines/a.jpg"),
        ("https://host.example/shots/a%20b.jpg?X-Amz-Signature=12", "a b.jpg"),
        ("D:\\shots\\a.jpg", "a.jpg"),
    ],
)
def test_an_image_is_found_however_label_studio_refers_to_it(read, export, reference, picture):
    raws, faults, _ = read(
        "labelstudio", export(task(reference, annotation(rectangle((1, 2, 9, 9)))), pictures=[picture])
    )
    assert [raw.name for raw in raws.values()] == [picture] and not faults


def test_images_that_are_not_there_are_named_and_the_others_are_read(read, export):
    tasks = [task("/data/upload/1/3f2a1b4c-gone.jpg", annotation(), id=7), task("a.jpg", annotation())]
    raws, (fault,), _ = read("labelstudio", export(*tasks))
    assert list(raws) == ["a.jpg"] and fault.item == "task 7" and "3f2a1b4c-gone.jpg" in fault.reason
    with pytest.raises(DataError, match=r"0 of 1 images found .*--images"):
        read("labelstudio", export(tasks[0]))


def test_of_several_annotations_the_latest_that_was_not_cancelled_counts_and_this_is_told(read, export):
    early = annotation(rectangle((1, 2, 9, 9), "old"), id=1, updated="2024-05-01T00:00:00Z")
    late = annotation(rectangle((1, 2, 9, 9), "new"), id=2, updated="2024-05-02T00:00:00Z", completed_by=2)
    cancelled = annotation(rectangle((1, 2, 9, 9), "no"), id=3, updated="2024-05-03T00:00:00Z", was_cancelled=True)
    raws, (fault,), _ = read("labelstudio", export(task("a.jpg", late, early, cancelled)))
    assert raws["a.jpg"].regions[0].class_name == "new"
    assert "several annotations: the latest is taken" in fault.reason and fault.item == "task 1"


def test_a_task_that_nobody_annotated_is_not_ok_and_one_without_results_is(read, export):
    tasks = [
        task("a.jpg", annotation(), id=1),
        task("b.jpg", id=2),
        task("c.jpg", annotation(was_cancelled=True), id=3),
    ]
    raws, faults, others = read("labelstudio", export(*tasks, pictures=["a.jpg", "b.jpg", "c.jpg"]))
    assert raws.keys() == {"a.jpg"} and raws["a.jpg"].regions == () and not faults
    assert [(other.image.name, other.reason, other.may_be_ok) for other in others] == [
        ("b.jpg", "task 2 has no annotation", True),
        ("c.jpg", "task 3 was skipped by its annotator", False),
    ]


@pytest.mark.parametrize(
    ("value", "more", "reason"),
    [
        ({"format": "rle", "rle": [0, 1], "brushlabels": ["dent"]}, {}, "brush strokes are not read"),
        (percent((1, 2, 9, 9)), {"original_width": None}, "no original_width"),
        (percent((1, 2, 9, 9)), {"image_rotation": 90}, "turned by 90 degrees"),
        (percent((1, 2, 9, 9), height="5"), {}, "expected a rectangle"),
        ({"x": 1, "y": 2, "width": 0.3, "keypointlabels": ["dent"]}, {}, "height=None"),
        ({"points": [[1, 2], ["a", 3]]}, {}, "expected points"),
        ({"vertices": [{"x": 1, "y": 2}]}, {}, "expected a rectangle"),
    ],
)
def test_a_region_that_can_not_be_read_keeps_its_place_with_the_reason(read, export, value, more, reason):
    assert reason in one_shape(read, export, value, **more).fault


def test_a_result_without_a_value_keeps_its_place(read, export):
    raws, _, _ = read("labelstudio", export(task("a.jpg", annotation(7, {"id": "x", "type": "rectanglelabels"}))))
    assert ["expected a result" in shape.fault for shape in raws["a.jpg"].regions] == [True, True]


def test_of_two_labels_the_first_counts_and_this_is_told(read, export):
    shape = one_shape(read, export, percent((1, 2, 9, 9), rectanglelabels=["dent", "pit"]))
    assert shape.class_name == "dent" and shape.repairs == ("has the labels dent, pit: the first counts",)


def test_regions_that_give_different_image_sizes_cost_the_image(read, export):
    other = {**rectangle((1, 2, 9, 9), id="s"), "original_width": 160}
    raws, _, _ = read("labelstudio", export(task("a.jpg", annotation(rectangle((1, 2, 9, 9)), other))))
    assert "2 different image sizes" in raws["a.jpg"].fault


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (7, "expected a task"),
        ({"id": 5, "data": {"image": 3}, "annotations": []}, "names no image; expected one in image"),
        ({"id": 5, "data": {"x": "a.jpg", "y": "b.jpg"}, "annotations": []}, "names several images"),
        ({"id": 5, "data": {"image": "a.jpg"}, "annotations": 4}, "expected a list of annotations"),
        ({"id": 5, "data": {"image": "a.jpg"}, "annotations": [{"result": None}]}, "expected a list of results"),
    ],
)
def test_a_broken_task_is_one_fault_and_the_others_are_read(read, export, entry, reason):
    good = task("b.jpg", annotation(), id=2)
    raws, (fault,), _ = read("labelstudio", export(entry, good, pictures=["a.jpg", "b.jpg"]))
    assert list(raws) == ["b.jpg"] and reason in fault.reason and fault.item in ("task[0]", "task 5")


def minimum(**values: Any) -> dict[str, Any]:
    more = {"annotator": 1, "annotation_id": 3, "created_at": "2024", "updated_at": "2024", "lead_time": 2.5}
    return {"ocr": "/data/upload/1/3f2a1b4c-a.jpg", "id": 1, **values, **more}


def test_json_min_is_read_as_far_as_it_goes_and_this_is_told(export):
    size = {"original_width": WIDTH, "original_height": HEIGHT}
    boxes = [percent((10, 20, 30, 40), **size), percent((1, 2, 9, 9), **size)]
    labelled = [{**box, "labels": ["Text"]} for box in boxes]
    raws, (fault,) = read_text(export(minimum(bbox=boxes, label=labelled, transcription=["A", "###"])))
    regions = raws["a.jpg"].regions
    assert [(region.transcription, region.is_ignored) for region in regions] == [("A", False), ("###", True)]
    assert regions[0].points[2] == pytest.approx([30, 40]) and "JSON-MIN has no ids" in fault.reason
    raws, _ = read_text(export(minimum(bbox=boxes[:1], transcription="B")))
    assert [region.transcription for region in raws["a.jpg"].regions] == ["B"]


def test_json_min_with_fewer_texts_than_shapes_gives_none_of_them_to_the_wrong_shape(export):
    size = {"original_width": WIDTH, "original_height": HEIGHT}
    boxes = [percent((10, 20, 30, 40), **size), percent((1, 2, 9, 9), **size)]
    raws, (_, fault) = read_text(export(minimum(bbox=boxes, transcription="A")))
    assert [region.transcription for region in raws["a.jpg"].regions] == ["", ""]
    assert "transcription: 2 shapes, but not as many texts" in fault.reason


def test_an_annotation_in_a_file_of_its_own_is_read_as_cloud_storage_has_it(read, export):
    source = export()
    (source / "project-3-at-2024-05-02.json").unlink()
    stored = {**annotation(rectangle((1, 2, 9, 9))), "task": {"id": 4, "data": {"image": "s3://b/a.jpg"}}}
    (source / "1001.json").write_text(json.dumps(stored))
    raws, faults, _ = read("labelstudio", source)
    assert len(raws["a.jpg"].regions) == 1 and not faults


def test_a_folder_without_an_export_is_refused_and_says_what_is_expected(read, tmp_path):
    (tmp_path / "a.json").write_text('{"shapes": []}')
    with pytest.raises(DataError, match='expected a JSON list of tasks with "data" and "annotations"'):
        read("labelstudio", tmp_path)
    (tmp_path / "a.json").write_text("[")
    with pytest.raises(DataError, match="no valid JSON"):
        read("labelstudio", tmp_path)
