"""`prepare defect` from source to dataset and back. Run: pytest tests/unit/prep/test_prepare_defect.py"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from pipelines.cli import main
from pipelines.dataset import defect_classes, load_defect_split
from pipelines.errors import DataError, UsageError
from pipelines.prep import check_dataset, prepare_defect


def labelme(folder: Path, name: str, *labels: str) -> None:
    """Write NAME.json with a box of 20 x 10 px for every label, side by side."""
    shapes = [
        {"label": label, "shape_type": "rectangle", "points": [[25 * n, 20], [25 * n + 20, 30]]}
        for n, label in enumerate(labels)
    ]
    content = {"imagePath": f"{name}.jpg", "imageHeight": 60, "imageWidth": 80, "shapes": shapes}
    (folder / f"{name}.json").write_text(json.dumps(content))


@pytest.fixture
def source(tmp_path, write_picture):
    """Ten labelled photographs, two of each of five rolls, and six OK ones in a folder beside."""
    for seed in range(10):
        name = f"roll{seed // 2}_{seed % 2}"
        write_picture(tmp_path / "source" / f"{name}.jpg", seed)
        labelme(tmp_path / "source", name, "scratch", *(["dent"] if seed % 3 == 0 else []))
    for seed in range(6):
        write_picture(tmp_path / "ok" / f"good_{seed}.jpg", 100 + seed)
    return tmp_path / "source"


def records_of(root: Path):
    return {record.path: record for split in ("train", "val") for record in load_defect_split(root, split)}


def test_a_prepared_dataset_loads_and_passes_its_own_check(source, tmp_path):
    report = prepare_defect(source, "labelme", tmp_path / "out", ok_folders=[tmp_path / "ok"], val_share=0.25)
    counts = report.counts
    assert (counts["train"].images, counts["val"].images) == (12, 4)
    assert counts["train"].ok_images + counts["val"].ok_images == 6
    assert {name: sum(c.per_class[name] for c in counts.values()) for name in ("dent", "scratch")} == {
        "dent": 4,
        "scratch": 10,
    }
    checked = check_dataset(tmp_path / "out")
    assert checked.ok and checked.task == "defect_detection" and checked.counts == counts
    assert [fault for fault in checked.faults if "has no object here" not in fault.reason] == []
    records = records_of(tmp_path / "out")
    assert len(records) == 16 and sum(record.annotation.is_ok for record in records.values()) == 6
    assert checked.quantiles["train"]["defect_short_px"] == (10,) * 5
    assert checked.quantiles["train"]["defect_long_px"] == (20,) * 5


def test_boxes_and_images_come_out_as_they_went_in(source, tmp_path):
    prepare_defect(source, "labelme", tmp_path / "out")
    record = records_of(tmp_path / "out")["images/roll0_0.jpg"]
    assert defect_classes(tmp_path / "out") == ("dent", "scratch")
    assert record.annotation.class_ids.tolist() == [1, 0] and record.size_hw == (60, 80)
    assert record.annotation.boxes_xyxy_px.tolist() == [[0, 20, 20, 30], [25, 20, 45, 30]]
    assert (tmp_path / "out" / record.path).read_bytes() == (source / "roll0_0.jpg").read_bytes()


def test_the_written_file_is_plain_coco_with_ids_from_1_in_the_order_of_the_classes(source, tmp_path):
    prepare_defect(source, "labelme", tmp_path / "out", classes=["scratch", "dent"])
    content = json.loads((tmp_path / "out" / "train.json").read_text())
    assert content["categories"] == [{"id": 1, "name": "scratch"}, {"id": 2, "name": "dent"}]
    assert [entry["id"] for entry in content["annotations"]] == list(range(1, len(content["annotations"]) + 1))
    assert content["annotations"][0]["bbox"] == [0, 20, 20, 10] and content["annotations"][0]["area"] == 200
    index = yaml.safe_load((tmp_path / "out" / "dataset.yml").read_text())
    assert index["task"] == "defect_detection" and index["classes"] == ["scratch", "dent"]
    assert index["counts"]["train"]["per_class"]["scratch"] == 8
    assert index["images"]["images/roll0_0.jpg"]["size_hw"] == [60, 80]


def test_pycocotools_reads_what_is_written_and_counts_no_crowd(source, tmp_path):
    from pycocotools.coco import COCO

    labelme(source, "roll0_0", "scratch", "Crowd")
    prepare_defect(source, "labelme", tmp_path / "out")
    found = [COCO(str(tmp_path / "out" / f"{split}.json")) for split in ("train", "val")]
    assert sum(len(coco.getAnnIds(iscrowd=True)) for coco in found) == 1
    assert sum(len(coco.getAnnIds(iscrowd=False)) for coco in found) == 10 + 3


def test_preparing_a_prepared_dataset_changes_no_label_and_no_split(source, tmp_path):
    prepare_defect(source, "labelme", tmp_path / "once", ok_folders=[tmp_path / "ok"])
    report = prepare_defect(tmp_path / "once", "coco", tmp_path / "twice")
    assert report.split_rule["rule"] == "given" and not report.faults
    for name in ("train.json", "val.json"):
        assert (tmp_path / "twice" / name).read_bytes() == (tmp_path / "once" / name).read_bytes()


def test_the_same_bytes_come_out_whatever_the_number_of_workers(source, tmp_path):
    trees = []
    for workers in (1, 3):
        prepare_defect(source, "labelme", tmp_path / "out", ok_folders=[tmp_path / "ok"], workers=workers)
        trees.append({p.name: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()})
        shutil.rmtree(tmp_path / "out")
    assert trees[0] == trees[1] and len(trees[0]) == 16 + 4


def test_ok_images_join_a_given_split_by_their_group_or_are_split_themselves(source, tmp_path, write_picture):
    (source / "train.txt").write_text("".join(f"roll{n}_{k}.jpg\n" for n in range(4) for k in (0, 1)))
    (source / "val.txt").write_text("roll4_0.jpg\nroll4_1.jpg\n")
    write_picture(tmp_path / "ok" / "roll4_7.jpg", 200)
    prepare_defect(
        source, "labelme", tmp_path / "out", ok_folders=[tmp_path / "ok"], group_by="stem-prefix", val_share=0.5
    )
    val = {record.path for record in load_defect_split(tmp_path / "out", "val")}
    assert {"images/source/roll4_0.jpg", "images/source/roll4_1.jpg", "images/ok/roll4_7.jpg"} <= val
    assert not any("roll3" in path for path in val)
    index = yaml.safe_load((tmp_path / "out" / "dataset.yml").read_text())
    assert index["split"]["rule"] == "given where the source has one, else groups"


def test_groups_of_rolls_do_not_straddle_the_split(source, tmp_path):
    for seed in range(5):
        prepare_defect(source, "labelme", tmp_path / str(seed), group_by="stem-prefix", val_share=0.4, seed=seed)
        groups = [{record.group for record in load_defect_split(tmp_path / str(seed), s)} for s in ("train", "val")]
        assert not groups[0] & groups[1]


def test_an_unlabelled_image_is_left_out_unless_the_user_calls_it_ok(source, tmp_path):
    (source / "roll0_0.json").unlink()
    left_out = prepare_defect(source, "labelme", tmp_path / "a")
    (fault,) = left_out.faults
    assert fault.action == "dropped" and f"say so with --ok {source}" in fault.reason
    report = prepare_defect(source, "labelme", tmp_path / "b", ok_folders=[source])
    assert sum(counts.ok_images for counts in report.counts.values()) == 1
    assert [fault.action for fault in report.faults] == ["warning"]
    assert "this and 8 more of the --ok folders have labels in the source: those count" in report.faults[0].reason


@pytest.mark.parametrize("content", ["{", '{"shapes": [{"label": "dent", "points": [[1, 1]]}]}'])
def test_an_image_with_a_broken_label_never_passes_as_ok_even_below_an_ok_folder(source, tmp_path, content):
    (source / "roll0_0.json").write_text(content)
    prepare_defect(source, "labelme", tmp_path / "out", ok_folders=[source])
    records = records_of(tmp_path / "out")
    assert len(records) == 9 and "images/roll0_0.jpg" not in records


def test_one_picture_labelled_and_ok_under_two_names_is_told(source, tmp_path):
    shutil.copy(source / "roll0_0.jpg", tmp_path / "ok" / "copy.jpg")
    report = prepare_defect(source, "labelme", tmp_path / "out", ok_folders=[tmp_path / "ok"])
    (fault,) = report.faults
    assert fault.action == "warning" and fault.file.endswith("copy.jpg") and "roll0_0.jpg" in fault.reason


def test_an_image_listed_twice_is_kept_once_if_the_labels_agree_and_left_out_if_not(tmp_path, write_picture):
    for seed in range(4):
        write_picture(tmp_path / "src" / f"{seed}.jpg", seed)
    for name, shifted in (("a", None), ("b", 3)):
        images = [{"id": n, "file_name": f"{n}.jpg"} for n in range(4)]
        boxes = [
            {"id": n, "image_id": n, "category_id": 1, "bbox": [20 if n == shifted else 1, 1, 9, 9], "area": 81}
            for n in range(4)
        ]
        content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "dent"}]}
        (tmp_path / "src" / f"{name}.json").write_text(json.dumps(content))
    report = prepare_defect(tmp_path / "src", "coco", tmp_path / "out")
    assert sorted(records_of(tmp_path / "out")) == ["images/0.jpg", "images/1.jpg", "images/2.jpg"]
    assert report.actions() == {"dropped": 1, "repaired": 3}
    (dropped,) = [fault for fault in report.faults if fault.action == "dropped"]
    assert "3.jpg: is listed 2 times with different labels" in dropped.reason


def test_an_image_in_both_splits_stays_in_val(tmp_path, write_picture):
    for seed in range(4):
        write_picture(tmp_path / "src" / f"{seed}.jpg", seed)
    for split, numbers in (("train", (0, 1, 2)), ("val", (2, 3))):
        images = [{"id": n, "file_name": f"{n}.jpg"} for n in numbers]
        boxes = [{"id": n, "image_id": n, "category_id": 1, "bbox": [1, 1, 9, 9], "area": 81} for n in numbers]
        content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "dent"}]}
        (tmp_path / "src" / f"{split}.json").write_text(json.dumps(content))
    report = prepare_defect(tmp_path / "src", "coco", tmp_path / "out")
    assert [record.path for record in load_defect_split(tmp_path / "out", "val")] == ["images/2.jpg", "images/3.jpg"]
    assert "kept in val" in report.faults[0].reason


def test_classes_left_out_on_purpose_leave_ok_images_and_misspelt_ones_do_not(source, tmp_path):
    labelme(source, "roll0_0", "dust")
    labelme(source, "roll0_1", "scrtach")
    prepare_defect(source, "labelme", tmp_path / "out", classes=["scratch"])
    records = records_of(tmp_path / "out")
    assert records["images/roll0_0.jpg"].annotation.is_ok and "images/roll0_1.jpg" not in records


def test_a_class_that_val_has_nothing_of_is_a_warning(source, tmp_path):
    labelme(source, "roll4_1", "rare")
    (source / "train.txt").write_text("".join(f"roll{n}_{k}\n" for n in range(1, 5) for k in (0, 1)))
    (source / "val.txt").write_text("roll0_0\nroll0_1\n")
    prepare_defect(source, "labelme", tmp_path / "out")
    report = check_dataset(tmp_path / "out")
    assert report.ok and "val.json: class 'rare' has no object here: nothing to score it on" in str(report.faults[0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"format": "folder"}, UsageError, "nothing to learn from; name the format"),
        ({"format": "via"}, UsageError, "unknown defect format 'via'; expected one of coco, "),
        ({"format": "labelm"}, UsageError, "did you mean labelme"),
        ({"classes": ["scrach", "dent"]}, UsageError, "did you mean 'scratch'"),
        ({"ok_folders": [Path("nowhere")]}, DataError, "nowhere: no such image folder"),
        ({"val_share": 1.0}, UsageError, "between 0 and 1"),
    ],
)
def test_wrong_arguments_are_refused_with_the_way_out_and_leave_nothing(source, tmp_path, arguments, error, message):
    with pytest.raises(error, match=message):
        prepare_defect(source, out=tmp_path / "out", **{"format": "labelme", **arguments})
    assert not (tmp_path / "out").exists()


def test_the_command_prepares_and_checks_and_writes_its_findings(source, tmp_path):
    out, found = tmp_path / "out", tmp_path / "found.json"
    options = ["--from", "labelme", "--ok", str(tmp_path / "ok"), "--classes", "dent,scratch", "--json", str(found)]
    with pytest.raises(SystemExit) as ended:
        main(["prepare", "defect", str(source), "--out", str(out), *options])
    assert not ended.value.code
    assert json.loads(found.read_text())["classes"] == ["dent", "scratch"] and defect_classes(out) == (
        "dent",
        "scratch",
    )
    with pytest.raises(SystemExit) as ended:
        main(["check", str(out), "--json", str(found)])
    assert not ended.value.code and json.loads(found.read_text())["ok"]


@pytest.fixture
def data():
    folder = os.environ.get("WHOLEBATCH_DATA")
    if not folder:
        pytest.skip("WHOLEBATCH_DATA does not name a folder with pcb/ and ballscrew/ (see data/README.md)")
    return Path(folder)


def test_the_real_boards_give_280_and_80_defect_images_and_as_many_templates(data, tmp_path):
    report = prepare_defect(data / "pcb", "deeppcb", tmp_path / "out", dry_run=True)
    assert (report.counts["train"].images, report.counts["train"].ok_images) == (560, 280)
    assert (report.counts["val"].images, report.counts["val"].ok_images) == (160, 80)
    assert report.num_groups == {"train": 5, "val": 2} and not report.faults and report.num_converted == 0


def test_the_real_ball_screws_keep_the_split_of_their_wear_sequences(data, tmp_path):
    report = prepare_defect(data / "ballscrew", "labelme", tmp_path / "out", dry_run=True)
    assert {split: (c.images, c.defects) for split, c in report.counts.items()} == {"train": (32, 57), "val": (12, 19)}
    assert report.split_rule["rule"] == "given" and not report.faults
