"""`prepare` from source to dataset and back. Run: pytest tests/unit/prep/test_prepare_text.py"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from pipelines.dataset import load_split, read_image
from pipelines.errors import DataError, UsageError
from pipelines.prep import check_dataset, prepare_text
from pipelines.prep.target_names import target_names

BOX = [[10, 10], [50, 10], [50, 20], [10, 20]]


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_prepared_dataset_loads_and_passes_its_own_check(labelled, tmp_path):
    report = prepare_text(labelled, "paddleocr", tmp_path / "out")
    assert (report.counts["train"].images, report.counts["val"].images) == (8, 2)
    records = load_split(tmp_path / "out", "train") + load_split(tmp_path / "out", "val")
    assert len(records) == 10 and all(read_image(tmp_path / "out" / r.path).shape[:2] == r.size_hw for r in records)
    checked = check_dataset(tmp_path / "out")
    assert checked.ok and not checked.faults and checked.counts == report.counts


def test_images_are_copied_byte_for_byte_and_their_hash_is_kept(labelled, tmp_path):
    prepare_text(labelled, "paddleocr", tmp_path / "out")
    index = yaml.safe_load((tmp_path / "out" / "dataset.yml").read_text("utf-8"))
    assert len(index["images"]) == 10
    for path, entry in index["images"].items():
        content = (labelled / entry["source"]).read_bytes()
        assert (tmp_path / "out" / path).read_bytes() == content
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()


def test_preparing_a_prepared_dataset_changes_no_label_and_no_split(labelled, tmp_path):
    prepare_text(labelled, "paddleocr", tmp_path / "once")
    report = prepare_text(tmp_path / "once", "paddleocr", tmp_path / "twice")
    assert report.split_rule["rule"] == "given" and not report.faults
    for name in ("train.txt", "val.txt"):
        assert (tmp_path / "twice" / name).read_bytes() == (tmp_path / "once" / name).read_bytes()


def test_the_same_bytes_come_out_whatever_the_number_of_workers(labelled, tmp_path):
    Image.new("RGBA", (40, 30), (9, 9, 9, 99)).save(labelled / "odd.png")
    with (labelled / "Label.txt").open("a") as labels:
        labels.write('odd.png\t[{"transcription": "x", "points": [[1, 1], [20, 9], [20, 1], [1, 9]]}]\nbroken line\n')
    trees = []
    for workers in (1, 2, 7):
        prepare_text(labelled, "paddleocr", tmp_path / "out", workers=workers)
        trees.append(tree(tmp_path / "out"))
        shutil.rmtree(tmp_path / "out")
    assert trees[0] == trees[1] == trees[2]
    assert len(trees[0]) == 11 + 4
    prepare_text(labelled, "paddleocr", tmp_path / "out", seed=1)
    assert tree(tmp_path / "out")["train.txt"] != trees[0]["train.txt"]


def test_the_order_of_label_lines_does_not_change_the_split(labelled, tmp_path):
    prepare_text(labelled, "paddleocr", tmp_path / "a")
    lines = (labelled / "Label.txt").read_text().splitlines(keepends=True)
    (labelled / "Label.txt").write_text("".join(reversed(lines)))
    prepare_text(labelled, "paddleocr", tmp_path / "b")
    assert (tmp_path / "a" / "val.txt").read_bytes() == (tmp_path / "b" / "val.txt").read_bytes()


def test_groups_do_not_straddle_the_split(labelled, tmp_path):
    for seed in range(10):
        report = prepare_text(
            labelled, "paddleocr", tmp_path / str(seed), group_by="stem-prefix", val_share=0.4, seed=seed
        )
        groups = {
            split: {record.group for record in load_split(tmp_path / str(seed), split)} for split in ("train", "val")
        }
        assert not groups["train"] & groups["val"]
        assert (report.num_groups["train"], report.num_groups["val"]) == (3, 2)


def test_equal_pictures_never_straddle_the_split(labelled, tmp_path):
    for name in ("roll1_0.jpg", "roll2_1.jpg", "roll4_0.jpg"):
        shutil.copy(labelled / "roll0_0.jpg", labelled / name)
    sides = set()
    for seed in range(8):
        prepare_text(labelled, "paddleocr", tmp_path / str(seed), seed=seed, val_share=0.5)
        copies = ("roll0_0", "roll1_0", "roll2_1", "roll4_0")
        val = (tmp_path / str(seed) / "val.txt").read_text()
        assert len({name in val for name in copies}) == 1
        assert check_dataset(tmp_path / str(seed)).ok
        sides.add("roll0_0" in val)
    assert sides == {True, False}


def test_a_given_split_with_the_same_picture_on_both_sides_loses_the_training_copy(tmp_path, write_picture, label_line):
    for name, seed in (("a.jpg", 0), ("b.jpg", 0), ("c.jpg", 1)):
        write_picture(tmp_path / "src" / name, seed)
    (tmp_path / "src" / "train.txt").write_text(label_line("a.jpg", BOX) + label_line("c.jpg", BOX))
    (tmp_path / "src" / "val.txt").write_text(label_line("b.jpg", BOX))
    report = prepare_text(tmp_path / "src", "paddleocr", tmp_path / "out")
    (fault,) = report.faults
    assert fault.action == "dropped" and "the same picture as b.jpg of val" in fault.reason
    assert [record.path for record in load_split(tmp_path / "out", "train")] == ["images/c.jpg"]


def test_a_group_on_both_sides_of_a_given_split_is_told(tmp_path, write_picture, label_line):
    for seed, name in enumerate(("roll_1.jpg", "roll_2.jpg")):
        write_picture(tmp_path / "src" / name, seed)
    (tmp_path / "src" / "train.txt").write_text(label_line("roll_1.jpg", BOX))
    (tmp_path / "src" / "val.txt").write_text(label_line("roll_2.jpg", BOX))
    report = prepare_text(tmp_path / "src", "paddleocr", tmp_path / "out", group_by="stem-prefix")
    assert [fault.action for fault in report.faults] == ["warning"] and "group 'roll'" in report.faults[0].reason
    assert [fault.action for fault in check_dataset(tmp_path / "out").faults] == ["warning"]


def test_an_image_labelled_twice_counts_once(labelled, tmp_path, label_line):
    with (labelled / "Label.txt").open("a") as labels:
        labels.write(label_line("./roll0_0.jpg", BOX))
    report = prepare_text(labelled, "paddleocr", tmp_path / "out")
    assert sum(counts.images for counts in report.counts.values()) == 10
    assert "already labelled at" in report.faults[0].reason and report.faults[0].line == 11


def test_every_fault_is_written_with_file_line_reason_and_action(labelled, tmp_path):
    with (labelled / "Label.txt").open("a") as labels:
        labels.write("gone.jpg\t[]\n")
    report = prepare_text(labelled, "paddleocr", tmp_path / "out")
    (written,) = [json.loads(line) for line in (tmp_path / "out" / "faults.jsonl").read_text().splitlines()]
    assert written["line"] == 11 and written["action"] == "dropped" and "gone.jpg" in written["reason"]
    index = yaml.safe_load((tmp_path / "out" / "dataset.yml").read_text("utf-8"))
    assert index["faults"] == {"dropped": 1, "listed_in": "faults.jsonl"}
    assert json.loads(json.dumps(report.to_json()))["actions"] == {"dropped": 1}


def test_a_turned_photo_is_written_upright_and_recorded(labelled, tmp_path):
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(np.full((60, 90, 3), 77, np.uint8)).save(labelled / "roll0_0.jpg", exif=exif)
    report = prepare_text(labelled, "paddleocr", tmp_path / "out")
    assert report.num_converted == 1 and "EXIF orientation 6" in report.faults[0].reason
    entry = yaml.safe_load((tmp_path / "out" / "dataset.yml").read_text())["images"]["images/roll0_0.jpg"]
    assert entry["size_hw"] == [90, 60] and "EXIF" in entry["converted"]
    assert entry["source_sha256"] == hashlib.sha256((labelled / "roll0_0.jpg").read_bytes()).hexdigest()
    assert check_dataset(tmp_path / "out").ok


def test_a_dry_run_reports_the_same_and_writes_nothing(labelled, tmp_path):
    before = tree(tmp_path)
    planned = prepare_text(labelled, "paddleocr", tmp_path / "out", dry_run=True)
    assert tree(tmp_path) == before and not (tmp_path / "out").exists()
    written = prepare_text(labelled, "paddleocr", tmp_path / "out")
    assert {**planned.to_json(), "dry_run": False} == written.to_json()


def test_an_existing_dataset_is_never_overwritten(labelled, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        prepare_text(labelled, "paddleocr", out)
    assert tree(out) == {"mine.txt": b"mine"}
    (out / "mine.txt").unlink()
    prepare_text(labelled, "paddleocr", out)
    assert (out / "dataset.yml").is_file()


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_dataset_is_never_there_in_part_and_a_run_that_stopped_goes_on(labelled, tmp_path, monkeypatch, failure):
    calls = []

    def copy_four_then_fail(source, target):
        calls.append(source)
        if len(calls) > 4:
            raise failure
        Path(target).write_bytes(Path(source).read_bytes())

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.prep.write.shutil.copyfile", copy_four_then_fail)
        with pytest.raises(KeyboardInterrupt if isinstance(failure, KeyboardInterrupt) else DataError):
            prepare_text(labelled, "paddleocr", tmp_path / "out", workers=1)
    assert len(calls) > 4 and sorted(os.listdir(tmp_path)) == ["out.partial", "source"]
    report = prepare_text(labelled, "paddleocr", tmp_path / "out")
    assert report.resumed.endswith("10 images examined, 4 written before")
    assert sorted(os.listdir(tmp_path)) == ["out", "source"]
    prepare_text(labelled, "paddleocr", tmp_path / "at_once")
    assert tree(tmp_path / "out") == tree(tmp_path / "at_once")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "paddelocr"}, "did you mean paddleocr"),
        ({"val_share": 0}, "between 0 and 1"),
        ({"val_share": 1.5}, "between 0 and 1"),
        ({"group_by": "("}, "not a valid regular expression"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_read(tmp_path, arguments, message):
    with pytest.raises(UsageError, match=message):
        prepare_text(tmp_path / "nowhere", out=tmp_path / "out", **{"format": "paddleocr", **arguments})


def test_names_in_the_dataset_keep_folders_and_never_collide(tmp_path):
    files = [(tmp_path / "a" / "1.jpg", ""), (tmp_path / "b" / "1.jpg", ""), (tmp_path / "b" / "1.JPG", "")]
    files += [(tmp_path / "b" / "2.tif", ".png"), (tmp_path / "b" / "x\ty.jpg", "")]
    assert target_names(files) == [
        "images/a/1.jpg",
        "images/b/1.jpg",
        "images/b/1_.JPG",
        "images/b/2.tif.png",
        "images/b/x_y.jpg",
    ]


def test_the_real_receipts_give_102_and_36_images_with_their_own_split(tmp_path):
    data = os.environ.get("WHOLEBATCH_DATA")
    if not data:
        pytest.skip("WHOLEBATCH_DATA does not name a folder with receipts/ (see data/README.md)")
    report = prepare_text(Path(data) / "receipts", "sroie", tmp_path / "out", dry_run=True)
    assert (report.counts["train"].images, report.counts["val"].images) == (102, 36)
    assert (report.counts["train"].regions, report.counts["val"].regions) == (5566, 1926)
    assert report.actions() == {"warning": 7} and report.num_converted == 0
