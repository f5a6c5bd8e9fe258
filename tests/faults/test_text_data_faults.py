"""The faults people's label files really have (their images: odd_images.py): refused by name when training would start
from them, listed in one pass by `check`, and repaired or dropped with a reason by `prepare`.

Run: pytest tests/faults/test_text_data_faults.py
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.dataset import load_split, read_image
from pipelines.errors import DataError
from pipelines.prep import check_dataset, prepare_text

BOX = [[10, 10], [50, 10], [50, 20], [10, 20]]


def write_picture(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    path.write_bytes(cv2.imencode(path.suffix, pixels)[1].tobytes())


def line(path: str, points: object = BOX, text: str = "text") -> str:
    return f"{path}\t{json.dumps([{'transcription': text, 'points': points}], ensure_ascii=False)}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A sound PaddleOCR dataset: six training and two validation images."""
    root = tmp_path / "发票 2024"
    for seed in range(8):
        write_picture(root / "images" / f"{seed}.jpg", seed)
    write_lines(root, "train", [line(f"images/{n}.jpg") for n in range(6)])
    write_lines(root, "val", [line(f"images/{n}.jpg") for n in (6, 7)])
    return root


def write_lines(root: Path, split: str, lines: list[str]) -> None:
    (root / f"{split}.txt").write_bytes("".join(lines).encode())


def third_line(new: str) -> Callable[[Path], None]:
    """Replace line 3 of train.txt."""

    def change(root: Path) -> None:
        lines = (root / "train.txt").read_bytes().decode().splitlines(keepends=True)
        write_lines(root, "train", [*lines[:2], new, *lines[3:]])

    return change


