"""A source's format is found by a glance, or asked for. Run: pytest tests/unit/prep/test_recognise.py"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.errors import DataError, UsageError
from pipelines.prep import glance as glance_module
from pipelines.prep import prepare_defect, prepare_text
from pipelines.prep.formats import DEFECT_FORMATS, TEXT_FORMATS
from pipelines.prep.glance import glance
from pipelines.prep.recognise import DEFECT_SIGNS, TEXT_SIGNS, recognise
from tests.faults.raw_sources import DEFECT_SOURCES, TEXT_SOURCES

CASES = [
    *(("text", name, write) for name, write in TEXT_SOURCES.items()),
    *(("defect", name, write) for name, write in DEFECT_SOURCES.items()),
]


@pytest.mark.parametrize(("kind", "name", "write"), CASES, ids=[f"{kind}-{name}" for kind, name, _ in CASES])
def test_every_format_is_recognised_as_its_tool_leaves_it(tmp_path, kind, name, write):
    write(tmp_path)
    assert recognise(tmp_path, kind) == name


def test_every_format_has_a_sign():
    assert TEXT_SIGNS.keys() == TEXT_FORMATS.keys() and DEFECT_SIGNS.keys() == DEFECT_FORMATS.keys()


def test_prepare_finds_the_format_and_reports_it(labelled, tmp_path):
    assert prepare_text(labelled, "auto", tmp_path / "out", dry_run=True).format == "paddleocr"
    assert recognise(labelled / "Label.txt", "text") == "paddleocr"


def test_a_source_without_any_sign_is_refused_with_everything_that_was_looked_for(tmp_path, write_picture):
    write_picture(tmp_path / "a.jpg")
    (tmp_path / "notes.txt").write_text("take the left ones\n")
    with pytest.raises(UsageError) as refused:
        recognise(tmp_path, "defect")
    message = str(refused.value)
    assert all(f"{name}: {sign.looks_like}" in message for name, sign in DEFECT_SIGNS.items())
    assert "no defect format recognised" in message and "--from FORMAT" in message
    with pytest.raises(UsageError, match="no text format recognised"):
        prepare_text(tmp_path, "auto", tmp_path / "out")


def test_two_formats_in_one_folder_are_not_guessed(tmp_path):
    for name in ("coco", "voc"):
        DEFECT_SOURCES[name](tmp_path / name)
    with pytest.raises(UsageError, match=r"may be coco \(.*\) or voc \(.*--from coco or --from voc"):
        prepare_defect(tmp_path, "auto", tmp_path / "out")


def test_a_format_of_the_other_task_is_named_as_such(tmp_path):
    DEFECT_SOURCES["deeppcb"](tmp_path)
    with pytest.raises(UsageError, match="looks like deeppcb, which is read by `prepare defect`"):
        recognise(tmp_path, "text")


def test_an_archive_is_to_be_unpacked_and_a_wrong_path_is_told(tmp_path):
    (tmp_path / "task.zip").write_bytes(b"PK")
    with pytest.raises(UsageError, match="an archive; unpack it"):
        recognise(tmp_path / "task.zip", "text")
    with pytest.raises(DataError, match="no such file or folder"):
        recognise(tmp_path / "nowhere", "text")


def test_a_labelme_file_that_starts_with_its_picture_is_recognised_by_its_end(tmp_path):
    content = {"flags": {}, "imageData": "A" * 200_000, "imagePath": "a.jpg", "shapes": [], "version": "3.16"}
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert recognise(tmp_path, "defect") == "labelme"


def test_a_coco_file_that_starts_with_its_annotations_is_recognised_by_its_end(tmp_path):
    boxes = [{"id": number, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]} for number in range(2000)]
    content = {"annotations": boxes, "categories": [{"id": 1, "name": "pit"}], "images": []}
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert recognise(tmp_path, "defect") == "coco"


def test_a_line_of_many_blanks_is_looked_at_once(tmp_path, write_picture):
    write_picture(tmp_path / "a.jpg")
    (tmp_path / "a.txt").write_text("7" + " " * 5000 + "pieces\n")
    with pytest.raises(UsageError, match="no defect format recognised"):
        recognise(tmp_path, "defect")


def test_words_inside_of_values_are_no_keys(tmp_path):
    (tmp_path / "a.json").write_text(
        '{"note": "\\"shapes\\": [] and \\"images\\"", "more": {"shapes": [], "images": []}}'
    )
    with pytest.raises(UsageError, match="no defect format recognised"):
        recognise(tmp_path, "defect")


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"images', b"\xff\xfe[\x00", b"[" * 100_000, b'"' * 100_001, b"\x00\xff"]
)
def test_odd_beginnings_are_no_sign_and_no_crash(tmp_path, content):
    for suffix in (".json", ".xml", ".txt", ".csv"):
        (tmp_path / f"a{suffix}").write_bytes(content)
    with pytest.raises(UsageError, match="no defect format recognised"):
        recognise(tmp_path, "defect")


def test_of_a_big_folder_few_names_are_kept_and_few_files_are_opened(tmp_path, monkeypatch):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in range(300):
            (tmp_path / folder / f"{number:03}.xml").write_text("<other/>")
    (tmp_path / "b" / "z.json").write_text('{"images": [], "annotations": [], "categories": []}')
    opened: list[Path] = []
    original = glance_module._start
    monkeypatch.setattr(glance_module, "_start", lambda path: opened.append(path) or original(path))
    assert recognise(tmp_path, "defect") == "coco", "one file of its kind is seen among any number of others"
    assert len(glance(tmp_path).files) == 41 and len(opened) == 13
    assert {path.parent.name for path in opened[:2]} <= {"a", "b"}
