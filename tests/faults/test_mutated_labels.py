"""Whatever happens to a label file, `prepare` comes back with a dataset or a message, and no image goes unmentioned.

Half of the datasets are written, and must pass `check`.

pytest tests/faults/test_mutated_labels.py tries a few hundred files of each format. Many more, in a quarter of an hour:
MUTATED_LABELS=100000 MUTATED_SEED=2 pytest tests/faults/test_mutated_labels.py
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from pipelines.errors import WholebatchError
from pipelines.prep import DEFECT_FORMATS, TEXT_FORMATS, PrepareReport, check_dataset, prepare_defect, prepare_text
from pipelines.prep.raw import IMAGE_SUFFIXES
from tests.faults.label_mutations import mutated
from tests.faults.raw_sources import DEFECT_SOURCES, TEXT_SOURCES

SOURCES = {
    **{("text", name): write for name, write in TEXT_SOURCES.items()},
    **{("defect", name): write for name, write in DEFECT_SOURCES.items()},
}
PREPARE: dict[str, Callable[..., PrepareReport]] = {"text": prepare_text, "defect": prepare_defect}
NUM_EACH = int(os.environ.get("MUTATED_LABELS", "2000")) // len(SOURCES)
SEED = int(os.environ.get("MUTATED_SEED", "1"))
ALLOWED_SECONDS = 20


@pytest.mark.parametrize(("kind", "name"), SOURCES)
def test_a_mutated_label_file_gives_a_dataset_or_a_reason(kind: str, name: str, tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    SOURCES[kind, name](source)
    labels = {path: path.read_bytes() for path in sorted(source.rglob("*")) if is_label(path)}
    assert labels

    @seed(SEED)
    @settings(max_examples=NUM_EACH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def attempt(data: Any) -> None:
        path = data.draw(st.sampled_from(list(labels)), label="file")
        path.write_bytes(data.draw(mutated(labels[path]), label="content"))
        try:
            with at_most(ALLOWED_SECONDS):
                must_be_told(PREPARE[kind], source, name, out, is_written=data.draw(st.booleans(), label="is written"))
        finally:
            path.write_bytes(labels[path])
            shutil.rmtree(out, ignore_errors=True)

    attempt()


def must_be_told(
    prepare: Callable[..., PrepareReport], source: Path, name: str, out: Path, *, is_written: bool = False
) -> None:
    report, refusal = None, ""
    try:
        report = prepare(source, name, out, val_share=0.5, dry_run=not is_written, workers=1)
    except WholebatchError as error:
        refusal = str(error)
    if report is None:
        assert str(source) in refusal and not out.exists()
        return
    assert not is_written or check_dataset(out).ok
    assert all(fault.file and fault.reason for fault in report.faults)
    num_used = sum(counts.images for counts in report.counts.values())
    num_images = sum(path.suffix in IMAGE_SUFFIXES for path in source.rglob("*"))
    assert num_images - num_used <= sum(fault.action == "dropped" for fault in report.faults)


def is_label(path: Path) -> bool:
    return path.is_file() and path.suffix not in IMAGE_SUFFIXES


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def hung(*_: object) -> None:
        raise AssertionError(f"still busy after {seconds} s")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(("kind", "name"), SOURCES)
def test_control_the_untouched_source_is_read_whole(kind: str, name: str, tmp_path: Path) -> None:
    SOURCES[kind, name](tmp_path / "source")
    report = PREPARE[kind](tmp_path / "source", name, tmp_path / "out", val_share=0.5, dry_run=True)
    assert [counts.images for counts in report.counts.values()] == [2, 2]
    assert not [fault for fault in report.faults if "no object is called" not in fault.reason]


def test_every_format_has_a_source_here() -> None:
    assert set(TEXT_SOURCES) == set(TEXT_FORMATS)
    assert {*DEFECT_SOURCES, "masks"} == set(DEFECT_FORMATS)  # masks are pictures: see test_mutated_images


def test_control_a_reader_that_stumbles_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stumbling(source: Path, images: Path | None) -> Iterator[Any]:
        raise KeyError("points")

    monkeypatch.setitem(TEXT_FORMATS, "paddleocr", stumbling)
    TEXT_SOURCES["paddleocr"](tmp_path)
    with pytest.raises(KeyError):
        must_be_told(prepare_text, tmp_path, "paddleocr", tmp_path / "out")
