"""The page needs nothing beside itself, runs nothing, and shows file names as text whatever they hold.

Run: pytest tests/unit/report/test_page.py
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pipelines.errors import DataError
from pipelines.report import ChangedImage, RunResult, TaskContent, write_report


class Page(HTMLParser):
    """Tags in order, what they refer to, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_everything_is_inside_and_nothing_runs(
    won: RunResult, of_task: TaskContent, changed_image: Callable[..., ChangedImage], tmp_path: Path
) -> None:
    file = write_report(tmp_path / "report.html", won, of_task, [changed_image((300, 200), [(20, 20)], [True])])
    page = Page(file.read_text(encoding="utf-8"))
    assert page.open == []
    assert page.tags.count("img") == 5 + 2  # one panel and four curves, before and after
    assert all(reference.startswith("data:image/") for reference in page.references)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "@import" not in file.read_text(encoding="utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_the_verdict_stands_on_the_page_of_a_run_that_lost(
    lost: RunResult, of_task: TaskContent, tmp_path: Path
) -> None:
    text = write_report(tmp_path / "report.html", lost, of_task).read_text(encoding="utf-8")
    assert "Training did not beat the tuned baseline" in text
    assert 'class="verdict not-won"' in text
    assert "Lower somewhere." in text


def test_names_are_shown_not_interpreted(
    won: RunResult, of_task: TaskContent, changed_image: Callable[..., ChangedImage], tmp_path: Path
) -> None:
    named = replace(won, config={**won.config, "run": {"name": "<b>发票</b>", "seed": 0}})
    picture = replace(changed_image((300, 200), [(20, 20)], [True]), name="<script>.jpg")
    text = write_report(tmp_path / "报告.html", named, of_task, [picture]).read_text(encoding="utf-8")
    assert "&lt;b&gt;发票&lt;/b&gt;" in text
    assert "<script" not in text


def test_a_run_stopped_before_its_first_update_has_a_page(
    lost: RunResult, of_task: TaskContent, tmp_path: Path
) -> None:
    stopped = replace(lost, log=[], metrics={**lost.metrics, "evaluations": []})
    unevaluated = replace(of_task, panels=[replace(panel, points=[]) for panel in of_task.panels])
    file = write_report(tmp_path / "report.html", stopped, unevaluated, pictures_note="No pictures: reason.")
    text = file.read_text("utf-8")
    assert text.count("No update has been logged.") == 2
    assert "No pictures: reason." in text
    assert "<img" not in text


def test_better_and_worse_cells_are_marked_and_equal_ones_are_not(
    won: RunResult, of_task: TaskContent, tmp_path: Path
) -> None:
    text = write_report(tmp_path / "report.html", won, of_task).read_text("utf-8")
    cells = dict(reversed(found) for found in re.findall(r"<td(?: class=\"(\w+)\")?>([+−]0\.\d00)</td>", text))
    assert cells == {"+0.100": "better", "−0.100": "worse", "+0.000": ""}


def test_a_folded_table_shows_its_title_and_an_open_one_has_a_caption(
    won: RunResult, of_task: TaskContent, tmp_path: Path
) -> None:
    table = replace(of_task.result[0], title="Trials")
    told = replace(of_task, trials=replace(table, is_folded=True), data=[table])
    text = write_report(tmp_path / "report.html", won, told).read_text("utf-8")
    assert text.count("<summary>Trials</summary>") == 1
    assert text.count("<caption>Trials</caption>") == 1
    assert Page(text).open == []


def test_a_page_that_cannot_be_written_is_an_error_that_names_it(
    won: RunResult, of_task: TaskContent, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"gone.*report\.html: can't be written"):
        write_report(tmp_path / "gone" / "report.html", won, of_task)
