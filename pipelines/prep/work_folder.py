"""`OUT.partial`: where a dataset grows until it is whole, and where a run that was stopped goes on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pipelines.dataset import refuse_existing
from pipelines.errors import DataError, UsageError, WholebatchError
from pipelines.prep.executors import WorkerLost
from pipelines.prep.journal import Journal

if sys.platform != "win32":
    import fcntl

_JOURNAL = "journal.jsonl"
_DATASET = "dataset"


@dataclass(frozen=True)
class WorkFolder:
    """A dataset on its way.

    Attributes:
        dataset: the folder to fill; it becomes OUT.
        journal: what was done before, and is done now.
        told: what the user should know about an earlier run, or "".
    """

    dataset: Path
    journal: Journal
    told: str

    def keep_only(self, names: Container[str]) -> None:
        """Remove what an earlier run left in the dataset and this one does not want: all but `names`."""
        for path in sorted(self.dataset.rglob("*"), reverse=True):
            if path.is_dir():
                if not any(path.iterdir()):
                    path.rmdir()
            elif path.relative_to(self.dataset).as_posix() not in names:
                path.unlink()


def work_folder_of(out: Path) -> Path:
    """The work folder beside `out`."""
    out = Path(os.path.abspath(out))
    return out.with_name(f"{out.name}.partial")


@contextmanager
def work_folder(out: Path, request: Mapping[str, Any]) -> Iterator[WorkFolder]:
    """Yield a work folder that becomes `out` when the block ends well.

    It goes when the block refuses what was asked, and stays when the block is stopped: by Ctrl-C, a kill, a full disk
    or a dead worker. The same request goes on there; another starts anew.

    Args:
        out: the new dataset folder.
        request: everything that decides what is written.

    Raises:
        UsageError: `out` is not empty, another run is at work, or the work folder holds something else.
        DataError: the disk refuses.
    """
    refuse_existing(out)
    folder = work_folder_of(out)
    try:
        _refuse_strange(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / _JOURNAL).open("a+b") as handle:
            _lock(handle, folder)
            try:
                work = _opened(folder, handle, request)
                yield work
            except WorkerLost:
                raise
            except WholebatchError:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            if out.exists():
                out.rmdir()
            work.dataset.rename(out)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise DataError(
            f"{out}: can't be written: {error.strerror or error}; what was done is kept in {folder}, and the same"
            " command goes on from there"
        ) from None


def _refuse_strange(folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    if not names <= {_JOURNAL, _DATASET} or names == {_DATASET}:
        raise UsageError(f"{folder} is needed for work in progress, but holds something else; move it, or choose --out")


def _lock(handle: IO[bytes], folder: Path) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel drops it with the process, however that ends
    except BlockingIOError:
        raise UsageError(f"another prepare is at work in {folder}; wait for it, or choose another --out") from None


def _opened(folder: Path, handle: IO[bytes], request: Mapping[str, Any]) -> WorkFolder:
    journal = Journal(handle)
    told = ""
    if journal.request == request:
        told = f"going on from {folder}: {journal.num_examined} images examined, {journal.num_written} written before"
    else:
        if journal.request is not None:
            told = f"{folder} is of another request ({_differences(journal.request, request)}): started anew"
        shutil.rmtree(folder / _DATASET, ignore_errors=True)
        journal.begin(request)
    (folder / _DATASET).mkdir(exist_ok=True)
    return WorkFolder(folder / _DATASET, journal, told)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return ", ".join(f"{name} was {before.get(name)!r}, is {now.get(name)!r}" for name in names)
