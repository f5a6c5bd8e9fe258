"""What files are called in a dataset: names that label lines and every file system take, none of them twice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

# Control characters and line breaks would break label lines, a back-slash is a folder to Windows only, and a lone
# surrogate (bytes of a name that are no UTF-8) can't be written to a label file at all.
_AWKWARD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\\\ud800-\udfff]")
_LONGEST_BYTES = 200  # file systems take 255, and what copies a dataset may append to its names


class TargetNames:
    """Names that were given away; case is ignored so that a dataset can move to a file system that does."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, stem: str, end: str) -> str:
        """A name not yet given away: `stem` without awkward characters, "_" where it is taken, and `end`."""
        stem = _shortened(_AWKWARD.sub("_", stem))
        name = next(name for name in _candidates(stem, end) if name.casefold() not in self._taken)
        self._taken.add(name.casefold())
        return name


def target_names(files: Sequence[tuple[Path, str]]) -> list[str]:
    """Paths in the dataset, "images/...", for (file, suffix to append): folders below the common one are kept."""
    if not files:
        return []
    base = os.path.commonpath([path.parent.resolve() for path, _ in files])
    names = TargetNames()
    inside = [Path(os.path.relpath(path.resolve(), base)).as_posix() + suffix for path, suffix in files]
    return [names.of(*os.path.splitext(f"images/{name}")) for name in inside]


def _candidates(stem: str, end: str) -> Iterator[str]:
    return (f"{stem}{'_' * number}{end}" for number in count())


def _shortened(stem: str) -> str:
    """With its last part cut where it is too long for a file's name."""
    folder, slash, name = stem.rpartition("/")
    if len(name.encode()) <= _LONGEST_BYTES:
        return stem
    return f"{folder}{slash}{name.encode()[:_LONGEST_BYTES].decode(errors='ignore')}"
