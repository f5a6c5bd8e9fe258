"""What a run tells while it goes on; the terminal is somebody else's business."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class ProgressBar(Protocol):
    """One running count."""

    def advance(self, description: str = "") -> None:
        """One more is done; `description` replaces the text beside the bar."""
        ...


class Reporter(Protocol):
    """Receives notes, tables and progress."""

    def note(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None: ...

    def progress(self, total: int, title: str) -> AbstractContextManager[ProgressBar]: ...


class _NoBar:
    def advance(self, description: str = "") -> None:
        """Nobody is looking."""


class Quiet:
    """A Reporter for tests and for use as a library."""

    def note(self, text: str) -> None:
        """Nobody is listening."""

    warn = note

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Nobody is reading."""

    @contextmanager
    def progress(self, total: int, title: str) -> Iterator[ProgressBar]:
        yield _NoBar()
