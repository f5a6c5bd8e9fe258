"""What the user asked `prepare` for, checked before anything is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from pipelines.dataset import refuse_existing
from pipelines.errors import DataError, UsageError
from pipelines.prep.images import DEFAULT_MAX_PIXELS, refuse_pixel_budget
from pipelines.prep.label_frame import LABEL_FRAMES, LabelFrame
from pipelines.prep.split import group_rule
from pipelines.prep.versions import imaging_versions


class PrepareOptions(TypedDict, total=False):
    """What `prepare_text` and `prepare_defect` may be told besides source, format and folder.

    val_share: share of images that validate, between 0 and 1.
    group_by: see `split.group_rule`; None: the source's own groups where it has some, else every image its own.
    seed: of the split.
    dry_run: report only.
    workers: threads that decode; the result does not depend on it. None: one a core. With `executor`: how many jobs
        that does at once.
    executor: where to decode and write instead (processes, a cluster that sees the same files); it stays open.
    repair: False: refuse where labels would have to be repaired, and list what.
    label_frame: what labels of pictures with an EXIF turn were drawn on: the "displayed" picture, the "raw" pixels of
        the file, or "auto": what sizes and boxes tell, see `label_frame`.
    max_pixels: larger pictures are left out and told, from their headers.
    """

    val_share: float
    group_by: str | None
    seed: int
    dry_run: bool
    workers: int | None
    executor: Executor | None
    repair: bool
    label_frame: LabelFrame
    max_pixels: int


@dataclass(frozen=True)
class Request:
    """What the user asked for; see `PrepareOptions`."""

    source: Path
    format: str
    out: Path
    val_share: float = 0.2
    group_by: str | None = None
    seed: int = 0
    dry_run: bool = False
    workers: int | None = None
    executor: Executor | None = None
    repair: bool = True
    label_frame: LabelFrame = "auto"
    max_pixels: int = DEFAULT_MAX_PIXELS

    def __post_init__(self) -> None:
        """Raises UsageError on a bad group rule, share, label frame or pixel budget."""
        if not 0 < self.val_share < 1:
            raise UsageError(f"--val must be between 0 and 1 (a share of the images), but got {self.val_share}")
        group_rule(self.group_by)
        if self.label_frame not in LABEL_FRAMES:
            raise UsageError(f"--label-frame must be one of {', '.join(LABEL_FRAMES)}, but got {self.label_frame!r}")
        refuse_pixel_budget(self.max_pixels)

    @property
    def num_workers(self) -> int:
        return self.workers or os.cpu_count() or 1

    def refuse_unless_possible(self, folders: Sequence[Path]) -> None:
        """Raise unless there is a source, room for the dataset, and every further image folder.

        Raises:
            UsageError: `out` is not empty.
            DataError: no such source or folder.
        """
        refuse_existing(self.out)
        if not self.source.exists():
            raise DataError(f"{self.source}: no such file or folder")
        for folder in folders:
            if not folder.is_dir():
                raise DataError(f"{folder}: no such image folder")

    def decides_images(self) -> dict[str, Any]:
        """All that facts and copies of images depend on, besides their files: what an earlier run must have shared."""
        source = os.path.abspath(self.source)
        return {"source": source, "max_pixels": self.max_pixels, "versions": imaging_versions()}
