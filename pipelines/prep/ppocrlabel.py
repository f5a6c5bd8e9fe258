"""What PPOCRLabel leaves in an image folder beside `Label.txt`, and which images a person has confirmed in it.

| file | is |
|---|---|
| `Label.txt` | labels, written on export and every few images: confirmed images with at least one region |
| `fileState.txt` | `ABSOLUTE PATH<TAB>1` for every confirmed image, written at once |
| `Cache.cach` | drafts of the automatic labelling: no labels |
| `rec_gt.txt`, `crop_img/` | cut-out words for text recognition: no labels |

Source: PPOCRLabel.py of github.com/PFCCLab/PPOCRLabel (`savePPlabel`, `loadFilestate`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.dataset.encodings import EncodingError, decode
from pipelines.dataset.label_files import normalised_path
from pipelines.records import Fault

STATE_FILE = "fileState.txt"
CROPS = "crop_img"
_LABEL_FILE = "label.txt"
_NOT_LABELS = ("filestate", "rec_gt")


@dataclass(frozen=True)
class Confirmed:
    """The images that a person has confirmed, by their file names: folders are those of another machine.

    Attributes:
        file: `fileState.txt`.
        names: None where nothing says so, and every label counts.
    """

    file: Path
    names: frozenset[str] | None

    def fault(self, path: str) -> str:
        """Why an image of `Label.txt` is left out, or ""."""
        if self.names is None or _tail(path) in self.names:
            return ""
        return f"is not confirmed in {STATE_FILE}: confirm it in PPOCRLabel, or remove {self.file} to take all labels"

    def missing(self, picture: Path) -> str:
        """Why a confirmed image without a label line is left out, or ""."""
        if self.names is None or picture.name not in self.names:
            return ""
        return (
            f"is confirmed in {STATE_FILE}, but has no label line: left out; export the labels in PPOCRLabel, "
            "or, if it has no text, add the line `PATH<TAB>[]`"
        )


def is_label_file(path: Path) -> bool:
    """Whether a text file may hold labels, going by its name."""
    return not path.stem.lower().startswith(_NOT_LABELS)


def confirmed(label: Path, paths: Sequence[str]) -> Confirmed:
    """What `fileState.txt` beside a `Label.txt` says about its image paths."""
    file = label.with_name(STATE_FILE)
    names = _confirmed_names(file) if label.name.lower() == _LABEL_FILE else frozenset()
    # Opening a folder in PPOCRLabel creates the file; one that knows none of the images says nothing about them.
    return Confirmed(file, names if any(_tail(path) in names for path in paths) else None)


def unknown_state(state: Confirmed, label: Path) -> Iterator[Fault]:
    """A warning where `fileState.txt` is there and knows none of the images."""
    if state.names is None and label.name.lower() == _LABEL_FILE and state.file.is_file():
        yield Fault(str(state.file), f"confirms none of the images of {label.name}: all its labels are used", "warning")


def _confirmed_names(file: Path) -> frozenset[str]:
    try:
        lines = decode(file.read_bytes()).lines
    except (OSError, EncodingError):
        return frozenset()
    return frozenset(_tail(line.partition("\t")[0]) for line in lines if line.strip())


def _tail(path: str) -> str:
    return normalised_path(path.strip()).rsplit("/", 1)[-1]
