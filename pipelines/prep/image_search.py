"""Where a label file's image is: as written, beside, in `images/`, one folder up, else the one file of that name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from pipelines.dataset.image_files import is_there
from pipelines.errors import DataError
from pipelines.prep.raw import IMAGE_SUFFIXES, Unlabelled


class AmbiguousImageError(DataError):
    """A label file may mean any of several images; none of them may pass as OK."""

    def __init__(self, message: str, candidates: Sequence[Path]):
        super().__init__(message)
        self.unlabelled = [Unlabelled(path, message, may_be_ok=False) for path in candidates]


class ImageSearch:
    """Image files at and below `folder`, listed once and only if needed."""

    def __init__(self, folder: Path):
        self.folder = folder

    def find(self, names: Sequence[str], label: Path) -> Path:
        """The file that a label file means by one of `names` (forward slashes), of which the first is the likeliest.

        Raises:
            AmbiguousImageError: several files of which any may be meant.
            DataError: none.
        """
        roots = [self.folder, label.parent, label.parent.parent]
        roots = list(dict.fromkeys([*roots, *(root / "images" for root in roots)]))
        for name in names:
            for root in roots:
                if is_there(root / name):
                    return root / name
        for name in names:
            tail = name.rsplit("/", 1)[-1]
            alike = self._by_name.get(tail, [])
            exact = [path for path in alike if path.as_posix().endswith(f"/{name}")]
            if len(exact or alike) == 1:
                return (exact or alike)[0]
            if alike:
                shown = f"{alike[0]}, {alike[1]}, ..."
                raise AmbiguousImageError(f"{len(alike)} images are called {tail}: {shown}; say which folder", alike)
        raise DataError(f"image not found: {names[0]} at or below {self.folder}; say where it is with --images DIR")

    def files(self) -> list[Path]:
        """All image files at and below the folder, sorted."""
        return sorted(path for paths in self._by_name.values() for path in paths)

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = {}
        for path in sorted(self.folder.rglob("*")):
            if path.suffix.lower() in IMAGE_SUFFIXES and is_there(path):
                found.setdefault(path.name, []).append(path)
        return found
