"""Which files are looked at, and what is written of what was found. Run: pytest tests/unit/runs/test_predict.py"""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from pipelines.errors import DataError, OutOfMemoryError, UsageError
from pipelines.records import TextPrediction
from pipelines.runs import predict as module
from pipelines.runs.predict import image_files, predict
from pipelines.runs.text.pictures import TextPresentation

BOX = np.array([[10, 20], [60, 20], [60, 40], [10, 40]], np.float32)
FOUND = TextPrediction((BOX,), np.array([0.87654321], np.float32))


def write_picture(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(".png", np.full((50, 80, 3), 255, np.uint8))[1].tobytes())
    return path


def test_a_folder_stands_for_the_images_in_it_and_files_come_as_given(tmp_path):
    single = write_picture(tmp_path / "别 of.dat")
    first, second = write_picture(tmp_path / "图" / "a.PNG"), write_picture(tmp_path / "图" / "b.png")
    (tmp_path / "图" / "notes.txt").write_text("no image")
    assert image_files([single, tmp_path / "图"]) == [single, first, second]


def test_no_images_and_missing_paths_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no images: expected files or folders"):
        image_files([tmp_path / "empty"])
    with pytest.raises(UsageError, match=r"gone\.png: no such file or folder"):
        image_files([tmp_path / "gone.png"])


def test_images_of_one_name_from_two_folders_keep_a_drawing_each(tmp_path, monkeypatch, recorder):
    files = [write_picture(tmp_path / folder / "发票.png") for folder in ("一月", "二月")]
    monkeypatch.setattr(module, "finder_of", lambda *_: (lambda image: FOUND, TextPresentation()))
    written = predict(tmp_path / "model", files, tmp_path / "out", recorder)
    entries = json.loads(written.read_text(encoding="utf-8"))
    assert [entry["image"] for entry in entries] == [str(file) for file in files]
    assert len({entry["drawn"] for entry in entries}) == 2
    assert all((tmp_path / "out" / entry["drawn"]).is_file() for entry in entries)
    assert "2 text regions in 2 images" in recorder.notes[-1]


def test_pages_that_are_not_looked_at_are_told(tmp_path, monkeypatch, recorder):
    monkeypatch.setattr(module, "finder_of", lambda *_: (lambda image: FOUND, TextPresentation()))
    pages = [Image.new("L", (80, 50), shade) for shade in (255, 200, 100)]
    pages[0].save(tmp_path / "fax.tif", save_all=True, append_images=pages[1:])
    predict(tmp_path / "model", [tmp_path / "fax.tif", write_picture(tmp_path / "a.png")], tmp_path / "out", recorder)
    (told,) = recorder.warnings
    assert "fax.tif has 3 pages and only the first is used; `wholebatch pages`" in told


@pytest.mark.parametrize("num_failures", [1, 2])
def test_memory_that_ends_once_is_survived_and_twice_names_the_image(num_failures, tmp_path, monkeypatch, recorder):
    calls = []

    def detect(image):
        calls.append(1)
        if len(calls) <= num_failures:
            raise MemoryError
        return FOUND

    monkeypatch.setattr(module, "finder_of", lambda *_: (detect, TextPresentation()))
    arguments = (tmp_path / "model", [write_picture(tmp_path / "a.png")], tmp_path / "out", recorder)
    if num_failures == 1:
        assert predict(*arguments).is_file()
        return
    with pytest.raises(OutOfMemoryError, match=r"a\.png: looking at 50 x 80 px does not fit in memory"):
        predict(*arguments)


def test_a_folder_in_use_is_left_as_it_is(tmp_path, monkeypatch, recorder):
    monkeypatch.setattr(module, "finder_of", lambda *_: pytest.fail("nothing may be computed for it"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="left as it is"):
        predict(tmp_path / "model", [write_picture(tmp_path / "a.png")], tmp_path / "out", recorder)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_an_image_that_cannot_be_read_is_named(tmp_path, monkeypatch, recorder):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"<html>404</html>")
    monkeypatch.setattr(module, "finder_of", lambda *_: (lambda image: FOUND, TextPresentation()))
    with pytest.raises(DataError, match=r"broken\.png"):
        predict(tmp_path / "model", [broken], tmp_path / "out", recorder)


@pytest.mark.parametrize("confidence", [-0.1, 1.5])
def test_a_confidence_that_is_none_is_refused(confidence, tmp_path, recorder):
    with pytest.raises(UsageError, match=rf"--confidence must lie between 0 and 1, but got {confidence:g}"):
        predict(tmp_path / "model", [write_picture(tmp_path / "a.png")], tmp_path / "out", recorder, confidence)
