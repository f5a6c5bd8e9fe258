"""What lies beside YOLO's label files: `data.yaml`, lists of names and lists of images, as different tools leave them.

| file | says |
|---|---|
| `data.yaml`: `names`, `nc`, `kpt_shape` | class names by number, how many, that key points follow each box |
| `data.yaml`: `path`, `train`, `val`, `test` | folders of images, or text files that list them: the split |
| `classes.txt`, `obj.names`, `labels.txt` | class names by line |
| `train.txt`, `val.txt` | the split, where `data.yaml` has none |

Source: docs.ultralytics.com/datasets/detect; Roboflow writes `../train/images` where `train/images` is meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipelines.dataset.encodings import decode
from pipelines.dataset.label_files import normalised_path
from pipelines.errors import DataError
from pipelines.prep.split_lists import ListLine, list_lines, read_lists, side_of_folders
from pipelines.records import Fault

NAME_LISTS = ("classes.txt", "obj.names", "labels.txt")
_SIDES = {"val": "val", "valid": "val", "test": "val", "train": "train"}
"""Keys of data.yaml, those of val first: what is listed twice stays in val."""


@dataclass(frozen=True)
class YoloData:
    """What a source says of all its label files.

    Attributes:
        names: by class number; {} where nothing names them.
        has_key_points: numbers after the first four are key points, no polygon.
        split: gives the side of an image.
        faults: what could not be used.
    """

    names: Mapping[int, str]
    has_key_points: bool
    split: YoloSplit
    faults: tuple[Fault, ...]


class YoloSplit:
    """Which images train and which validate: by the folders and lists that say so, else by what folders are called."""

    def __init__(self, folders: Mapping[Path, str], lines: Sequence[ListLine], source: Path):
        self._source = source
        self._folders = folders
        self.lists = frozenset(line.file for line in lines)
        self._by_tail: dict[str, str] = {}
        for line in lines:
            for tail in _tails(line.text):
                # Two folders may hold files of one name: such a tail says nothing.
                self._by_tail[tail] = line.split if self._by_tail.get(tail, line.split) == line.split else ""
        self.is_given = bool(folders or lines)

    def side(self, picture: Path, label: Path) -> str:
        """The split of an image; "" where nothing says which."""
        if not self.is_given:
            return side_of_folders(picture, self._source) or side_of_folders(label, self._source)
        listed = (self._by_tail[tail] for tail in _tails(picture.as_posix()) if tail in self._by_tail)
        inside = (self._folders[folder] for folder in picture.resolve().parents if folder in self._folders)
        return next(listed, "") or next(inside, "")


def read_yolo_data(source: Path) -> YoloData:
    """What the files beside the labels say.

    Raises:
        DataError: a list of images can't be read.
    """
    file, content, faults = _data_file(source)
    names, told = _names(source, file, content)
    folders, lines, missing = _sides(file, content)
    if not {"train", "val"} <= {*folders.values(), *(line.split for line in lines)}:
        folders, lines = {}, read_lists(source)
    lines, twice = _listed_once(lines)
    split = YoloSplit(folders, lines, source)
    return YoloData(names, "kpt_shape" in content, split, (*faults, *told, *missing, *twice))


def _data_file(source: Path) -> tuple[Path, dict[Any, Any], list[Fault]]:
    """The first YAML that speaks of classes or images, and its content; {} if there is none."""
    files = sorted((*source.glob("*.yaml"), *source.glob("*.yml")), key=lambda path: (path.stem != "data", path))
    faults = []
    for path in files:
        try:
            content = yaml.safe_load(decode(path.read_bytes()).text)
        except (OSError, yaml.YAMLError, ValueError, RecursionError, DataError) as error:
            faults.append(Fault(str(path), f"can't be read: {' '.join(str(error).split())[:120]}", "warning"))
            continue
        if isinstance(content, dict) and ("names" in content or "train" in content):
            return path, content, faults
    return source, {}, faults


def _names(source: Path, file: Path, content: Mapping[Any, Any]) -> tuple[dict[int, str], list[Fault]]:
    """Names by class number, and a warning where the numbers themselves must do."""
    names = _names_of(content.get("names"))
    if names:
        count = content.get("nc", len(names))
        reason = f"nc says {count!r} classes, but names has {len(names)}: names counts"
        return names, [] if count == len(names) else [Fault(str(file), reason, "warning")]
    for path in (folder / name for folder in (source, source / "labels") for name in NAME_LISTS):
        if path.is_file():
            try:
                lines = decode(path.read_bytes()).lines
            except (OSError, DataError) as error:
                return {}, [Fault(str(path), f"can't be read: {error}: the numbers are the names", "warning")]
            # A blank line names nothing, but counts.
            return {number: line.strip() for number, line in enumerate(lines) if line.strip()}, []
    reason = "no data.yaml with names, classes.txt or obj.names: the classes are called by their numbers"
    return {}, [Fault(str(source), reason, "warning")]


def _names_of(names: object) -> dict[int, str]:
    """Names of a list or of a mapping from numbers; {} where any of them is no plain word."""
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict):
        return {}
    # str() of nested lists that refer to each other would not end.
    is_plain = all(isinstance(key, int) and isinstance(name, str | int | float) for key, name in names.items())
    return {key: str(names[key]) for key in sorted(names)} if is_plain else {}


def _sides(file: Path, content: Mapping[Any, Any]) -> tuple[dict[Path, str], list[ListLine], list[Fault]]:
    """Folders and listed images of data.yaml by their split, and what of it is not there."""
    folders: dict[Path, str] = {}
    lines: list[ListLine] = []
    faults = []
    for key, entry in [(side, entry) for side in _SIDES for entry in _entries(content.get(side))]:
        place = next((place for place in _places(file, content, entry) if os.path.exists(place)), None)
        if place is None:
            faults.append(Fault(str(file), f"{key}: {entry}: no such folder or file", "warning"))
        elif place.is_file():
            lines += list_lines(place, _SIDES[key])
        elif folders.setdefault(place.resolve(), _SIDES[key]) != _SIDES[key]:
            faults.append(Fault(str(file), f"{key}: {entry} is already listed for val", "warning"))
    return folders, lines, faults


def _entries(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [entry for entry in values if isinstance(entry, str) and entry.strip()]


def _places(file: Path, content: Mapping[Any, Any], entry: str) -> Iterator[Path]:
    """Where an entry of data.yaml may be, the likeliest first."""
    root = content.get("path")
    inside = normalised_path(entry.strip())
    for base in (*([file.parent / normalised_path(root)] if isinstance(root, str) else []), file.parent):
        yield base / inside
        yield base / inside.lstrip("./")


def _listed_once(lines: Sequence[ListLine]) -> tuple[list[ListLine], list[Fault]]:
    """The first line of every image, and a fault for each further one."""
    first: dict[str, ListLine] = {}
    faults = []
    for line in lines:
        kept = first.setdefault(line.text, line)
        if kept is not line and kept.split != line.split:
            faults.append(
                Fault(str(line.file), f"{line.text} is already listed for {kept.split}", "warning", line.line)
            )
    return list(first.values()), faults


def _tails(path: str) -> Iterator[str]:
    """All ends of a path, the longest first: lists may come from another machine."""
    parts = path.strip("/").split("/")
    return ("/".join(parts[start:]) for start in range(len(parts)))
