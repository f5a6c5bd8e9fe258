"""Formats with a label file an image: which belongs to which, where both names and what the file says may differ.

A label file belongs to the image of its own name; if there is none, to the image that it names. Where both are
there and are two pictures, nobody can know which one was labelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Generic

from pipelines.dataset.label_files import normalised_path
from pipelines.errors import DataError
from pipelines.prep.image_search import AmbiguousImageError
from pipelines.prep.raw import (
    ClassList,
    RawImage,
    Region,
    Unlabelled,
    images_by_stem,
    name_below,
)
from pipelines.prep.split_lists import ListLine, first_listings, read_lists, stem_of
from pipelines.records import Fault

_CLASS_LISTS = ("label_list.txt", "labels.txt")


@dataclass(frozen=True)
class LabelFile(Generic[Region]):
    """What one label file says.

    Attributes:
        image_name: the image that it names, "" if none; only the last part of a path counts.
        regions: its objects; none is an image without text, or an OK image.
        said_hw: (height, width) that it gives for the image, or None.
    """

    image_name: str
    regions: tuple[Region, ...]
    said_hw: tuple[int, int] | None


Parse = Callable[[Path], "LabelFile[Region] | None"]
"""Reads a label file; None for a file of another kind, DataError (without the file's name) for a broken one."""


def paired_images(
    source: Path, images: Path | None, suffix: str, parse: Parse[Region], list_folders: Sequence[str] = (".",)
) -> Iterator[RawImage[Region] | ClassList | Unlabelled | Fault]:
    """Images of every label file (`*suffix`) below `source`, looked for below `images`, else below `source`.

    The first of `list_folders` below `source` with lists of images gives the split.

    Raises:
        DataError: no label file, or none of their images.
    """
    labels = sorted(path for path in source.rglob(f"*{suffix}") if path.is_file())
    if not labels:
        raise DataError(f"{source}: no label files; expected NAME{suffix} for every image NAME.jpg")
    yield from _class_list(source)
    folder = images or source
    pictures = images_by_stem(folder.rglob("*"))
    listed, faults = first_listings(next(filter(None, (read_lists(source / name) for name in list_folders)), []))
    yield from faults
    stems = {stem_of(label.name) for label in labels}
    used: set[Path] = set()
    for label in labels:
        for item in _labelled(label, source, parse, pictures, stems):
            if isinstance(item, RawImage | Unlabelled):
                used.add(item.image)
            yield _listed(item, label, listed) if isinstance(item, RawImage) else item
    if not used:
        raise DataError(f"0 of {len(labels)} label files have an image below {folder}; first tried: {labels[0]}")
    for line in listed.values():
        if line.key not in stems:
            yield Fault(str(line.file), f"no label file {line.key}{suffix} below {source}", "dropped", line.line)
    for path in sorted(path for paths in pictures.values() for path in paths if path not in used):
        yield Unlabelled(path, f"no label file {path.stem}{suffix}")


def _class_list(source: Path) -> Iterator[ClassList | Fault]:
    for path in (source / name for name in _CLASS_LISTS):
        if path.is_file():
            try:
                lines = path.read_text("utf-8-sig", errors="replace").splitlines()
            except OSError as error:
                yield Fault(str(path), f"can't be read: {error.strerror or error}", "warning")
                return
            # LabelMe's own list starts with __ignore__ and _background_.
            yield ClassList(tuple(line.strip() for line in lines if line.strip() and line.strip() != "_background_"))
            return


def _labelled(
    label: Path, source: Path, parse: Parse[Region], pictures: Mapping[str, list[Path]], label_stems: set[str]
) -> Iterator[RawImage[Region] | Unlabelled | Fault]:
    """The image of a label file, with a fault of its own where the file is broken, so that it can't pass as OK."""
    broken = ""
    try:
        parsed = parse(label)
    except DataError as error:
        parsed, broken = LabelFile("", (), None), str(error)
    if parsed is None:
        return
    try:
        path, note = _image_of(label, parsed.image_name, pictures, label_stems)
    except DataError as error:
        yield Fault(str(label), broken or str(error), "dropped")
        yield from error.unlabelled if isinstance(error, AmbiguousImageError) else ()
        return
    if note:
        yield Fault(str(label), note, "repaired")
    name = name_below(path, source)
    yield RawImage(path, name, str(label), None, parsed.regions, said_hw=parsed.said_hw, fault=broken)


def _listed(raw: RawImage[Region], label: Path, listed: Mapping[str, ListLine]) -> RawImage[Region]:
    """With the split of the lists; what is in neither is left out."""
    line = listed.get(stem_of(label.name)) or listed.get(stem_of(raw.image.name))
    if line is not None:
        return replace(raw, split=line.split)
    return replace(raw, fault=raw.fault or "is in neither list (train, val): left out") if listed else raw


def _image_of(
    label: Path, named_path: str, pictures: Mapping[str, list[Path]], label_stems: set[str]
) -> tuple[Path, str]:
    """The image of a label file, and what the user should know about how it was found.

    Raises:
        AmbiguousImageError: more than one may be meant.
        DataError: there is none.
    """
    own, named = stem_of(label.name), PurePosixPath(normalised_path(named_path)).name
    mine = _nearest(pictures.get(own, []), label, named)
    if len(mine) > 1:
        shown = f"{mine[0]}, {mine[1]}, ..."
        raise AmbiguousImageError(f"{len(mine)} images are called {own}: {shown}; choose one with --images DIR", mine)
    is_other = bool(named) and stem_of(named) != own
    # A picture with a label file of its own is not meant here.
    other = _nearest(pictures.get(stem_of(named), []), label, named) if stem_of(named) not in label_stems else []
    if mine and not is_other:
        return mine[0], ""
    if mine and not other:
        return mine[0], f"names another file, {named}: {mine[0].name} of its own name is taken"
    if mine or len(other) > 1:
        candidates = [*mine, *other]
        reason = f"may mean {candidates[0]} or {candidates[1]} (it names {named}): which one was labelled?"
        raise AmbiguousImageError(reason, candidates)
    if other:
        return other[0], f"there is no image {own}: {other[0].name}, which it names, is taken"
    raise DataError(f"image not found: {own}.jpg" + (f" or {named}" if is_other else ""))


def _nearest(candidates: list[Path], label: Path, named: str) -> list[Path]:
    """Of images with the right stem those in the label's folder, of these those of the very name it gives; else all."""
    beside = [path for path in candidates if path.parent == label.parent] or candidates
    return [path for path in beside if path.name == named] or beside
