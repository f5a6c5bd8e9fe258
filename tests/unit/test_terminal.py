"""What is printed is what was said, and bars stay out of files. Run: pytest tests/unit/test_terminal.py"""

from __future__ import annotations

import io

from rich.console import Console

from pipelines.terminal import Terminal


def printed(*, is_terminal: bool = False) -> tuple[Terminal, io.StringIO]:
    file = io.StringIO()
    options = {"highlight": False, "emoji": False, "soft_wrap": True, "force_terminal": is_terminal, "width": 200}
    return Terminal(Console(file=file, **options)), file


def test_notes_and_table_cells_are_taken_literally():
    # as Terminal itself sets up its console, but into a file
    terminal, file = printed()
    terminal.note("134.csv:100: [b]dropped[/b] :smile:")
    terminal.table("[i]title[/i] :100:", ("[u]column[/u]",), [["[red]cell[/red] :100:"]])
    for said in ("134.csv:100: [b]dropped[/b] :smile:", "[i]title[/i] :100:", "[u]column[/u]", "[red]cell[/red] :100:"):
        assert said in file.getvalue()


def test_the_console_of_a_terminal_is_set_up_that_way(capsys):
    terminal = Terminal()
    terminal.note("134.csv:100: [b]x")
    terminal.warn("[b]y :100:")
    assert capsys.readouterr().out == "134.csv:100: [b]x\nwarning: [b]y :100:\n"


def test_a_long_note_stays_one_line_in_a_file():
    terminal, file = printed()
    terminal.note("x " * 500)
    assert file.getvalue().count("\n") == 1


def test_a_table_in_a_file_has_room_for_its_numbers(capsys):
    Terminal().table("Gradient", ("a",) * 6, [["0.123456789012"] * 6])
    assert "…" not in capsys.readouterr().out


def test_progress_is_shown_on_a_terminal_and_never_in_a_file():
    for is_terminal in (True, False):
        terminal, file = printed(is_terminal=is_terminal)
        with terminal.progress(2, "training") as bar:
            bar.advance("loss 1.5")
            bar.advance("loss 1.4")
        assert ("training" in file.getvalue()) is is_terminal
