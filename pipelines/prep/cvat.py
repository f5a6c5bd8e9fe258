"""CVAT for images 1.1: one XML a task, job or project, with an `<image>` an image; images in `images/` or elsewhere.

Boxes and ellipses turn by `rotation` degrees, clockwise as seen, about their own centre. For text, a shape's
transcription is its attribute `text` or `transcription`. Source: CVAT's description of the format
(docs.cvat.ai/docs/other/xml_format).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal
from xml.etree.ElementTree import Element

from pipelines.errors import DataError
from pipelines.prep.coco_entries import is_marked
from pipelines.prep.named_images import NamedImage, NamedImages
from pipelines.prep.raw import IMAGE_SUFFIXES, ClassList, DefectItem, DrawnItem, Outline, RawShape, RawText
from pipelines.prep.shapes import as_defects, as_text, ellipse, outline_of, rectangle, turned
from pipelines.prep.split_lists import side_of
from pipelines.prep.xml_files import finite_numbers, read_xml
from pipelines.records import Fault

_KINDS: Mapping[str, Literal["area", "line", "mask"]] = {
    "box": "area",
    "polygon": "area",
    "ellipse": "area",
    "polyline": "line",
    "points": "line",
    "mask": "mask",
}
_NOT_READ = ("cuboid", "skeleton")
_TEXT_ATTRIBUTES = ("text", "transcription")
_IGNORE_ATTRIBUTES = ("difficult", "ignore", "iscrowd")


def read_cvat(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Defects of a CVAT file, or of those anywhere below a folder; subsets called train and val (test) are the split.

    Raises:
        DataError: no CVAT file, or none of its images found.
    """
    return as_defects(_drawn(source, images))


def read_cvat_text(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """As `read_cvat`, for text."""
    return as_text(_drawn(source, images))


def _drawn(source: Path, images: Path | None) -> Iterator[DrawnItem]:
    tasks, faults = _tasks(source)
    yield from faults
    if not tasks:
        reasons = "; ".join(map(str, faults[:3])) or "expected an XML that starts with <annotations>"
        raise DataError(f"{source}: no CVAT file: {reasons}")
    subsets = {side_of(_subset(image, root)) for root in tasks.values() for image in root.iter("image")}
    has_split = {"train", "val"} <= subsets
    found = NamedImages(source, images)
    for path, root in tasks.items():
        yield ClassList(tuple(name.strip() for name in _class_names(root)))
        yield from _tagged_alone(path, root)
        for number, image in enumerate(root.iter("image"), 1):
            yield from found.located(_image(image, number, _subset(image, root), has_split), path)
            image.clear()  # a million shapes are not kept twice
    yield from found.unlisted(list(tasks))


def _tasks(source: Path) -> tuple[dict[Path, Element], list[Fault]]:
    """The root of every CVAT file; XMLs of other kinds are passed over."""
    paths = [source] if source.is_file() else sorted(path for path in source.rglob("*.xml") if path.is_file())
    tasks: dict[Path, Element] = {}
    faults = []
    for path in paths:
        try:
            root = read_xml(path)
        except DataError as error:
            faults.append(Fault(str(path), str(error), "dropped"))
            continue
        if root.tag == "annotations" and root.find("track") is not None and root.find("image") is None:
            reason = 'is "CVAT for video": its tracks are not read; export it as "CVAT for images 1.1"'
            faults.append(Fault(str(path), reason, "dropped"))
        elif root.tag == "annotations":
            tasks[path] = root
    return tasks, faults


def _tagged_alone(path: Path, root: Element) -> Iterator[Fault]:
    """A warning where images have tags and nothing drawn, as nobody knows what the tags mean."""
    tagged = [image for image in root.iter("image") if len(image) and all(each.tag == "tag" for each in image)]
    if tagged:
        first = f"{tagged[0].get('name')}: {tagged[0][0].get('label')}"
        reason = f"{len(tagged)} image(s) have tags alone (first {first}): tags are not read, nothing is drawn on them"
        yield Fault(str(path), reason, "warning")


def _class_names(root: Element) -> Iterator[str]:
    """The labels of a task, job or project; parts of a skeleton are listed as well, and are no classes."""
    for label in root.iterfind("meta/*/labels/label"):
        if label.find("parent") is None and label.findtext("name"):
            yield label.findtext("name") or ""


def _subset(image: Element, root: Element) -> str:
    return image.get("subset") or root.findtext("meta/task/subset") or root.findtext("meta/job/subset") or ""


def _image(element: Element, number: int, subset: str, has_split: bool) -> NamedImage[RawShape]:
    name = element.get("name", "")
    item = f"image {element.get('id', number)} {name}"
    drawn = [each for each in element if each.tag in _KINDS or each.tag in _NOT_READ]
    shapes = tuple(_shape(each, f"{item}: {each.tag} {position}") for position, each in enumerate(drawn, 1))
    return NamedImage(_file_names(name, subset), item, shapes, side_of(subset) if has_split else "", _said_hw(element))


def _file_names(name: str, subset: str) -> Sequence[str]:
    """What an export calls the image: a project's lie in a folder a subset, frames of a video get a suffix."""
    has_suffix = PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES
    names = [name] if has_suffix else [name, *(f"{name}{suffix}" for suffix in (".PNG", *sorted(IMAGE_SUFFIXES)))]
    return [*names, *(f"{subset}/{each}" for each in names if subset)]


def _said_hw(element: Element) -> tuple[int, int] | None:
    try:
        height, width = (int(element.get(side, "")) for side in ("height", "width"))
    except ValueError:
        return None
    return (height, width) if height > 0 and width > 0 else None


def _shape(element: Element, item: str) -> RawShape:
    attributes = {each.get("name", "").strip().lower(): each.text or "" for each in element.iter("attribute")}
    group = element.get("group_id", "")
    drawn = RawShape(
        (),
        element.get("label"),
        text=next((attributes[name] for name in _TEXT_ATTRIBUTES if name in attributes), ""),
        is_ignored=any(is_marked(attributes.get(name, "")) for name in _IGNORE_ATTRIBUTES),
        item=item,
        group="" if group == "0" else group,
    )
    if element.tag in _NOT_READ:
        return replace(drawn, fault=f"a {element.tag} is not read; expected a box, a polygon or an ellipse")
    try:
        return replace(drawn, outline=_outline(element), kind=_KINDS[element.tag])
    except DataError as error:
        return replace(drawn, fault=str(error))


def _outline(element: Element) -> Outline:
    """What was drawn, in px.

    Raises:
        DataError: coordinates that are no numbers.
    """
    if element.tag == "box":
        left, top, right, bottom = _numbers(element, "xtl", "ytl", "xbr", "ybr")
        outline, centre = rectangle(left, top, right, bottom), ((left + right) / 2, (top + bottom) / 2)
    elif element.tag == "mask":
        left, top, width, height = _numbers(element, "left", "top", "width", "height")
        return rectangle(left, top, left + width, top + height)
    elif element.tag == "ellipse":
        centre_x, centre_y, radius_x, radius_y = _numbers(element, "cx", "cy", "rx", "ry")
        centre = (centre_x, centre_y)
        outline = ellipse(centre, (radius_x, radius_y))
    else:
        return outline_of([pair.split(",") for pair in element.get("points", "").split(";")])[0]
    (degrees,) = _numbers(element, "rotation") if element.get("rotation") else (0.0,)
    return turned(outline, math.radians(degrees), centre)


def _numbers(element: Element, *names: str) -> list[float]:
    return finite_numbers({name: element.get(name, "") for name in names})
