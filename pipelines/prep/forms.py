"""Forms: FUNSD (a JSON a form with `form`) and XFUND (one JSON a split with `documents`), both with boxes of entities.

An entity may run over several lines; its words are boxes of their own, so that words are taken where there are any
and the entity's box where there are none. FUNSD: https://guillaumejaume.github.io/FUNSD; XFUND:
https://github.com/doc-analysis/XFUND.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.dataset.coco_files import read_json
from pipelines.errors import DataError
from pipelines.prep.named_images import NamedImage, NamedImages
from pipelines.prep.paired_files import LabelFile, paired_images
from pipelines.prep.raw import DrawnItem, RawShape, RawText, size_from
from pipelines.prep.shapes import as_text, outline_of, rectangle
from pipelines.prep.split_lists import side_of
from pipelines.records import Fault


def read_funsd(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """Images of every FUNSD file below `source`; `train.txt` and `val.txt` that list images are the split.

    Raises:
        DataError: no JSON below `source`, or none of their images.
    """
    return as_text(_funsd(source, images))


def read_xfund(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """Images of an XFUND file, or of those in a folder; files called `…train…` and `…val…` are the split.

    Raises:
        DataError: no XFUND file, or none of its images.
    """
    return as_text(_xfund(source, images))


def _funsd(source: Path, images: Path | None) -> Iterator[DrawnItem]:
    return paired_images(source, images, ".json", _form)


def _form(path: Path) -> LabelFile[RawShape] | None:
    content = read_json(path)
    if not isinstance(content, dict) or "form" not in content:
        return None
    return LabelFile("", _shapes(content["form"], "form"), None)


def _xfund(source: Path, images: Path | None) -> Iterator[DrawnItem]:
    files, faults = _documents(source)
    yield from faults
    if not files:
        reasons = "; ".join(map(str, faults[:3])) or 'expected a JSON with a list "documents"'
        raise DataError(f"{source}: no XFUND file: {reasons}")
    sides = {path: side_of(path.stem) for path in files}
    has_split = {"train", "val"} <= set(sides.values())
    found = NamedImages(source, images)
    for path, documents in files.items():
        for number, document in enumerate(documents, 1):
            try:
                entry = _document(document, f"document {number}", sides[path] if has_split else "")
            except DataError as error:
                yield Fault(str(path), str(error), "dropped", item=f"document {number}")
                continue
            yield from found.located(entry, path)
    yield from found.unlisted(list(files))


def _documents(source: Path) -> tuple[dict[Path, list[Any]], list[Fault]]:
    """The documents of every XFUND file; JSONs of other kinds are passed over."""
    files: dict[Path, list[Any]] = {}
    faults = []
    for path in [source] if source.is_file() else sorted(source.rglob("*.json")):
        try:
            content = read_json(path)
        except DataError as error:
            faults.append(Fault(str(path), str(error), "dropped"))
            continue
        documents = content.get("documents") if isinstance(content, dict) else None
        if isinstance(documents, list):
            files[path] = documents
    return files, faults


def _document(document: Any, item: str, split: str) -> NamedImage[RawShape]:
    """One page of an XFUND file.

    Raises:
        DataError: it names no image, or has no list of entities.
    """
    image = document.get("img") if isinstance(document, dict) else None
    if not isinstance(image, dict) or not isinstance(name := image.get("fname"), str) or not name.strip():
        raise DataError(f'expected "img" with an "fname", but got {str(image)[:60]}')
    said_hw = size_from(image.get("height"), image.get("width"))
    return NamedImage([name], item, _shapes(document.get("document"), "document"), split, said_hw)


def _shapes(entities: Any, key: str) -> tuple[RawShape, ...]:
    """The words of all entities, or an entity itself where it has none.

    Raises:
        DataError: `entities` is no list.
    """
    if not isinstance(entities, list):
        raise DataError(f'expected "{key}" with a list of entities, but got {str(entities)[:60]}')
    shapes = []
    for number, entity in enumerate(entities, 1):
        known = entity if isinstance(entity, dict) else {}
        words = known.get("words")
        if isinstance(words, list) and words:
            shapes += [_shape(word, f"entity {number}, word {place}") for place, word in enumerate(words, 1)]
        else:
            shapes.append(_shape(known, f"entity {number}"))
    return tuple(shapes)


def _shape(entry: Any, item: str) -> RawShape:
    known: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
    box = known.get("box")
    try:
        (left, top), (right, bottom) = outline_of([box[:2], box[2:]] if isinstance(box, list) else None)[0]
    except (DataError, ValueError):
        return RawShape((), "text", item=item, fault=f"expected a box [x1, y1, x2, y2], but got {str(box)[:60]}")
    text = known.get("text")
    return RawShape(rectangle(left, top, right, bottom), "text", text=text if isinstance(text, str) else "", item=item)
