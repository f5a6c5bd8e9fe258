"""What the user asked `prepare` for, checked before anything is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.dataset import refuse_existing
from pipelines.dataset.image_files import LARGEST_PIXELS
from pipelines.errors import DataError, UsageError
from pipelines.prep.images import DEFAULT_MAX_PIXELS
from pipelines.prep.label_frame import LABEL_FRAMES, LabelFrame
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
    label_frame: LabelFrame = "auto"
    max_pixels: int = DEFAULT_MAX_PIXELS
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
        label_frame: LabelFrame,
        max_pixels: int,
        executor: Executor | None,
        repair: bool,
        folders: Sequence[Path] = (),
    ) -> Request:
        """The request, if it can be met; `folders` are further image folders that must exist.

        Raises:
            UsageError: bad group rule, share, label frame or pixel budget, `out` not empty.
            DataError: no such source or folder.
        """
        if not 0 < val_share < 1:
            raise UsageError(f"--val must be between 0 and 1 (a share of the images), but got {val_share}")
        group_rule(group_by)
        if label_frame not in LABEL_FRAMES:
            raise UsageError(f"--label-frame must be one of {', '.join(LABEL_FRAMES)}, but got {label_frame!r}")
        if not 0 < max_pixels <= LARGEST_PIXELS:
            largest = LARGEST_PIXELS // 10**6
            raise UsageError(
                f"--max-megapixels must be above 0 and at most {largest} (OpenCV decodes no more),"
                f" but got {max_pixels / 1e6:g}"
            )
        refuse_existing(out)
        if not source.exists():
            raise DataError(f"{source}: no such file or folder")
        for folder in folders:
            if not folder.is_dir():
                raise DataError(f"{folder}: no such image folder")
        workers = workers or os.cpu_count() or 1
        options = (val_share, group_by, seed, dry_run, workers, label_frame, max_pixels, executor, repair)
        return cls(source, format, out, *options)

    def decides_images(self) -> dict[str, Any]:
        """All that facts and copies of images depend on, besides their files: what an earlier run must have shared."""
        source = os.path.abspath(self.source)
        return {"source": source, "max_pixels": self.max_pixels, "versions": imaging_versions()}
