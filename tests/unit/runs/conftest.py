"""A reporter that remembers, and a small configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from pipelines.config import TextConfig
from pipelines.runs.reporter import Quiet


class Recorder(Quiet):
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.tables: list[tuple[str, list[list[object]]]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.tables.append((title, [list(row) for row in rows]))

    @contextmanager
    def progress(self, total: int, title: str) -> Iterator[Recorder]:
        yield self

    def advance(self, description: str = "") -> None:
        """Counting is not what these tests are about."""


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def config_of(**sections: dict[str, object]) -> TextConfig:
    """A whole configuration; keyword arguments update its sections."""
    content: dict[str, dict[str, object]] = {
        "run": {"name": "tiny"},
        "data": {"root": "datasets/tiny"},
        "model": {"network": "PP-OCRv4_mobile", "weights": "a.pdparams"},
        "batching": {"crop_shapes": [(64, 64)]},
        "train": {"updates": 10, "learning_rate": {"base": 0.001}},
        "evaluate": {},
    }
    for name, values in sections.items():
        content[name].update(values)
    return TextConfig.model_validate(content)


@pytest.fixture
def make_config():  # type: ignore[no-untyped-def]
    return config_of