def rewritten(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Rewrite the bytes of train.txt."""

    def apply(root: Path) -> None:
        path = root / "train.txt"
        path.write_bytes(change(path.read_bytes()))

    return apply


def image_replaced(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Rewrite the bytes of the image of line 3."""

    def apply(root: Path) -> None:
        path = root / "images" / "2.jpg"
        path.write_bytes(change(path.read_bytes()))

    return apply


REPAIRED, DROPPED = "repaired", "dropped"
# name: (fault, where the message points, what it says, what prepare does)
FAULTS = {
    "blank line": (third_line("\n" + line("images/2.jpg")), "train.txt:3", "blank", REPAIRED),
    "spaces for the tab": (third_line(line("images/2.jpg").replace("\t", "   ")), "train.txt:3", "no tab", REPAIRED),
    "windows line ends": (rewritten(lambda b: b.replace(b"\n", b"\r\n")), "train.txt:1", "CRLF", REPAIRED),
    "byte-order mark": (rewritten(lambda b: b"\xef\xbb\xbf" + b), "train.txt:1", "byte-order mark", REPAIRED),
    "line break in a transcription": (
        third_line(line("images/2.jpg", text="one@two").replace("@", "\n")), "train.txt:3", "no valid JSON", REPAIRED
    ),
    "no JSON": (third_line("images/2.jpg\t[{'points': 1}]\n"), "train.txt:3", "no valid JSON", DROPPED),
    "an image that is not there": (third_line(line("images/gone.jpg")), "train.txt:3", "image not found", DROPPED),
    "one image twice": (third_line(line("images/1.jpg")), "train.txt:3", "twice", DROPPED),
    "two points": (third_line(line("images/2.jpg", [[1, 1], [9, 9]])), "train.txt:3", "at least 3", DROPPED),
    "bow-tie": (third_line(line("images/2.jpg", [BOX[0], BOX[2], BOX[1], BOX[3]])), "train.txt:3", "bow-tie", REPAIRED),
    "all points equal": (third_line(line("images/2.jpg", [[5, 5]] * 4)), "train.txt:3", "no area", DROPPED),
    "points on a line": (
        third_line(line("images/2.jpg", [[5, 5], [9, 9], [20, 20]])), "train.txt:3", "no area", DROPPED
    ),
    "half a pixel": (
        third_line(line("images/2.jpg", [[5, 5], [5.5, 5], [5.5, 6], [5, 6]])), "train.txt:3", "no area", DROPPED
    ),
    "a point without y": (
        third_line(line("images/2.jpg", [[5, 5], [9], [9, 9]])), "train.txt:3", "two numbers", DROPPED
    ),
    "coordinates as text": (
        third_line(line("images/2.jpg", [[str(c) for c in p] for p in BOX])), "train.txt:3", "two numbers", REPAIRED
    ),
    "left of the image": (
        third_line(line("images/2.jpg", [[-3, 10], [50, 10], [50, 20], [-3, 20]])), "train.txt:3", "outside", REPAIRED
    ),
    "right of the image": (
        third_line(line("images/2.jpg", [[10, 10], [85, 10], [85, 20], [10, 20]])), "train.txt:3", "outside", REPAIRED
    ),
    "wholly outside": (
        third_line(line("images/2.jpg", [[90, 10], [99, 10], [99, 20], [90, 20]])), "train.txt:3", "outside", DROPPED
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_check_names_the_fault_with_its_place(root, name):
    fault, where, reason, _ = FAULTS[name]
    assert check_dataset(root).ok
    fault(root)
    report = check_dataset(root)
    assert not report.ok
    assert any(where in str(found) and reason in found.reason for found in report.faults), report.faults


@pytest.mark.parametrize("name", FAULTS)
def test_training_never_starts_from_it_nor_swaps_the_sample(root, name):
    fault, where, reason, _ = FAULTS[name]
    fault(root)
    with pytest.raises(DataError) as caught:
        _read_all(root)
    assert where in str(caught.value) and reason in str(caught.value)


@pytest.mark.parametrize("name", FAULTS)
def test_prepare_makes_a_sound_dataset_of_it_and_says_how(root, tmp_path, name):
    fault, _, _, action = FAULTS[name]
    fault(root)
    report = prepare_text(root, "paddleocr", tmp_path / "out")
    assert action in {found.action for found in report.faults}
    assert check_dataset(tmp_path / "out").ok
    regions = sum(len(record.annotation.regions) for record in load_split(tmp_path / "out", "train"))
    assert regions == (6 if action == REPAIRED else 5)


def test_all_of_them_at_once_are_listed_in_one_pass(root):
    text_faults = [FAULTS[name][0] for name in ("no JSON", "byte-order mark", "windows line ends")]
    image_fault = image_replaced(lambda b: b"")
    for fault in (*text_faults, image_fault):
        fault(root)
    (root / "images" / "4.jpg").unlink()
    write_lines(root, "val", [line("images/6.jpg", [[1, 1]]), line("images/7.jpg")])
    errors = "\n".join(str(fault) for fault in check_dataset(root).faults)
    for expected in ("train.txt:3", "CRLF", "BOM", "4.jpg", "val.txt:1: region 1"):
        assert expected in errors


def test_a_wrong_root_is_one_message_and_not_one_a_line(root):
    shutil.rmtree(root / "images")
    for action in (lambda: load_split(root, "train"), lambda: prepare_text(root, "paddleocr", root.parent / "out")):
        with pytest.raises(DataError, match=r"0 of \d images found under .*; first tried path: .*images/[06]\.jpg"):
            action()
    assert not (root.parent / "out").exists()


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_split_of_ignored_text_alone_is_refused(root, split):
    text = (root / f"{split}.txt").read_text()
    (root / f"{split}.txt").write_text(text.replace('"text"', '"###"'))
    with pytest.raises(DataError, match="every region is ignored"):
        load_split(root, split)
    assert not check_dataset(root).ok
    with pytest.raises(DataError, match=f"{split} has . images but no text to learn or score"):
        prepare_text(root, "paddleocr", root.parent / "out")
    assert not (root.parent / "out").exists()


def test_one_image_of_ignored_text_among_others_is_welcome(root):
    third_line(line("images/2.jpg", text="###"))(root)
    assert check_dataset(root).ok and len(load_split(root, "train")) == 6


def test_one_image_without_text_is_welcome(root):
    third_line("images/2.jpg\t[]\n")(root)
    report = check_dataset(root)
    assert report.ok and report.counts["train"].text_free == 1 and len(load_split(root, "train")) == 6


@pytest.mark.parametrize("split", ["train", "val"])
def test_an_empty_or_missing_label_file_is_refused_at_once(root, split):
    (root / f"{split}.txt").write_text("")
    with pytest.raises(DataError, match="empty: no images"):
        load_split(root, split)
    (root / f"{split}.txt").unlink()
    with pytest.raises(DataError, match="no such label file"):
        load_split(root, split)
    assert not check_dataset(root).ok


def test_a_source_that_leaves_validation_empty_is_refused_with_the_way_out(root, tmp_path):
    (root / "val.txt").unlink()
    write_lines(root, "train", [line("images/0.jpg")])
    with pytest.raises(DataError, match="no images for val: all 1 images are in 1 group"):
        prepare_text(root, "paddleocr", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == [root.name]


def test_a_source_without_any_usable_image_lists_why(root, tmp_path):
    for path in (root / "images").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError) as caught:
        prepare_text(root, "paddleocr", tmp_path / "out")
    assert "no usable image among 8" in str(caught.value) and str(caught.value).count("empty (0 bytes)") == 8


def test_a_missing_image_costs_itself_alone_and_the_source_is_left_as_it_was(root, tmp_path):
    (root / "images" / "2.jpg").unlink()
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    report = prepare_text(root, "paddleocr", tmp_path / "out")
    assert (report.counts["train"].images, report.counts["val"].images) == (5, 2)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("folder", ["图 像", "a b", "🧾", "（全角）"])
@pytest.mark.parametrize("written", ["{}/x.jpg", "./{}/x.jpg", "{}\\x.jpg", "{root}/{}/x.jpg"])
def test_any_way_of_writing_a_path_finds_its_image(root, folder, written):
    write_picture(root / folder / "x.jpg", 8)
    third_line(line(written.replace("{}", folder).replace("{root}", root.as_posix())))(root)
    record = load_split(root, "train")[2]
    assert read_image(root / record.path).shape == (60, 80, 3)


def test_a_dataset_may_move_after_prepare(root, tmp_path):
    prepare_text(root, "paddleocr", tmp_path / "out")
    shutil.rmtree(root)
    (tmp_path / "out").rename(tmp_path / "moved 到")
    assert check_dataset(tmp_path / "moved 到").ok


def _read_all(root):
    for record in load_split(root, "train"):
        read_image(root / record.path)
