"""What says which image trains and which validates: `train.txt` and `val.txt` with a name or a pair a line; names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pipelines.dataset.encodings import EncodingError, decode
from pipelines.dataset.label_files import normalised_path
from pipelines.errors import DataError
from pipelines.prep.raw import IMAGE_SUFFIXES
from pipelines.records import Fault

_NAMES = {"val": ("val.txt", "test.txt"), "train": ("train.txt", "trainval.txt")}


@dataclass(frozen=True)
class ListLine:
    """One line of a list.

    Attributes:
        text: without blanks around, forward slashes.
        split: "train" or "val".
        file: the list.
        line: from 1.
    """

    text: str
    split: str
    file: Path
    line: int

    @property
    def key(self) -> str:
        """What it is about: the first name's file name without folder and suffixes."""
        return stem_of(self.text.split()[0])


def read_lists(folder: Path) -> list[ListLine]:
    """Every line of the two lists, those of val first; [] unless both are there.

    Raises:
        DataError: a list can't be read.
    """
    found = {split: [folder / name for name in names if (folder / name).is_file()] for split, names in _NAMES.items()}
    if not all(found.values()):
        return []
    return [line for split, files in found.items() for line in list_lines(files[0], split)]


def list_lines(file: Path, split: str) -> list[ListLine]:
    """The lines of a list that are not blank.

    Raises:
        DataError: it can't be read.
    """
    try:
        lines = decode(file.read_bytes()).lines
    except OSError as error:
        raise DataError(f"{file}: can't be read: {error.strerror or error}") from None
    except EncodingError as error:
        raise DataError(f"{file}:{error.line}: {error}") from None
    texts = ((number, normalised_path(line.strip())) for number, line in enumerate(lines, 1))
    return [ListLine(text, split, file, number) for number, text in texts if text]


def first_listings(lines: Sequence[ListLine]) -> tuple[dict[str, ListLine], list[Fault]]:
    """By key the line that counts, and a fault for each further one: what is in both lists stays in val."""
    first: dict[str, ListLine] = {}
    faults = []
    for line in lines:
        kept = first.setdefault(line.key, line)
        if kept is not line:
            reason = f"{line.key} is already listed for {kept.split}"
            faults.append(Fault(str(line.file), reason, "dropped", line.line))
    return first, faults


def side_of(name: str) -> str:
    """The split that the name of a subset, a file or a folder speaks of; "trainval" speaks of none."""
    name = name.lower()
    is_train, is_val = "train" in name, "val" in name or "test" in name
    return "" if is_train == is_val else "train" if is_train else "val"


def side_of_folders(path: Path, source: Path) -> str:
    """The split that the folders of a file below `source` speak of, the innermost first."""
    parts = path.relative_to(source).parts[:-1] if path.is_relative_to(source) else ()
    return next((side for part in reversed(parts) if (side := side_of(part))), "")


def stem_of(name: str) -> str:
    """File name without folder and suffix; of `a.jpg.xml`, which some tools write, "a"."""
    path = PurePosixPath(normalised_path(name))
    inner = PurePosixPath(path.stem)
    return inner.stem if inner.suffix.lower() in IMAGE_SUFFIXES else path.stem if _is_suffix(path.suffix) else path.name


def _is_suffix(suffix: str) -> bool:
    """Whether it is a file type, not the end of a name such as `plate_1.25`."""
    return suffix.lower() in IMAGE_SUFFIXES or suffix.lower() in (".xml", ".json", ".txt", ".csv")
