"""`check` finds what would spoil a run. Run: pytest tests/unit/prep/test_check.py"""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.errors import DataError
from pipelines.prep import check_dataset, prepare_text


@pytest.fixture
def dataset(labelled, tmp_path):
    prepare_text(labelled, "paddleocr", tmp_path / "out", group_by="stem-prefix")
    return tmp_path / "out"


def reasons(report, action="error"):
    return [str(fault) for fault in report.faults if fault.action == action]


def first_image(dataset, split):
    return dataset / (dataset / f"{split}.txt").read_text().split("\t")[0]


def test_a_sound_dataset_is_ok_and_measured(dataset):
    report = check_dataset(dataset)
    assert report.ok and not report.faults
    assert report.quantiles["train"]["height_px"] == (60, 60, 60, 60, 60)
    assert report.quantiles["val"]["text_height_px"] == (10, 10, 10, 10, 10)
    assert json.loads(json.dumps(report.to_json()))["ok"] is True


def test_one_picture_in_both_splits_is_an_error(dataset):
    shutil.copy(first_image(dataset, "val"), first_image(dataset, "train"))
    (leak,) = reasons(check_dataset(dataset))
    assert first_image(dataset, "train").name in leak and "trains and validates" in leak


def test_copies_within_a_split_are_a_warning_with_their_number_and_names(dataset):
    assert not reasons(check_dataset(dataset), "warning")  # the control
    names = [line.split("\t")[0] for line in (dataset / "train.txt").read_text().splitlines()]
    for copy in names[1:3]:
        shutil.copy(dataset / names[0], dataset / copy)
    report = check_dataset(dataset)
    (told,) = [fault for fault in report.faults if fault.reason.startswith("weighs more than once")]
    assert report.ok and told.image == names[0] and "labelled best" in told.repair
    assert f"2 image(s) of train are copies of others of train: {' = '.join(names[:3])}" in told.reason


def test_an_image_exchanged_after_prepare_is_noticed(dataset, write_picture):
    write_picture(first_image(dataset, "train"), seed=99)
    report = check_dataset(dataset)
    assert report.ok and "sha256 differs" in reasons(report, "warning")[0]
    write_picture(first_image(dataset, "train"), seed=99, size_hw=(50, 80))
    assert "is 80 x 50 px, but dataset.yml says 80 x 60 px" in reasons(check_dataset(dataset))[0]


def test_a_picture_that_no_longer_decodes_is_an_error(dataset):
    path = first_image(dataset, "val")
    path.write_bytes(path.read_bytes()[:900])
    report = check_dataset(dataset)
    assert path.name in reasons(report)[0] and "cut off" in reasons(report)[0] and not report.ok


def test_faults_of_both_splits_come_in_one_pass(dataset):
    (dataset / "train.txt").write_text("broken\n" + (dataset / "train.txt").read_text())
    (dataset / "val.txt").write_text("")
    found = "\n".join(reasons(check_dataset(dataset)))
    assert "train.txt:1: no tab" in found and "val.txt: the label file is empty" in found


def test_a_second_scan_across_the_split_is_a_warning_and_nothing_is_dropped(dataset):
    page = cv2.GaussianBlur(np.random.default_rng(5).normal(128, 400, (300, 400, 3)), (0, 0), 4).clip(0, 255)
    for split, quality in (("train", 95), ("val", 30)):
        cv2.imwrite(str(first_image(dataset, split)), page, [cv2.IMWRITE_JPEG_QUALITY, quality])
    (dataset / "dataset.yml").unlink()
    report = check_dataset(dataset)
    (pair,) = report.near_duplicates
    assert (dataset / pair.train, dataset / pair.val) == (first_image(dataset, "train"), first_image(dataset, "val"))
    assert report.ok and "like one of val: 1;" in reasons(report, "warning")[-1]
    assert json.loads(json.dumps(report.to_json()))["near_duplicates"][0]["similarity"] == pair.similarity


def test_processes_find_what_threads_find(dataset):
    shutil.copy(first_image(dataset, "val"), first_image(dataset, "train"))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert check_dataset(dataset, executor=executor) == check_dataset(dataset)


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(DataError, match="no such dataset folder"):
        check_dataset(tmp_path / "nowhere")


def test_an_empty_folder_lacks_both_label_files(tmp_path):
    report = check_dataset(tmp_path)
    assert len(reasons(report)) == 2 and not report.ok and report.quantiles == {"train": {}, "val": {}}


def test_the_shipped_sample_has_no_fault(repository: Path) -> None:
    report = check_dataset(repository / "data" / "sample_invoices")
    assert report.ok and report.faults == ()
    assert {split: counts.images for split, counts in report.counts.items()} == {"train": 3, "val": 2}
