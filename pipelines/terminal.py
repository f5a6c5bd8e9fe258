"""A run's notes, tables and progress on a terminal; in a file or a pipe the bars stay away."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from pipelines.runs.reporter import ProgressBar

_FILE_WIDTH = 120  # columns of a table where there is no terminal to fit into; rich would take 80 and cut cells off


class _Bar:
    def __init__(self, progress: Progress, total: int, title: str):
        self._progress = progress
        self._bar = progress.add_task(title, total=total, text="")

    def advance(self, description: str = "") -> None:
        self._progress.update(self._bar, advance=1, text=description)


class Terminal:
    """A `Reporter` on standard output; warnings go there too, marked."""

    def __init__(self, console: Console | None = None):
        width = None if sys.stdout.isatty() else _FILE_WIDTH
        self.console = console or Console(highlight=False, emoji=False, soft_wrap=True, width=width)

    def note(self, text: str) -> None:
        self.console.print(text, markup=False)

    def warn(self, text: str) -> None:
        self.console.print(f"warning: {text}", markup=False, style="yellow")

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        # as Text, since rich reads "[...]" in plain strings as styles: paths and classes hold such
        table = Table(title=Text(title), title_justify="left")
        for column in columns:
            table.add_column(Text(column))
        for row in rows:
            table.add_row(*(Text(str(cell)) for cell in row))
        self.console.print(table)

    @contextmanager
    def progress(self, total: int, title: str) -> Iterator[ProgressBar]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}"),
        )
        with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as progress:
            yield _Bar(progress, total, title)
