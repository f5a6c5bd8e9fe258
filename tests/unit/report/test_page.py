"""The page needs nothing beside itself, runs nothing, and shows file names as text whatever they hold.

pytest tests/unit/report/test_page.py
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pipelines.errors import DataError
from pipelines.report import ChangedImage, RunResult, write_report


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
    won: RunResult, changed_image: Callable[..., ChangedImage], tmp_path: Path
) -> None:
    file = write_report(tmp_path / "report.html", won, [changed_image((300, 200), [(20, 20)], [True])])
    page = Page(file.read_text(encoding="utf-8"))
    assert page.open == []
    assert page.tags.count("img") == 5 + 2  # hmean and four curves, before and after
    assert all(reference.startswith("data:image/") for reference in page.references)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "@import" not in file.read_text(encoding="utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_the_verdict_stands_on_the_page_of_a_run_that_lost(lost: RunResult, tmp_path: Path) -> None:
    text = write_report(tmp_path / "report.html", lost).read_text(encoding="utf-8")
    assert "Training did not beat the tuned baseline" in text
    assert 'class="verdict not-won"' in text
    assert "best (untouched weights)" in text


def test_names_are_shown_not_interpreted(
    won: RunResult, changed_image: Callable[..., ChangedImage], tmp_path: Path
) -> None:
    named = replace(won, config={**won.config, "run": {"name": "<b>发票</b>", "seed": 0}})
    picture = replace(changed_image((300, 200), [(20, 20)], [True]), name="<script>.jpg")
    text = write_report(tmp_path / "报告.html", named, [picture]).read_text(encoding="utf-8")
    assert "&lt;b&gt;发票&lt;/b&gt;" in text
    assert "<script" not in text


def test_a_run_stopped_before_its_first_update_has_a_page(lost: RunResult, tmp_path: Path) -> None:
    stopped = replace(lost, log=[], metrics={**lost.metrics, "evaluations": [], "tuning": []})
    text = write_report(tmp_path / "report.html", stopped, pictures_note="No pictures: reason.").read_text("utf-8")
    assert text.count("No update has been logged.") == 2
    assert "No pictures: reason." in text
    assert "<img" not in text


def test_a_worse_cell_is_marked_and_an_equal_one_is_not(won: RunResult, lost: RunResult, tmp_path: Path) -> None:
    def marks(result: RunResult) -> set[str]:
        return set(re.findall(r'"difference (\w*)"', write_report(tmp_path / "r.html", result).read_text("utf-8")))

    assert marks(won) == {"up"}
    assert marks(lost) == {""}  # the best is the baseline itself
    swapped = {**won.metrics, "best": {**won.metrics["shipped"], "update": 40}}
    assert marks(replace(won, metrics=swapped)) == {"down"}


def test_a_page_that_cannot_be_written_is_an_error_that_names_it(won: RunResult, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone.*report\.html: the report can't be written"):
        write_report(tmp_path / "gone" / "report.html", won)
