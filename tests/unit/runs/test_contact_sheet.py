"""Which images a contact sheet shows first. Run: pytest tests/unit/runs/test_contact_sheet.py"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from pipelines.errors import UsageError
from pipelines.runs.data import check
from pipelines.runs.reporter import Quiet


@pytest.fixture
def dataset(repository: Path, tmp_path: Path) -> Path:
    return shutil.copytree(repository / "data" / "sample_invoices", tmp_path / "dataset")


def shown(sheet: Path) -> list[str]:
    return re.findall(r"(?:train|val): (images/[^;]+);", sheet.read_text(encoding="utf-8"))


def test_faults_come_first_then_odd_labels_then_ordinary_images(dataset: Path, tmp_path: Path) -> None:
    lines = [line.split("\t") for line in (dataset / "train.txt").read_text(encoding="utf-8").splitlines()]
    entries = json.loads(lines[1][1])
    lines[1][1] = json.dumps([*entries, entries[0]])
    (dataset / "train.txt").write_text("".join(f"{path}\t{label}\n" for path, label in lines), encoding="utf-8")
    cut = dataset / lines[2][0]
    cut.write_bytes(cut.read_bytes()[:1000])
    assert not check(dataset, Quiet(), tmp_path / "sheet.html")["ok"]
    names = shown(tmp_path / "sheet.html")
    assert names[:2] == [lines[2][0], lines[1][0]] and len(names) == 5
    page = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    assert "1 mostly inside another" in page and "cut off" in page and "2 of 5 images are worth a look." in page


def test_a_sound_dataset_is_shown_all_the_same(dataset: Path, tmp_path: Path) -> None:
    assert check(dataset, Quiet(), tmp_path / "sheet.html")["ok"]
    assert len(shown(tmp_path / "sheet.html")) == 5
    assert "None of 5 images is odd" in (tmp_path / "sheet.html").read_text(encoding="utf-8")


def test_a_fault_of_a_label_line_is_shown_with_its_image_and_with_what_mends_it(dataset: Path, tmp_path: Path) -> None:
    lines = [line.split("\t") for line in (dataset / "train.txt").read_text(encoding="utf-8").splitlines()]
    entries = json.loads(lines[2][1])
    entries[4]["points"][1][0] = 9999
    lines[2][1] = json.dumps(entries)
    text = "".join(f"{path}\t{label}\n" for path, label in [*lines, ["images/gone.jpg", "[]"]])
    (dataset / "train.txt").write_text(text + "no line\n", encoding="utf-8")
    check(dataset, Quiet(), tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    findings, images = page.split("<h2>Images</h2>")
    assert "no tab between" in findings and "reaches outside" not in findings
    first, second = re.findall(r"<figure>.*?</figure>", images, re.DOTALL)[:2]
    both = first + second
    assert "region 5: reaches outside the image" in both and "prepare cuts it at the border" in both
    assert "image not found" in both and "no picture" in both and "images/gone.jpg" in both


def test_of_many_faults_of_one_image_the_first_are_shown(dataset: Path, tmp_path: Path) -> None:
    lines = [line.split("\t") for line in (dataset / "train.txt").read_text(encoding="utf-8").splitlines()]
    entries = json.loads(lines[0][1])
    for entry in entries[:9]:
        entry["points"] = entry["points"][:2]
    lines[0][1] = json.dumps(entries)
    (dataset / "train.txt").write_text("".join(f"{path}\t{label}\n" for path, label in lines), encoding="utf-8")
    check(dataset, Quiet(), tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text(encoding="utf-8")
    assert page.count("a polygon needs at least 3 points") == 6 and "... and 3 more" in page


def test_another_file_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(UsageError, match="is no contact sheet"):
        check(tmp_path / "no such dataset", Quiet(), tmp_path / "mine.html")
