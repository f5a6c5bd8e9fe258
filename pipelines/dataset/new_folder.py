"""A new dataset folder: there as a whole, or not at all, and never in place of another."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.errors import DataError, UsageError


def refuse_existing(out: Path) -> None:
    """Raise UsageError if `out` is a file or holds anything: a dataset is never overwritten.

    Nor may it be the folder one is in, which would be gone when the dataset is moved into its place.
    """
    if os.path.abspath(out) == os.getcwd():
        raise UsageError(f"--out {out} is the folder you are in; name a new folder, such as {out / 'dataset'}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} exists already and is not empty; choose another --out or remove it yourself")


@contextmanager
def new_dataset_folder(out: Path) -> Iterator[Path]:
    """Yield a folder beside `out` to fill; it becomes `out` when the block ends well, and goes if it does not.

    Raises:
        UsageError: `out` is not empty.
        DataError: the disk refuses.
    """
    refuse_existing(out)
    partial = out.parent / f".{out.name}.{os.getpid()}.partial"
    try:
        partial.mkdir(parents=True)
        yield partial
        if out.exists():
            out.rmdir()
        partial.rename(out)
    except OSError as error:
        raise DataError(f"{out}: can't be written: {error.strerror or error}; nothing was left there") from None
    finally:
        # after the rename there is nothing to remove; after an interruption there is
        shutil.rmtree(partial, ignore_errors=True)
