"""Odd files, one at a time among sound ones, through the commands a user types: used as they should be, or dropped with
the words of the reason; never a traceback, never a loss that nobody is told of.

Run: pytest tests/faults/test_odd_files.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.dataset import load_defect_split, load_split, read_image
from pipelines.errors import DataError
from pipelines.prep import images
from pipelines.records import Record, TextAnnotation
from tests.faults import tiny_images as tiny
from tests.faults.conftest import Command
from tests.faults.odd_documents import ODD_DOCUMENTS
from tests.faults.odd_images import ODD_IMAGES, OddImage, expected_picture
from tests.faults.odd_labels import ODD_LABELS
from tests.faults.raw_sources import DEFECT_SOURCES, TEXT_SOURCES
from tests.faults.tiny_documents import pdf

NUM_SOUND = 3


def sound_pictures(folder: Path) -> list[str]:
    """Three JPEGs of noise."""
    names = [f"sound_{number}.jpg" for number in range(NUM_SOUND)]
    for seed, name in enumerate(names):
        pixels = np.random.default_rng(seed).integers(0, 256, (tiny.HEIGHT, tiny.WIDTH, 3), dtype=np.uint8)
        tiny.Image.fromarray(pixels).save(folder / name)
    return names


def write_text_source(folder: Path, odd: OddImage) -> None:
    """ICDAR 2015: label files that are called after their images, whatever characters that takes."""
    for name in (*sound_pictures(folder), odd.name):
        stem, (width, height) = Path(name).stem, size_of(name, odd)
        corners = f"0,0,{width},0,{width},{height},0,{height}"
        (folder / f"gt_{stem}.txt").write_text(f"{corners},Total\n", encoding="utf-8")


def write_defect_source(folder: Path, odd: OddImage) -> None:
    """COCO: the odd image and a sound one train, the others validate."""
    sound = sound_pictures(folder)
    for split, names in {"train": [odd.name, sound[0]], "val": sound[1:]}.items():
        images, boxes = [], []
        for number, name in enumerate(names, 1):
            width, height = size_of(name, odd)
            images.append({"id": number, "file_name": name, "width": width, "height": height})
            boxes.append({"id": number, "image_id": number, "category_id": 1, "bbox": [0, 0, width, height]})
        content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "pit"}]}
        (folder / f"{split}.json").write_text(json.dumps(content), encoding="utf-8")


def put(odd: OddImage, folder: Path) -> None:
    """Write the odd file; other systems than Linux take fewer names, and have no pipes."""
    try:
        odd.write(folder / odd.name)
    except (OSError, AttributeError) as error:
        if sys.platform == "linux":
            raise
        pytest.skip(f"{sys.platform} takes no such file: {error}")


def size_of(name: str, odd: OddImage) -> tuple[int, int]:
    return odd.size_wh if name == odd.name else (tiny.WIDTH, tiny.HEIGHT)


WRITE = {"text": write_text_source, "defect": write_defect_source}
FORMATS = {"text": "icdar2015", "defect": "coco"}
SOURCES = {"text": TEXT_SOURCES, "defect": DEFECT_SOURCES}
LOAD = {"text": load_split, "defect": load_defect_split}


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # what it remarks on damaged headers, as the command line has it
@pytest.mark.parametrize("task", WRITE)
@pytest.mark.parametrize("name", ODD_IMAGES)
def test_an_odd_image_is_used_as_it_is_shown_or_dropped_with_the_reason(
    name: str, task: str, tmp_path: Path, wholebatch: Command
) -> None:
    odd = ODD_IMAGES[name]
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    put(odd, source)
    WRITE[task](source, odd)
    options = ("--from", FORMATS[task], "--out", out, "--val", 0.4, "--label-frame", "displayed")
    outcome = wholebatch("prepare", task, source, *options)
    assert outcome.exit_code == 0, outcome.text
    records = [record for split in ("train", "val") for record in LOAD[task](out, split)]
    told = [fault for fault in faults_of(out) if odd.name.rsplit("\n")[-1] in fault["file"] + fault["reason"]]
    if odd.dropped:
        assert len(records) == NUM_SOUND
        assert any(fault["action"] == "dropped" and odd.dropped in fault["reason"] for fault in told), outcome.text
    else:
        assert len(records) == NUM_SOUND + 1
        must_hold(odd, out, records, told)
    assert wholebatch("check", out).exit_code == 0


def faults_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "faults.jsonl").read_text("utf-8").splitlines()]


def must_hold(odd: OddImage, out: Path, records: Sequence[Record], told: Sequence[dict[str, Any]]) -> None:
    """The dataset has the odd image in its colours, and says what was done to it."""
    (record,) = [record for record in records if "sound_" not in record.path]
    assert record.size_hw == odd.size_wh[::-1]
    actions = {"repaired": odd.converted, "warning": odd.note}
    for action, words in actions.items():
        reasons = [fault["reason"] for fault in told if fault["action"] == action]
        assert bool(reasons) == bool(words) and all(words in reason for reason in reasons), told
    seen = read_image(out / record.path)[..., ::-1]
    assert seen.shape[:2] == record.size_hw
    error = float(np.abs(seen.astype(int) - np.asarray(expected_picture(odd))).mean())
    assert error < 4, f"a mean error of {error:.0f} levels"


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("name", [name for name, odd in ODD_IMAGES.items() if odd.dropped])
def test_an_image_that_prepare_drops_neither_passes_check_nor_trains(
    name: str, tmp_path: Path, wholebatch: Command
) -> None:
    odd = ODD_IMAGES[name]
    put(odd, tmp_path)
    write_defect_source(tmp_path, odd)
    outcome = wholebatch("check", tmp_path)
    assert outcome.exit_code == 1 and odd.name in outcome.text, outcome.text
    with pytest.raises(DataError, match=odd.name):
        read_all(tmp_path)


def read_all(root: Path) -> None:
    for record in load_defect_split(root, "train"):
        read_image(root / record.path)


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("name", ODD_DOCUMENTS)
def test_an_odd_document_gives_its_pages_or_the_reason_and_costs_no_other(
    name: str, tmp_path: Path, wholebatch: Command
) -> None:
    odd, out, told = ODD_DOCUMENTS[name], tmp_path / "out", tmp_path / "told.json"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "sound.pdf").write_bytes(pdf())
    (tmp_path / "in" / odd.name).write_bytes(odd.content())
    outcome = wholebatch("pages", tmp_path / "in", "--out", out, "--dpi", 72, "--json", told)
    assert outcome.exit_code == 0, outcome.text
    pictures = [read_image(path) for path in sorted((out / "images").glob("odd_*"))]
    assert tuple(picture.shape[1::-1] for picture in pictures) == odd.pages_wh
    assert (out / "images" / "sound_p001.png").is_file()
    faults = json.loads(told.read_text("utf-8"))["faults"]
    assert [(odd.told in fault["reason"], fault["item"]) for fault in faults] == [(True, odd.item)] * bool(odd.told)
    if odd.dark_px is not None:
        assert int((pictures[0][..., 0] < 128).sum()) == odd.dark_px


@pytest.mark.parametrize("name", ODD_LABELS)
def test_an_odd_label_file_is_read_or_costs_its_image_with_the_reason(
    name: str, tmp_path: Path, wholebatch: Command
) -> None:
    odd, source, out = ODD_LABELS[name], tmp_path / "source", tmp_path / "out"
    SOURCES[odd.task][odd.format](source)
    file = source / odd.file
    before = file.read_bytes()
    file.write_bytes(odd.change(before))
    assert file.read_bytes() != before
    outcome = wholebatch("prepare", odd.task, source, "--from", odd.format, "--out", out, "--val", 0.5)
    assert outcome.exit_code == odd.is_refused, outcome.text
    if odd.is_refused:
        assert odd.told in outcome.text and not out.exists()
        return
    records = {Path(record.path).stem: record for split in ("train", "val") for record in LOAD[odd.task](out, split)}
    assert ("shot_1" in records) == (odd.num_regions is not None), outcome.text
    assert {"shot_0", "shot_2", "shot_3"} <= set(records), outcome.text
    if odd.num_regions is not None:
        assert num_regions(records["shot_1"]) == odd.num_regions
    reasons = [fault["reason"] for fault in faults_of(out) if "no object is called" not in fault["reason"]]
    assert bool(reasons) == bool(odd.told), outcome.text
    assert not odd.told or any(odd.told in reason for reason in reasons), outcome.text
    assert wholebatch("check", out).exit_code == 0


def num_regions(record: Record) -> int:
    annotation = record.annotation
    return len(annotation.regions) if isinstance(annotation, TextAnnotation) else len(annotation.class_ids)


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(ODD_IMAGES) + len(ODD_DOCUMENTS) + len(ODD_LABELS) >= 240


def test_control_a_picture_turned_the_wrong_way_is_caught(
    tmp_path: Path, wholebatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(images._TURNS, 6, tiny.Image.Transpose.ROTATE_90)
    with pytest.raises(AssertionError, match="a mean error of"):
        test_an_odd_image_is_used_as_it_is_shown_or_dropped_with_the_reason("PNG, EXIF 6", "text", tmp_path, wholebatch)


def test_control_the_sound_images_alone_are_all_used_and_nothing_is_told(tmp_path: Path, wholebatch: Command) -> None:
    odd = ODD_IMAGES["JPEG, EXIF 1"]
    write_text_source(tmp_path, odd)
    odd.write(tmp_path / odd.name)
    assert wholebatch("prepare", "text", tmp_path, "--out", tmp_path / "out").exit_code == 0
    assert faults_of(tmp_path / "out") == []
