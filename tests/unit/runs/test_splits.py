"""A synthetic dataset is drawn once, and only ever taken for the one that was asked for.

Run: pytest tests/unit/runs/test_splits.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.config import DataSection, SyntheticSection
from pipelines.errors import DataError, UsageError
from pipelines.runs.splits import split_records


def asked(root: Path, **options: object) -> DataSection:
    small = {"train": 2, "val": 1, "seed": 3, "sizes": [(256, 256), (288, 256), (320, 256)]}
    return DataSection(root=root, synthetic=SyntheticSection.model_validate({**small, **options}))


def test_a_missing_synthetic_dataset_is_drawn_once_and_told(tmp_path, recorder):
    data = asked(tmp_path / "new")
    sizes = [record.size_hw for record in split_records(data, "train", recorder)]
    # the third size has no image of its own, and that is no difference
    assert sizes == [(256, 256), (288, 256)]
    assert len(split_records(data, "val", recorder)) == 1
    assert recorder.notes == [f"2 training and 1 validation invoices drawn into {tmp_path / 'new'}"]


@pytest.mark.parametrize("other", [{"seed": 4}, {"train": 1}, {"val": 2}, {"sizes": [(256, 288)]}])
def test_a_dataset_drawn_otherwise_is_refused_and_left(other, tmp_path, recorder):
    split_records(asked(tmp_path / "new"), "train", recorder)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "new").rglob("*")}
    with pytest.raises(UsageError, match=f"other .*{next(iter(other))}"):
        split_records(asked(tmp_path / "new", **other), "train", recorder)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "new").rglob("*")} == before


def test_somebody_elses_dataset_is_not_taken_for_it(tmp_path, recorder):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.txt").write_text("images/a.jpg\t[]\n")
    with pytest.raises(UsageError, match="other train, val, seed, sizes"):
        split_records(asked(tmp_path / "mine"), "train", recorder)


def test_without_a_synthetic_section_nothing_is_drawn(tmp_path, recorder):
    with pytest.raises(DataError, match="no such label file"):
        split_records(DataSection(root=tmp_path / "gone"), "train", recorder)
    assert not (tmp_path / "gone").exists()
