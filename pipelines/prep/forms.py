"""Forms: FUNSD (a JSON a form with `form`) and XFUND (one JSON a split with `documents`), both with boxes of entities.

An entity may run over several lines. Its words are taken where it has any, joined to lines where they are single
characters, else its own box; how often is told. FUNSD: https://guillaumejaume.github.io/FUNSD; XFUND:
https://github.com/doc-analysis/XFUND.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.dataset.coco_files import read_json
from pipelines.errors import DataError
from pipelines.prep.named_images import NamedImage, NamedImages
from pipelines.prep.paired_files import LabelFile, paired_images
from pipelines.prep.raw import DrawnItem, RawShape, RawText, size_from
from pipelines.prep.shapes import as_text, enclosing_box, outline_of, rectangle
from pipelines.prep.split_lists import side_of
from pipelines.records import Fault

_WORDS = "words"
_LINES = "lines joined from single characters"
_ENTITIES = "entities without words"


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
    units = Counter[str]()

    def parse(path: Path) -> LabelFile[RawShape] | None:
        content = read_json(path)
        if not isinstance(content, dict) or "form" not in content:
            return None
        return LabelFile("", _shapes(content["form"], "form", units), None)

    yield from paired_images(source, images, ".json", parse)
    yield from _told(source, units)


def _xfund(source: Path, images: Path | None) -> Iterator[DrawnItem]:
    files, faults = _documents(source)
    yield from faults
    if not files:
        reasons = "; ".join(map(str, faults[:3])) or 'expected a JSON with a list "documents"'
        raise DataError(f"{source}: no XFUND file: {reasons}")
    sides = {path: side_of(path.stem) for path in files}
    has_split = {"train", "val"} <= set(sides.values())
    found = NamedImages(source, images)
    units = Counter[str]()
    for path, documents in files.items():
        for number, document in enumerate(documents, 1):
            try:
                entry = _document(document, f"document {number}", sides[path] if has_split else "", units)
            except DataError as error:
                yield Fault(str(path), str(error), "dropped", item=f"document {number}")
                continue
            yield from found.located(entry, path)
    yield from found.unlisted(list(files))
    yield from _told(source, units)


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


def _document(document: Any, item: str, split: str, units: Counter[str]) -> NamedImage[RawShape]:
    """One page of an XFUND file.

    Raises:
        DataError: it names no image, or has no list of entities.
    """
    image = document.get("img") if isinstance(document, dict) else None
    if not isinstance(image, dict) or not isinstance(name := image.get("fname"), str) or not name.strip():
        raise DataError(f'expected "img" with an "fname", but got {str(image)[:60]}')
    said_hw = size_from(image.get("height"), image.get("width"))
    return NamedImage([name], item, _shapes(document.get("document"), "document", units), split, said_hw)


def _shapes(entities: Any, key: str, units: Counter[str]) -> tuple[RawShape, ...]:
    """The words of all entities, or an entity itself where it has none; `units` counts what was taken.

    Raises:
        DataError: `entities` is no list.
    """
    if not isinstance(entities, list):
        raise DataError(f'expected "{key}" with a list of entities, but got {str(entities)[:60]}')
    shapes = []
    for number, entity in enumerate(entities, 1):
        known = entity if isinstance(entity, dict) else {}
        words = known.get("words")
        if not isinstance(words, list) or not words:
            found, unit = [_shape(known, f"entity {number}")], _ENTITIES
        else:
            parts = [_shape(word, f"entity {number}, word {place}") for place, word in enumerate(words, 1)]
            is_spelt = len(parts) > 1 and all(len(part.text.strip()) <= 1 and not part.fault for part in parts)
            found, unit = (_lines(parts), _LINES) if is_spelt else (parts, _WORDS)
        units[unit] += len(found)
        shapes += found
    return tuple(shapes)


def _lines(characters: Sequence[RawShape]) -> list[RawShape]:
    """Characters in reading order as lines; a line goes on with what overlaps its last one by half a height.

    XFUND has such words where a language has no blanks; a text detector looks for lines.
    """
    lines = [[characters[0]]]
    for character in characters[1:]:
        left, top, _, bottom = enclosing_box(character.outline)
        before_left, before_top, _, before_bottom = enclosing_box(lines[-1][-1].outline)
        overlap = min(bottom, before_bottom) - max(top, before_top)
        if left >= before_left and 2 * overlap >= min(bottom - top, before_bottom - before_top):
            lines[-1].append(character)
        else:
            lines.append([character])
    return [
        RawShape(
            rectangle(*enclosing_box([point for part in line for point in part.outline])),
            "text",
            text="".join(part.text for part in line),
            item=line[0].item,
        )
        for line in lines
    ]


def _told(source: Path, units: Counter[str]) -> Iterator[Fault]:
    """What the regions are, unless all are words: a detector learns to find whatever it is given."""
    counts = [f"{units[unit]} {unit}" for unit in (_WORDS, _LINES, _ENTITIES) if units[unit]]
    if set(units) - {_WORDS}:
        yield Fault(str(source), f"regions are {', '.join(counts)}", "warning")


def _shape(entry: Any, item: str) -> RawShape:
    known: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
    box = known.get("box")
    try:
        (left, top), (right, bottom) = outline_of([box[:2], box[2:]] if isinstance(box, list) else None)[0]
    except (DataError, ValueError):
        return RawShape((), "text", item=item, fault=f"expected a box [x1, y1, x2, y2], but got {str(box)[:60]}")
    text = known.get("text")
    return RawShape(rectangle(left, top, right, bottom), "text", text=text if isinstance(text, str) else "", item=item)
