"""A glance at a source: a few names of each kind in each folder and how those files begin, however much there is."""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pipelines.prep.raw import IMAGE_SUFFIXES

_NAMES_EACH = 20
"""Of one suffix in one folder; a folder of a hundred thousand files is listed, but not kept."""
_MOST_FOLDERS = 200
_DEEPEST = 5
_FILES_READ = 12
_START_BYTES = 65536
_END_BYTES = 4096
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[\[\]{}]')


@dataclass(frozen=True)
class Start:
    """How a file begins, and ends.

    Attributes:
        path: the file.
        text: its first 64 KiB; what is no UTF-8 is replaced.
        end: its last 4 KiB.
    """

    path: Path
    text: str
    end: str

    @cached_property
    def keys(self) -> frozenset[tuple[int, str]]:
        """(depth, key) of a JSON's beginning; the outermost object's keys have depth 1, a list around it adds one."""
        found, depth = set(), 0
        for token in _TOKEN.finditer(self.text):
            if token[0] in ("[", "{"):
                depth += 1
            elif token[0] in ("]", "}"):
                depth -= 1
            elif token[2]:
                found.add((depth, token[1]))
        return frozenset(found)

    def has_keys(self, depth: int, *names: str) -> bool:
        return all((depth, name) in self.keys for name in names)

    @cached_property
    def root(self) -> str:
        """Name of an XML's outermost element without its namespace, "" if none is seen."""
        found = re.search(r"<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)[\s>/]", re.sub(r"(?s)<!--.*?-->", "", self.text))
        return found[1] if found else ""

    @property
    def lines(self) -> list[str]:
        """Lines that are not blank; the last one may be cut off."""
        return [line for line in self.text.removeprefix("\ufeff").splitlines() if line.strip()]


@dataclass(frozen=True)
class Glance:
    """What can be seen of a source at once.

    Attributes:
        source: file or folder.
        files: at most 20 of each suffix in each folder, down to five folders deep, sorted.
        folders: below the source, relative, with forward slashes.
    """

    source: Path
    files: tuple[Path, ...]
    folders: frozenset[str]
    _starts: dict[str, tuple[Start, ...]] = field(default_factory=dict, repr=False)

    def starts(self, *suffixes: str) -> tuple[Start, ...]:
        """How up to twelve files of these suffixes begin, few of each folder before many of one."""
        key = " ".join(suffixes)
        if key not in self._starts:
            wanted = [path for path in self.files if path.suffix.lower() in suffixes]
            self._starts[key] = tuple(_start(path) for path in _spread(wanted)[:_FILES_READ])
        return self._starts[key]

    @property
    def images(self) -> list[Path]:
        return [path for path in self.files if path.suffix.lower() in IMAGE_SUFFIXES]


def glance(source: Path) -> Glance:
    """Look at a file, or at a folder and what lies below it."""
    if source.is_file():
        return Glance(source, (source,), frozenset())
    files: list[Path] = []
    folders: list[Path] = []
    for folder, names, below in _walk(source):
        files += [folder / name for name in names]
        folders += below
    inside = frozenset(folder.relative_to(source).as_posix() for folder in folders)
    return Glance(source, tuple(sorted(files)), inside)


def _walk(source: Path) -> Iterator[tuple[Path, list[str], list[Path]]]:
    """(folder, some of its files, its folders), the upper folders first."""
    waiting = [(source, 0)]
    for number, (folder, depth) in enumerate(waiting):
        if number == _MOST_FOLDERS:
            return
        names, below = _listed(folder)
        if depth < _DEEPEST:
            waiting += [(each, depth + 1) for each in below[:_MOST_FOLDERS]]
        yield folder, names, below


def _listed(folder: Path) -> tuple[list[str], list[Path]]:
    """The first names of each suffix in a folder, and its folders, both sorted."""
    kept: dict[str, list[str]] = {}
    folders: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(folder / entry.name)
                    continue
                names = kept.setdefault(os.path.splitext(entry.name)[1].lower(), [])
                bisect.insort(names, entry.name)
                del names[_NAMES_EACH:]
    except OSError:
        return [], []  # a folder that may not be read has nothing to tell
    return [name for names in kept.values() for name in names], sorted(folders)


def _spread(files: list[Path]) -> list[Path]:
    """The first file of every folder, then the second of every folder, ..."""
    seen: dict[Path, int] = {}
    ranked = []
    for path in files:
        seen[path.parent] = seen.get(path.parent, 0) + 1
        ranked.append((seen[path.parent], path))
    return [path for _, path in sorted(ranked)]


def _start(path: Path) -> Start:
    try:
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
            end = file.read()
    except OSError:
        return Start(path, "", "")
    return Start(path, _decoded(start), _decoded(end))


def _decoded(content: bytes) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return content.decode(encoding, errors="replace")
