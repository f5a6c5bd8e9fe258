"""Which format a source has: every format has a sign by which a glance knows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipelines.errors import DataError, UsageError
from pipelines.prep.glance import Glance, Start, glance

AUTO = "auto"
"""As a format's name: find out."""

_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar")
_CORNERS = re.compile(r"^\s*(-?\d+(\.\d+)?\s*,\s*){7}-?\d+(\.\d+)?\s*(,|$)")
_BOX = re.compile(r'^\s*(-?\d+(\.\d+)?[\s,]+){4}"')
_PAIR = re.compile(r"^\S+\.(jpe?g|png|bmp)\s+\S+\.txt$", re.IGNORECASE)
_YOLO_LINE = re.compile(r"^\s*\d+(\s+-?([01](\.\d*)?|\.\d+)(e[-+]?\d+)?){4,}\s*$")
_PADDLE_LINE = re.compile(r"^[^\t]+\t\s*\[")


@dataclass(frozen=True)
class Sign:
    """How a format is known.

    Attributes:
        looks_like: what is looked for, for messages.
        is_seen: whether it is there.
    """

    looks_like: str
    is_seen: Callable[[Glance], bool]


def recognise(source: Path, kind: Literal["text", "defect"]) -> str:
    """The name of the one format whose sign is seen in a source.

    Raises:
        DataError: no such file or folder.
        UsageError: no sign is seen, or several; says what was looked for and how to name the format.
    """
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    signs, others = (TEXT_SIGNS, DEFECT_SIGNS) if kind == "text" else (DEFECT_SIGNS, TEXT_SIGNS)
    seen = glance(source)
    found = [name for name, sign in signs.items() if sign.is_seen(seen)]
    if len(found) == 1:
        return found[0]
    if found:
        may_be = " or ".join(f"{name} ({signs[name].looks_like})" for name in found)
        raise UsageError(f"{source}: may be {may_be}; say which with --from {' or --from '.join(found)}")
    if source.suffix.lower() in _ARCHIVES:
        raise UsageError(f"{source}: an archive; unpack it and give the folder")
    other = next((name for name, sign in others.items() if sign.is_seen(seen)), "")
    hint = (
        f"; it looks like {other}, which is read by `prepare {'defect' if kind == 'text' else 'text'}`" if other else ""
    )
    looked_for = "; ".join(f"{name}: {sign.looks_like}" for name, sign in signs.items())
    raise UsageError(
        f"{source}: no {kind} format recognised{hint}. Looked for {looked_for}. Name the format with --from FORMAT"
    )


def _any_json(test: Callable[[Start], bool]) -> Callable[[Glance], bool]:
    return lambda seen: any(test(start) for start in seen.starts(".json"))


def _any_xml(root: str) -> Callable[[Glance], bool]:
    return lambda seen: any(start.root == root for start in seen.starts(".xml"))


def _is_coco(start: Start) -> bool:
    if start.text.lstrip()[:1] != "{" or _is_labelme(start):
        return False
    # Where the annotations come first, they fill the beginning.
    is_end = start.has_keys(1, "annotations") and any(f'"{name}"' in start.end for name in ("images", "categories"))
    return is_end or start.has_keys(1, "images") or start.has_keys(1, "categories")


def _is_labelme(start: Start) -> bool:
    # Where keys are sorted, the picture itself (imageData) fills the beginning.
    return start.has_keys(1, "shapes") or ((1, "imageData") in start.keys and '"shapes"' in start.end)


def _is_label_studio(start: Start) -> bool:
    if start.text.lstrip()[:1] == "[":
        # Where a task is long, its "data" comes late.
        has_annotations = any(start.has_keys(2, name) for name in ("annotations", "completions"))
        return has_annotations or start.has_keys(2, "annotation_id", "annotator")
    return start.has_keys(1, "annotations", "data") or start.has_keys(1, "result", "task")


def _is_paddleocr(seen: Glance) -> bool:
    return any(_PADDLE_LINE.match(line) for start in seen.starts(".txt") for line in start.lines[:20])


def _has_corner_lines(start: Start) -> bool:
    return any(_CORNERS.match(line) for line in start.lines[:20])


def _is_sroie(seen: Glance) -> bool:
    return "box" in seen.folders and any(
        start.path.parent.name == "box" and _has_corner_lines(start) for start in seen.starts(".csv", ".txt")
    )


def _is_icdar2013(seen: Glance) -> bool:
    files = (start for start in seen.starts(".txt") if start.path.name.startswith("gt_"))
    return any(_BOX.match(line) for start in files for line in start.lines[:20])


def _is_icdar2015(seen: Glance) -> bool:
    # CVAT writes boxes and corners into one file, which is read as ICDAR 2013.
    files = (start for start in seen.starts(".txt") if start.path.name.startswith("gt_"))
    return any(map(_has_corner_lines, files)) and not _is_icdar2013(seen)


def _is_deeppcb(seen: Glance) -> bool:
    lists = (start for start in seen.starts(".txt") if start.path.parent == seen.source)
    return any(_PAIR.match(line.strip()) for start in lists for line in start.lines[:5])


def _is_yolo(seen: Glance) -> bool:
    starts = [start for start in seen.starts(".txt") if start.path.stem in {image.stem for image in seen.images}]
    return any(_YOLO_LINE.match(line) for start in starts for line in start.lines[:5])


def _has_masks(seen: Glance) -> bool:
    folders = {part.lower() for folder in seen.folders for part in folder.split("/")}
    return bool(folders & {"masks", "ground_truth"}) or any(path.stem.endswith("_mask") for path in seen.images)


_CVAT = Sign("an XML that starts with <annotations>", _any_xml("annotations"))
_LABELME = Sign('JSONs with "shapes"', _any_json(_is_labelme))
_LABEL_STUDIO = Sign('a JSON list of tasks with "annotations"', _any_json(_is_label_studio))

TEXT_SIGNS: dict[str, Sign] = {
    "cvat": _CVAT,
    "funsd": Sign('JSONs with "form"', _any_json(lambda start: start.has_keys(1, "form"))),
    "icdar2013": Sign('gt_NAME.txt with lines x1 y1 x2 y2 "text"', _is_icdar2013),
    "icdar2015": Sign("gt_NAME.txt with x1,y1,...,x4,y4,text lines", _is_icdar2015),
    "labelme": _LABELME,
    "labelstudio": _LABEL_STUDIO,
    "paddleocr": Sign("a .txt with lines PATH<TAB>[...]", _is_paddleocr),
    "page": Sign("XMLs that start with <PcGts>", _any_xml("PcGts")),
    "sroie": Sign("box/ID.csv with x1,y1,...,x4,y4,text lines", _is_sroie),
    "xfund": Sign('a JSON with "documents"', _any_json(lambda start: start.has_keys(1, "documents"))),
}
DEFECT_SIGNS: dict[str, Sign] = {
    "coco": Sign('a JSON with "images", "annotations" and "categories"', _any_json(_is_coco)),
    "cvat": _CVAT,
    "deeppcb": Sign("trainval.txt with lines IMAGE.jpg LABELS.txt", _is_deeppcb),
    "labelme": _LABELME,
    "labelstudio": _LABEL_STUDIO,
    "masks": Sign("a folder masks or ground_truth, or pictures NAME_mask.png", _has_masks),
    "voc": Sign("XMLs that start with <annotation>", _any_xml("annotation")),
    "yolo": Sign("NAME.txt of images with lines CLASS x y width height", _is_yolo),
}
