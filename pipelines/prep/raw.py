"""What every reader yields: images with regions as a label file has them, unchecked, and faults on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.dataset.label_files import IGNORED_TRANSCRIPTIONS
from pipelines.records import Fault

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp"})


@dataclass(frozen=True)
class RawRegion:
    """A text region before any check.

    Attributes:
        points: what the label file gives for the polygon, [[x, y], ...] if all is well.
        transcription: what it says.
        is_ignored: marked as an ignore region.
        line: line of the label file, from 1.
        item: which region of that line, or "".
    """

    points: Any
    transcription: str
    is_ignored: bool
    line: int
    item: str = ""


@dataclass(frozen=True)
class RawImage:
    """An image file that exists, with its regions before any check.

    Attributes:
        image: the file.
        name: its path relative to the source where it lies below it, with forward slashes; what group rules see.
        label: label file, for messages.
        line: line of the label file, or None where a file belongs to one image.
        regions: text regions, unchecked.
        split: "train" or "val" where the source says so, else "".
    """

    image: Path
    name: str
    label: str
    line: int | None
    regions: tuple[RawRegion, ...]
    split: str = ""


Reader = Callable[[Path, "Path | None"], Iterator["RawImage | Fault"]]
"""`reader(source, images)`: all images and faults of a source; `images` is where to look for images first.

Raises DataError when the source has not the layout at all.
"""


def is_ignore_mark(transcription: str) -> bool:
    """Whether a transcription says "don't read this": "###" or "*", as PaddleOCR has it."""
    return transcription.strip() in IGNORED_TRANSCRIPTIONS


def name_below(path: Path, source: Path) -> str:
    """`path` relative to `source` if it lies below it, else as it is; forward slashes."""
    folder = source if source.is_dir() else source.parent
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()


def images_by_stem(files: Iterable[Path]) -> dict[str, list[Path]]:
    """The image files among `files` by name without suffix, each list sorted."""
    found: dict[str, list[Path]] = {}
    for path in sorted(files):
        if path.suffix.lower() in IMAGE_SUFFIXES:
            found.setdefault(path.stem, []).append(path)
    return found
