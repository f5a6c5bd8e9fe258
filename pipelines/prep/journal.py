"""What a run of `prepare` has done so far, a line each: a run that is killed goes on from its last whole line."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from pipelines.prep.images import ImageFacts

Stamp = tuple[int, int]
"""Size in bytes and time of last change in ns: a file with another stamp is another file."""

_SYNC_SECONDS = 1.0  # a power cut costs so much work; a kill costs a line


def stamp_of(path: Path) -> Stamp:
    """The stamp of a file, (-1, -1) of one that can't be asked."""
    try:
        status = path.stat()
    except OSError:
        return (-1, -1)
    return (status.st_size, status.st_mtime_ns)


class Journal:
    """Append-only lines: the request first, then images examined and images written.

    Args:
        handle: the journal's file, open for reading and appending in binary.

    Attributes:
        request: of the run that began it, None for a new one.
    """

    def __init__(self, handle: IO[bytes]):
        self.request: Mapping[str, Any] | None = None
        self._handle = handle
        self._facts: dict[str, tuple[Stamp, ImageFacts]] = {}
        self._written: dict[str, tuple[str, str]] = {}
        self._synced = time.monotonic()
        handle.seek(0)
        end = 0
        for line in _whole_lines(handle):
            if not self._is_read(line):
                break
            end += len(line)
        handle.truncate(end)  # what follows a torn line would be lost with it

    @property
    def num_examined(self) -> int:
        """Images whose facts are known from before."""
        return len(self._facts)

    @property
    def num_written(self) -> int:
        """Images written before."""
        return len(self._written)

    def begin(self, request: Mapping[str, Any]) -> None:
        """Forget everything and start a journal of this request."""
        self._facts.clear()
        self._written.clear()
        self._handle.truncate(0)
        self.request = request
        self._append({"request": request})

    def facts(self, path: Path, stamp: Stamp) -> ImageFacts | None:
        """What examining the file told, if it was examined and has not changed since."""
        known = self._facts.get(os.path.abspath(path))
        return known[1] if known is not None and known[0] == stamp else None

    def add_facts(self, path: Path, stamp: Stamp, facts: ImageFacts) -> None:
        """Note a file examined; `stamp` is from before it was read."""
        self._append({"examined": os.path.abspath(path), "stamp": stamp, "facts": asdict(facts)})

    def written(self, name: str, source_sha256: str) -> str:
        """sha256 of an image written under `name` from such a source, or ""."""
        source, sha256 = self._written.get(name, ("", ""))
        return sha256 if source == source_sha256 else ""

    def add_written(self, name: str, source_sha256: str, sha256: str) -> None:
        """Note an image written."""
        self._append({"written": name, "source_sha256": source_sha256, "sha256": sha256})

    def _append(self, entry: Mapping[str, Any]) -> None:
        self._handle.write(json.dumps(entry).encode() + b"\n")
        self._handle.flush()
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            os.fsync(self._handle.fileno())
            self._synced = time.monotonic()

    def _is_read(self, line: bytes) -> bool:
        """Take in one line; False if it is none of ours, such as one cut off by a power cut."""
        try:
            entry = json.loads(line)
            if self.request is None:
                self.request = dict(entry["request"])
            elif "examined" in entry:
                size, changed = entry["stamp"]
                facts = ImageFacts(**{**entry["facts"], "size_hw": tuple(entry["facts"]["size_hw"])})
                self._facts[entry["examined"]] = ((size, changed), facts)
            else:
                self._written[entry["written"]] = (entry["source_sha256"], entry["sha256"])
        except (ValueError, TypeError, KeyError):
            return False
        return True


def _whole_lines(handle: IO[bytes]) -> Iterator[bytes]:
    return (line for line in handle if line.endswith(b"\n"))
