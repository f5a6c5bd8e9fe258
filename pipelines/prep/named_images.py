"""Formats whose label files name the images: which were found, which not, and which nothing names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from pipelines.dataset.label_files import normalised_path
from pipelines.errors import DataError
from pipelines.prep.image_search import AmbiguousImageError, ImageSearch
from pipelines.prep.raw import RawImage, Region, Unlabelled, name_below
from pipelines.records import Fault


@dataclass(frozen=True)
class NamedImage(Generic[Region]):
    """An image as a label file names it.

    Attributes:
        names: what its file may be called, the likeliest first.
        item: which entry of the label file.
        regions: as in `RawImage`; so are `split`, `said_hw` and `fault`.
    """

    names: Sequence[str]
    item: str
    regions: tuple[Region, ...]
    split: str = ""
    said_hw: tuple[int, int] | None = None
    fault: str = ""


class NamedImages:
    """Finds images by their names at and below a folder, and remembers which it has found."""

    def __init__(self, source: Path, images: Path | None):
        self._source = source
        self._search = ImageSearch(images or (source.parent if source.is_file() else source))
        self._used: set[Path] = set()
        self._tried: list[str] = []

    def files(self) -> list[Path]:
        """All image files at and below the folder, sorted."""
        return self._search.files()

    def located(self, entry: NamedImage[Region], label: Path) -> Iterator[RawImage[Region] | Unlabelled | Fault]:
        """The image of an entry, or why it has none."""
        self._tried.append(entry.names[0])
        try:
            # As written first: archives made on Windows leave files whose very names hold back-slashes.
            names = [written for name in entry.names for written in (name, normalised_path(name))]
            path = self._search.find(names, label)
        except DataError as error:
            yield Fault(str(label), str(error), "dropped", item=entry.item)
            for candidate in error.unlabelled if isinstance(error, AmbiguousImageError) else ():
                self._used.add(candidate.image)
                yield candidate
            return
        self._used.add(path)
        yield RawImage(
            path,
            name_below(path, self._source),
            str(label),
            None,
            entry.regions,
            entry.split,
            said_hw=entry.said_hw,
            fault=entry.fault,
        )

    def unlisted(self, labels: Sequence[Path]) -> Iterator[Unlabelled]:
        """The image files that no entry of the label files names.

        Raises:
            DataError: none of the entries has an image.
        """
        if not self._used:
            first = f"; first tried: {self._tried[0]}" if self._tried else ""
            found = f"0 of {len(self._tried)} images found under {self._search.folder}{first}"
            raise DataError(f"{found}; say where with --images DIR")
        listing = ", ".join(label.name for label in labels[:3]) + (", ..." if len(labels) > 3 else "")
        for path in self._search.files():
            if path not in self._used:
                yield Unlabelled(path, f"no entry in {listing}")
