"""What the user asked `prepare` for, checked before anything is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.dataset import refuse_existing
from pipelines.errors import DataError, UsageError
from pipelines.prep.split import group_rule
from pipelines.prep.versions import imaging_versions


@dataclass(frozen=True)
class Request:
    """What the user asked for; see `prepare_text` and `prepare_defect`."""

    source: Path
    format: str
    out: Path
    val_share: float
    group_by: str | None
    seed: int
    dry_run: bool
    workers: int
    executor: Executor | None = None
    repair: bool = True

    @classmethod
    def checked(
        cls,
        source: Path,
        format: str,
        out: Path,
        *,
        val_share: float,
        group_by: str | None,
        seed: int,
        dry_run: bool,
        workers: int | None,
        executor: Executor | None,
        repair: bool,
        folders: Sequence[Path] = (),
    ) -> Request:
        """The request, if it can be met; `folders` are further image folders that must exist.

        Raises:
            UsageError: bad group rule or share, `out` not empty.
            DataError: no such source or folder.
        """
        if not 0 < val_share < 1:
            raise UsageError(f"--val must be between 0 and 1 (a share of the images), but got {val_share}")
        group_rule(group_by)
        refuse_existing(out)
        if not source.exists():
            raise DataError(f"{source}: no such file or folder")
        for folder in folders:
            if not folder.is_dir():
                raise DataError(f"{folder}: no such image folder")
        workers = workers or os.cpu_count() or 1
        options = (val_share, group_by, seed, dry_run, workers, executor, repair)
        return cls(source, format, out, *options)

    def decides_images(self) -> dict[str, Any]:
        """All that facts and copies of images depend on, besides their files: what an earlier run must have shared."""
        source = os.path.abspath(self.source)
        return {"source": source, "versions": imaging_versions()}
