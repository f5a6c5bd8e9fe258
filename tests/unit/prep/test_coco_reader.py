"""COCO sources as tools lay them out. Run: pytest tests/unit/prep/test_coco_reader.py"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.prep.raw import Unlabelled


def coco_file(path: Path, names: list[str], *, first_id: int = 0, **more: object) -> None:
    """A COCO file: one box an image, ids from `first_id`."""
    images = [{"id": n, "file_name": name} for n, name in enumerate(names, first_id)]
    boxes = [{"id": n, "image_id": n, "category_id": 1, "bbox": [1, 2, 9, 9]} for n in range(first_id, len(names))]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "dent"}], **more}
    path.write_text(json.dumps(content))


def test_two_coco_exports_that_both_start_at_id_0_are_read_apart(read, tmp_path, write_picture):
    for seed, name in enumerate(("a.jpg", "b.jpg")):
        write_picture(tmp_path / name, seed)
    coco_file(tmp_path / "line1.json", ["a.jpg"])
    coco_file(tmp_path / "line2.json", ["b.jpg"])
    raws, faults, _ = read("coco", tmp_path)
    assert {name: len(raw.regions) for name, raw in raws.items()} == {"a.jpg": 1, "b.jpg": 1}
    assert {fault.reason for fault in faults} == {"no area: computed from the box"}


def test_the_same_name_in_two_folders_is_found_by_its_folder_and_refused_without(read, tmp_path, write_picture):
    for seed, name in enumerate(("day/x.jpg", "night/x.jpg")):
        write_picture(tmp_path / "photos" / name, seed)
    coco_file(tmp_path / "a.json", ["day/x.jpg", "x.jpg"])
    (raw,), (_, fault), _ = (list(part.values()) if isinstance(part, dict) else part for part in read("coco", tmp_path))
    assert raw.name == "photos/day/x.jpg"
    assert "2 images are called x.jpg" in fault.reason and fault.item == "images[1] (id 1)"


@pytest.mark.parametrize(
    ("files", "folders"),
    [
        (("annotations/instances_train2017.json", "annotations/instances_val2017.json"), ("train2017", "val2017")),
        (("train/_annotations.coco.json", "valid/_annotations.coco.json"), ("train", "valid")),
        (("train.json", "test.json"), ("images", "images")),
    ],
)
def test_usual_layouts_bring_their_split(read, tmp_path, write_picture, files, folders):
    for seed, (file, folder) in enumerate(zip(files, folders, strict=True)):
        write_picture(tmp_path / folder / f"{seed}.jpg", seed)
        coco_file(tmp_path / file, [f"{seed}.jpg"])
    raws, _, _ = read("coco", tmp_path)
    assert {name: raw.split for name, raw in raws.items()} == {"0.jpg": "train", "1.jpg": "val"}


def test_coco_images_without_an_entry_are_no_ok_images(read, tmp_path, write_picture):
    for seed, name in enumerate(("a.jpg", "b.jpg", "c.jpg")):
        write_picture(tmp_path / name, seed)
    coco_file(tmp_path / "x.json", ["a.jpg", "b.jpg"], annotations=[])
    raws, _, others = read("coco", tmp_path / "x.json")
    assert [raw.regions for raw in raws.values()] == [(), ()]
    assert [other.image.name for other in others if isinstance(other, Unlabelled)] == ["c.jpg"]


def test_what_a_tool_repeats_in_every_entry_is_told_once(read, tmp_path, write_picture):
    for seed in range(3):
        write_picture(tmp_path / f"{seed}.jpg", seed)
    boxes = [{"id": 0, "image_id": str(n), "category_id": 1, "bbox": [1, 2, 9, 9]} for n in range(3)]
    coco_file(tmp_path / "x.json", [f"{n}.jpg" for n in range(3)], annotations=boxes)
    raws, faults, _ = read("coco", tmp_path)
    assert [len(raw.regions) for raw in raws.values()] == [1, 1, 1]
    told = {fault.reason.split(":")[0]: (fault.reason, fault.item) for fault in faults}
    assert told["an annotation's id is there already"][0].endswith("(and in 1 more)")
    assert told["no area"][0].endswith("(and in 2 more)") and told["no area"][1] == "annotations[0] (id 0)"
