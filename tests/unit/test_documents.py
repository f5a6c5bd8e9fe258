"""What the documents tell people to type exists: commands, options, settings, links; both READMEs say the same.

pytest tests/unit/test_documents.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from pipelines import cli, config

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "data" / "README.md"])
COMMANDS = typer.main.get_command(cli.app).commands
SETTINGS = {key for of_task in config.CONFIGS.values() for key in config.known_keys(of_task)}
MAX_PICTURE_BYTES = 300_000


def typed_commands(text: str) -> Iterator[list[str]]:
    """The words of every `wholebatch …` in code, up to a pipe, a comment or the end."""
    code = re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL) + re.findall(r"`(wholebatch [^`\n]+)`", text)
    for found in re.findall(r"(?:^|[$;&] ?)wholebatch ([^\n#|;]+)", "\n".join(code), re.MULTILINE):
        yield found.split()


def unknown_words(words: list[str]) -> list[str]:
    """The command's name, and its options, as far as the command line does not know them."""
    if words[0] == "NAME":  # stands for any command
        return []
    if words[0] not in COMMANDS:
        return [words[0]]
    command = COMMANDS[words[0]]
    if words[0] == "prepare":
        command = command.commands[words[1]] if len(words) > 1 and not words[1].startswith("-") else command
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    return [word for word in words if re.match(r"--?[a-z]", word) and word not in known]


def named_settings(text: str) -> set[str]:
    sections = "|".join(sorted({key.split(".")[0] for key in SETTINGS}))
    return set(re.findall(rf"[`\s]((?:{sections})\.[a-z_]+(?:\.[a-z_]+)*)(?=[`=:\s])", text))


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_command_and_option_exists(file: Path) -> None:
    typed = list(typed_commands(file.read_text(encoding="utf-8")))
    assert {" ".join(words): unknown for words in typed if (unknown := unknown_words(words))} == {}


@pytest.mark.parametrize("name", ["README.md", "README_zh.md", "docs/faq.md", "docs/benchmarks.md"])
def test_every_setting_exists(name: str) -> None:
    named = named_settings((ROOT / name).read_text(encoding="utf-8"))
    assert named - SETTINGS == set()
    assert named or name == "docs/benchmarks.md"


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_leads_somewhere(file: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8"))
    broken = [target for target in targets if not _is_there(file, target)]
    assert broken == []


def _is_there(file: Path, target: str) -> bool:
    if target.startswith(("http://", "https://")):
        return True
    path, _, anchor = target.partition("#")
    linked = (file.parent / path).resolve() if path else file
    if not linked.exists():
        return False
    return not anchor or anchor in {_anchor(line) for line in linked.read_text(encoding="utf-8").splitlines()}


def _anchor(heading: str) -> str:
    """The anchor that is made of a heading: lower case, punctuation gone, blanks to hyphens."""
    return re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower()).replace(" ", "-") if heading[:1] == "#" else ""


def test_both_readmes_give_the_same_commands_files_and_figures() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README_zh.md"))
    assert list(typed_commands(english)) == list(typed_commands(chinese))
    assert re.findall(r"```python.*?```", english, re.DOTALL) == re.findall(r"```python.*?```", chinese, re.DOTALL)
    for pattern in (r"^  ([a-z_]+(?:\.py|\.yml|/))", r"^(#+) ", r"(?<![\d.])\.\d\d\d(?!\d)", r"^\|[^|]+\|"):
        in_english, in_chinese = (re.findall(pattern, text, re.MULTILINE) for text in (english, chinese))
        assert len(in_english) == len(in_chinese) > 0, pattern
        assert in_english == in_chinese or pattern == r"^\|[^|]+\|"  # a table's words differ, its rows do not


def test_files_named_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = text.split("## Files")[1].split("```")[1]
    folder = ROOT
    for line in filter(str.strip, tree.splitlines()):
        names = re.match(r" *((?:[\w/.]+ )*[\w/.]+)(?:  |$)", line)
        assert names, line
        if not line.startswith(" "):
            folder = ROOT / names[1] if (ROOT / names[1]).is_dir() else ROOT
            continue
        for name in names[1].split():
            assert (folder / name).exists(), name


def test_pictures_stay_small() -> None:
    pictures = list((ROOT / "docs" / "images").iterdir())
    assert pictures
    assert {
        picture.name: picture.stat().st_size for picture in pictures if picture.stat().st_size > MAX_PICTURE_BYTES
    } == {}


def test_a_planted_command_option_setting_or_link_is_found() -> None:
    planted = (
        "```\nwholebatch trian -c x.yml\nwholebatch train --config x.yml --epochs 3   # and a comment --never\n```"
    )
    assert [unknown_words(words) for words in typed_commands(planted)] == [["trian"], ["--epochs"]]
    assert named_settings("set `train.micro_batch: 1` or `train.microbatch`") - SETTINGS == {"train.microbatch"}
    assert not _is_there(ROOT / "README.md", "docs/nowhere.md")
    assert not _is_there(ROOT / "README.md", "docs/faq.md#no-such-heading")
    assert _is_there(ROOT / "README.md", "docs/faq.md#weights-did-not-load")
