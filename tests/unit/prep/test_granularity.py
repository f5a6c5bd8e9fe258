"""Words against lines. Run: pytest tests/unit/prep/test_granularity.py"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipelines.dataset import SPLITS, scan_split
from pipelines.prep import prepare_text
from pipelines.prep.granularity import Granularity, granularity_faults, is_near_next
from pipelines.records import Record, TextAnnotation, TextRegion


def by_words(record: Record) -> Record:
    """The same image, every upright box cut where its transcription has spaces, all letters equally wide."""
    cut = []
    for region in record.annotation.regions:
        (left, top), (right, bottom) = region.points_px.min(axis=0), region.points_px.max(axis=0)
        letter, start = (right - left) / max(len(region.transcription), 1), left
        for word in region.transcription.split(" "):
            end = start + letter * len(word)
            corners = np.array([[start, top], [end, top], [end, bottom], [start, bottom]])
            if word:
                cut.append(TextRegion(corners, word, region.is_ignored))
            start = end + letter
    return replace(record, annotation=TextAnnotation(tuple(cut)))


@pytest.fixture
def invoices(repository: Path) -> dict[str, list[Record]]:
    return {split: scan_split(repository / "data" / "sample_invoices", split)[0] for split in SPLITS}


def test_near_is_right_of_it_on_its_row_within_six_tenths_of_the_height() -> None:
    first = [0, 0, 50, 10]
    others = {
        "a space away": [55, 0, 90, 10],
        "a column away": [57, 0, 90, 10],
        "below": [55, 8, 90, 18],
        "of another size": [55, 0, 90, 25],
    }
    near = {name: bool(is_near_next(np.array([first, other], float))[0]) for name, other in others.items()}
    assert near == {"a space away": True, "a column away": False, "below": False, "of another size": False}


def test_val_by_words_and_train_by_lines_is_told_and_the_invoices_alone_are_not(invoices) -> None:
    assert granularity_faults("root", invoices) == []
    clashing = {"train": invoices["train"], "val": [by_words(record) for record in invoices["val"]]}
    (fault,) = granularity_faults("root", clashing)
    assert fault.action == "warning" and "train by lines" in fault.reason and "val by words" in fault.reason


def test_images_by_words_among_images_by_lines_are_told_with_an_example_of_each(invoices) -> None:
    pages = [*invoices["train"], *invoices["val"]]
    mixed = [*pages, *(replace(by_words(page), path=f"words/{page.path}") for page in pages)]
    lined = Granularity.of(mixed)
    assert lined.is_mixed and all(path.startswith("words/") for path in lined.wordy)
    (fault,) = granularity_faults("root", {"train": mixed, "val": []})
    assert "such as words/images" in fault.reason


def test_words_everywhere_is_one_warning(invoices) -> None:
    words = {split: [by_words(record) for record in records] for split, records in invoices.items()}
    (fault,) = granularity_faults("root", words)
    assert "labelled by words" in fault.reason


def test_few_boxes_say_nothing() -> None:
    corners = np.array([[0, 0], [40, 0], [40, 10], [0, 10]])
    two = TextAnnotation((TextRegion(corners), TextRegion(corners + np.array([44, 0]))))
    assert Granularity.of([Record("a.png", (50, 100), two)]).kind == ""
    assert granularity_faults("root", {"train": [Record("a.png", (50, 100), two)], "val": []}) == []


def test_receipts_are_labelled_by_lines_and_no_warning_comes(real_data: Path, tmp_path: Path) -> None:
    prepare_text(real_data / "receipts", "sroie", tmp_path / "out")
    records = {split: scan_split(tmp_path / "out", split)[0] for split in SPLITS}
    assert granularity_faults("root", records) == []
    assert {split: Granularity.of(of_split).kind for split, of_split in records.items()} == dict.fromkeys(
        SPLITS, "lines"
    )
    clashing = {"train": records["train"], "val": [by_words(record) for record in records["val"]]}
    assert len(granularity_faults("root", clashing)) == 1
