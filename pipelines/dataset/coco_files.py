"""COCO label files: one JSON with "images", "annotations" (x, y, width, height boxes) and "categories"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.dataset.label_files import shortest
from pipelines.errors import DataError
from pipelines.records import DefectAnnotation, Record

_LISTS = ("images", "annotations", "categories")


@dataclass(frozen=True)
class CocoFile:
    """The three lists of a COCO file, every entry a JSON object, nothing else checked."""

    path: Path
    images: list[dict[str, Any]]
    annotations: list[dict[str, Any]]
    categories: list[dict[str, Any]]


def read_json(path: Path) -> Any:
    """Parse a JSON file.

    Raises:
        DataError: it can't be read or is no JSON; does not name the file.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"can't be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"no valid JSON: {error}") from None


def read_coco(path: Path) -> CocoFile:
    """Parse a COCO file.

    Raises:
        DataError: not there, no JSON, or not laid out as COCO; names the first wrong entry, not the file.
    """
    content = read_json(path)
    lists = [content.get(name) if isinstance(content, dict) else None for name in _LISTS]
    # An export of OK images alone has no reason to write "annotations".
    if lists[1] is None and isinstance(lists[0], list):
        lists[1] = []
    for name, entries in zip(_LISTS, lists, strict=True):
        if not isinstance(entries, list):
            raise DataError(f'expected COCO, an object with the lists {", ".join(_LISTS)}, but "{name}" is none')
        wrong = next((i for i, entry in enumerate(entries) if not isinstance(entry, dict)), None)
        if wrong is not None:
            raise DataError(f"{name}[{wrong}]: expected an object, but got {str(entries[wrong])[:60]}")
    images, annotations, categories = lists
    return CocoFile(path, images or [], annotations or [], categories or [])


def entry_item(list_name: str, position: int, entry: dict[str, Any]) -> str:
    """Where an entry is, for messages: `annotations[16] (id 17)`, the position counted from 0 as in JSON."""
    return f"{list_name}[{position}]" + (f" (id {entry['id']})" if "id" in entry else "")


def format_coco(records: Sequence[Record], classes: Sequence[str]) -> str:
    """The COCO file of a split: category ids from 1 in the order of `classes`, numbers to 0.01 px, a line an entry.

    An ignore region is written as a crowd (`"iscrowd": 1`), which neither PaddleDetection nor pycocotools counts.
    """
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, record in enumerate(records, 1):
        height, width = record.size_hw
        images.append({"id": number, "file_name": record.path, "width": width, "height": height})
        annotations += _entries(record.annotation, number, len(annotations) + 1)
    categories = [{"id": number, "name": name} for number, name in enumerate(classes, 1)]
    lists = {"images": images, "annotations": annotations, "categories": categories}
    return "{\n" + ",\n".join(f'"{name}": {_lines(entries)}' for name, entries in lists.items()) + "\n}\n"


def _entries(annotation: DefectAnnotation, image_id: int, first_id: int) -> list[dict[str, Any]]:
    entries = []
    for index, box in enumerate(annotation.boxes_xyxy_px.tolist()):
        left, top, right, bottom = (round(value, 2) for value in box)
        width, height = right - left, bottom - top
        entries.append(
            {
                "id": first_id + index,
                "image_id": image_id,
                "category_id": int(annotation.class_ids[index]) + 1,
                "bbox": [shortest(value) for value in (left, top, width, height)],
                "area": shortest(width * height),
                "iscrowd": int(annotation.is_ignored[index]),
            }
        )
    return entries


def _lines(entries: Sequence[dict[str, Any]]) -> str:
    """A JSON list with a line an entry: it reads and compares better than one line, or ten an entry."""
    return "[" + ",".join("\n" + json.dumps(entry, ensure_ascii=False) for entry in entries) + "\n]"
