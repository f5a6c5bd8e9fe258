"""A synthetic dataset is drawn once, and only ever taken for the one that was asked for.

Run: pytest tests/unit/runs/test_splits.py
"""

from __future__ import annotations

import pytest

from pipelines.config import FactorySection, InvoicesSection
from pipelines.dataset import load_defect_split, load_split
from pipelines.errors import DataError, UsageError
from pipelines.runs.splits import have_drawn
from pipelines.runs.text.wiring import TextWiring


def asked(**options: object) -> InvoicesSection:
    small = {"train": 2, "val": 1, "seed": 3, "sizes": [(256, 256), (288, 256), (320, 256)]}
    return InvoicesSection.model_validate({**small, **options})


def test_a_missing_synthetic_dataset_is_drawn_once_and_told(tmp_path, recorder):
    root = tmp_path / "new"
    have_drawn(root, asked(), recorder)
    have_drawn(root, asked(), recorder)
    # the third size has no image of its own, and that is no difference
    assert [record.size_hw for record in load_split(root, "train")] == [(256, 256), (288, 256)]
    assert len(load_split(root, "val")) == 1
    assert recorder.notes == [f"2 training and 1 validation invoices drawn into {root}"]


@pytest.mark.parametrize("other", [{"seed": 4}, {"train": 1}, {"val": 2}, {"sizes": [(256, 288)]}])
def test_a_dataset_drawn_otherwise_is_refused_and_left(other, tmp_path, recorder):
    have_drawn(tmp_path / "new", asked(), recorder)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "new").rglob("*")}
    with pytest.raises(UsageError, match=f"other .*{next(iter(other))}"):
        have_drawn(tmp_path / "new", asked(**other), recorder)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "new").rglob("*")} == before


def test_somebody_elses_dataset_is_not_taken_for_it(tmp_path, recorder):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.txt").write_text("images/a.jpg\t[]\n")
    with pytest.raises(UsageError, match="other train, val, seed, sizes"):
        have_drawn(tmp_path / "mine", asked(), recorder)


def test_without_a_synthetic_section_nothing_is_drawn(tmp_path, make_config, recorder):
    config = make_config(data={"root": tmp_path / "gone"})
    with pytest.raises(DataError, match="no such label file"):
        TextWiring(config, recorder).records("train")
    assert not (tmp_path / "gone").exists()


def asked_factory(**options: object) -> FactorySection:
    small = {"train": 5, "val": 5, "seed": 3, "sizes": [(128, 128), (128, 160)], "ok_share": 0.4}
    return FactorySection.model_validate({**small, **options})


def test_factory_images_are_drawn_once_and_told(tmp_path, recorder):
    root = tmp_path / "new"
    have_drawn(root, asked_factory(), recorder)
    have_drawn(root, asked_factory(), recorder)
    assert sum(record.annotation.is_ok for record in load_defect_split(root, "train")) == 2
    assert recorder.notes == [f"5 training and 5 validation factory images drawn into {root}"]


@pytest.mark.parametrize(
    "other", [{"seed": 4}, {"train": 6}, {"val": 6}, {"sizes": [(160, 160)]}, {"ok_share": 0.2}], ids=str
)
def test_factory_images_drawn_otherwise_are_refused(other, tmp_path, recorder):
    have_drawn(tmp_path / "new", asked_factory(), recorder)
    with pytest.raises(UsageError, match=f"other .*{next(iter(other))}"):
        have_drawn(tmp_path / "new", asked_factory(**other), recorder)


def test_invoices_are_no_factory_images(tmp_path, recorder):
    have_drawn(tmp_path / "new", asked(train=5, val=5), recorder)
    with pytest.raises(UsageError, match=r"another dataset than data\.synthetic asks for"):
        have_drawn(tmp_path / "new", asked_factory(), recorder)
