"""`synthesize` writes either kind, and says which option belongs to which.

Run: pytest tests/unit/runs/test_synthesize.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.dataset import load_defect_split, load_split
from pipelines.errors import UsageError
from pipelines.runs.synthesize import parse_size_hw, synthesize


class Notes:
    """A reporter that keeps its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def table(self, *_: object) -> None:
        raise AssertionError("no table is expected")


def run(out: Path, kind: str, **options) -> list[str]:
    notes = Notes()
    synthesize(out, kind, notes, **{"num_train": 5, "num_val": 5, "seed": 1, **options})
    return notes.notes


def test_factory_images_of_the_sizes_and_share_asked_for(tmp_path: Path) -> None:
    notes = run(tmp_path / "out", "factory", sizes=["128x160"], ok_share=0.4)
    records = load_defect_split(tmp_path / "out", "train")
    assert {record.size_hw for record in records} == {(128, 160)}
    assert sum(record.annotation.is_ok for record in records) == 2
    assert notes == [f"5 training and 5 validation factory images written to {tmp_path / 'out'}"]


def test_invoices_of_the_size_asked_for(tmp_path: Path) -> None:
    run(tmp_path / "out", "invoices", sizes=["256x320"], num_train=1, num_val=1)
    assert [record.size_hw for record in load_split(tmp_path / "out", "train")] == [(256, 320)]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("factories", {}, "--kind factories: expected one of invoices, factory"),
        ("factory", {"font_paths": [Path("a.ttf")]}, "--font belongs to --kind invoices"),
        ("invoices", {"ok_share": 0.8}, "--ok-share belongs to --kind factory"),
        ("invoices", {"sizes": ["100x100"]}, "at least 256 on each side"),
        ("factory", {"sizes": ["100x100"]}, "at least 128 px on each side"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path: Path, kind: str, options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(tmp_path / "out", kind, **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["512", "512x", "0x300", "12.5x300", "-3x4", "16385x100", "99999999x1", "axb", ""])
def test_a_size_that_is_none_is_named(text: str) -> None:
    with pytest.raises(UsageError, match=f"--size {text}: expected HEIGHTxWIDTH"):
        parse_size_hw(text)


def test_a_size_is_height_then_width() -> None:
    assert parse_size_hw("512x1536") == parse_size_hw(" 512X1536 ") == (512, 1536)
