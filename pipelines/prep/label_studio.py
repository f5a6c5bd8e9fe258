"""Label Studio: its JSON export, a list of tasks with annotations; its JSON-MIN export as far as that says enough.

The export holds no pictures: they lie where Label Studio had them, or anywhere with `--images`. An uploaded picture is
found by its name with and without the eight digits that Label Studio puts before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pipelines.dataset.coco_files import read_json
from pipelines.errors import DataError
from pipelines.prep.coco_entries import Tally
from pipelines.prep.label_studio_results import Region, has_shape, regions_of, regions_of_minimum, shape_of
from pipelines.prep.named_images import NamedImage, NamedImages
from pipelines.prep.raw import IMAGE_SUFFIXES, DefectItem, DrawnItem, RawImage, RawShape, RawText, Unlabelled
from pipelines.prep.shapes import as_defects, as_text
from pipelines.records import Fault

_UPLOAD = re.compile(r"^[0-9a-f]{8}-(?=.)")
_LIKELY_KEYS = ("image", "ocr", "img", "url", "picture", "photo")
_MINIMUM_KEYS = frozenset({"annotator", "annotation_id", "lead_time"})
_SKIPPED = "was skipped by its annotator"
_SEVERAL = "has several annotations: the latest is taken"


def read_label_studio(source: Path, images: Path | None) -> Iterator[DefectItem]:
    """Defects of a Label Studio export, or of those anywhere below a folder.

    Raises:
        DataError: no export, or none of its images found.
    """
    return as_defects(_drawn(source, images))


def read_label_studio_text(source: Path, images: Path | None) -> Iterator[RawText | Fault]:
    """As `read_label_studio`, for text: a region's transcription is its text area."""
    return as_text(_drawn(source, images))


def _drawn(source: Path, images: Path | None) -> Iterator[DrawnItem]:
    exports, faults = _exports(source)
    yield from faults
    if not exports:
        reasons = "; ".join(map(str, faults[:3])) or 'expected a JSON list of tasks with "data" and "annotations"'
        raise DataError(f"{source}: no Label Studio export: {reasons}")
    found = NamedImages(source, images)
    uploads: dict[str, list[str]] = {}
    for path in found.files():
        uploads.setdefault(_upload_name(path.name), []).append(path.name)
    for label, tasks in exports.items():
        tally = Tally(str(label))
        for position, task in enumerate(tasks):
            yield from _task(task, position, label, found, uploads, tally)
        yield from tally.faults()
    yield from found.unlisted(list(exports))


def _exports(source: Path) -> tuple[dict[Path, list[Any]], list[Fault]]:
    """The tasks of every export; JSONs of other kinds are passed over."""
    paths = [source] if source.is_file() else sorted(path for path in source.rglob("*.json") if path.is_file())
    exports: dict[Path, list[Any]] = {}
    faults = []
    for path in paths:
        try:
            tasks = _tasks(read_json(path))
        except DataError as error:
            faults.append(Fault(str(path), str(error), "dropped"))
            continue
        if any(isinstance(task, dict) and (_is_task(task) or _is_minimum(task)) for task in tasks):
            exports[path] = tasks
    return exports, faults


def _tasks(content: Any) -> list[Any]:
    """A list of tasks, a task alone, or an annotation with its task as Label Studio's cloud storage has it."""
    if isinstance(content, dict) and isinstance(content.get("task"), dict) and "result" in content:
        return [{**content["task"], "annotations": [content]}]
    return content if isinstance(content, list) else [content]


def _is_task(task: Mapping[str, Any]) -> bool:
    return isinstance(task.get("data"), dict) and any(name in task for name in ("annotations", "completions"))


def _is_minimum(task: Mapping[str, Any]) -> bool:
    return not _is_task(task) and (len(_MINIMUM_KEYS & task.keys()) > 1 or any(map(_has_shapes, task.values())))


def _has_shapes(values: Any) -> bool:
    return isinstance(values, list) and any(isinstance(value, dict) and has_shape(value) for value in values)


def _task(
    task: Any, position: int, label: Path, found: NamedImages, uploads: Mapping[str, list[str]], tally: Tally
) -> Iterator[RawImage[RawShape] | Unlabelled | Fault]:
    """The image of a task with what was drawn on it; Unlabelled where nobody has said anything about it."""
    item = f"task {task['id']}" if isinstance(task, dict) and "id" in task else f"task[{position}]"
    try:
        names = _file_names(task, uploads)
        regions, unlabelled = _regions(task, item, tally)
    except DataError as error:
        yield Fault(str(label), str(error), "dropped", item=item)
        return
    sizes = {region.size_wh for region in regions.values() if region.size_wh}
    width, height = next(iter(sizes), (0, 0))
    entry = NamedImage(
        names,
        item,
        tuple(shape_of(region, f"{item}: {name}") for name, region in regions.items()),
        said_hw=(int(height), int(width)) if sizes else None,
        fault=f"{item}: its regions give {len(sizes)} different image sizes: left out" if len(sizes) > 1 else "",
    )
    for located in found.located(entry, label):
        if unlabelled and isinstance(located, RawImage):
            yield Unlabelled(located.image, f"{item} {unlabelled}", may_be_ok=unlabelled != _SKIPPED)
        else:
            yield located


def _regions(task: Mapping[str, Any], item: str, tally: Tally) -> tuple[dict[str, Region], str]:
    """What the latest annotation has drawn, and why nothing is known about the image ("" if something is).

    Raises:
        DataError: the annotations are no list of objects with results.
    """
    if not _is_task(task):
        regions, told = regions_of_minimum(task)
        tally.add("JSON-MIN has no ids: shapes and texts are matched by their order; better export as JSON", item)
        if told:
            tally.add(f"{told}; export as JSON", item)
        return regions, ""
    annotations = task.get("annotations", task.get("completions"))
    if not isinstance(annotations, list) or not all(isinstance(each, dict) for each in annotations):
        raise DataError(f"expected a list of annotations, but got {str(annotations)[:60]}")
    given = [each for each in annotations if not (each.get("was_cancelled") or each.get("skipped"))]
    if not given:
        return {}, _SKIPPED if annotations else "has no annotation"
    if len(given) > 1:
        tally.add(_SEVERAL, item)
    latest = max(
        given, key=lambda each: (str(each.get("updated_at") or each.get("created_at") or ""), str(each.get("id")))
    )
    results = latest.get("result")
    if not isinstance(results, list):
        raise DataError(f"expected a list of results, but got {str(results)[:60]}")
    return regions_of(results), ""


def _file_names(task: Any, uploads: Mapping[str, list[str]]) -> Sequence[str]:
    """What the image file of a task may be called.

    Raises:
        DataError: the task names no image, or several.
    """
    if not isinstance(task, dict) or not (_is_task(task) or _is_minimum(task)):
        raise DataError(f'expected a task with "data" and "annotations", but got {str(task)[:60]}')
    values = task["data"] if _is_task(task) else task
    named = {key: name for key, value in values.items() if isinstance(value, str) and (name := _path_of(value))}
    named = named or {"file_upload": _path_of(str(task.get("file_upload", "")))}
    likely = [key for key in _LIKELY_KEYS if key in named] or list(named)
    if not any(named.values()):
        raise DataError(f"names no image; expected one in {', '.join(map(str, values))[:80] or 'data'}")
    if len(set(named.values())) > 1 and likely[0] not in _LIKELY_KEYS:
        raise DataError(f"names several images ({', '.join(named.values())[:120]}): which one was labelled?")
    path = PurePosixPath(named[likely[0]])
    uploaded = _UPLOAD.sub("", path.name)
    names = [
        str(path),
        path.name,
        uploaded,
        *(uploads.get(_upload_name(uploaded), []) if uploaded != path.name else []),
    ]
    return list(dict.fromkeys(names))


def _path_of(reference: str) -> str:
    """The file that a reference means, "" if it is no picture: a path, an address, or Label Studio's local files."""
    reference = reference.strip()
    if "local-files/?" in reference:
        path = parse_qs(urlsplit(reference).query).get("d", [""])[0]
    elif "://" in reference or reference.startswith("/data/upload/"):
        path = unquote(re.sub(r"^\w[\w.+-]*://[^/]*", "", reference).split("?")[0])
    else:
        path = reference.replace("\\", "/")
    return path.lstrip("/") if PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES else ""


def _upload_name(name: str) -> str:
    """What Label Studio's server (Django's `get_valid_filename`) makes of the name of an uploaded file."""
    return re.sub(r"[^-\w.]", "", name.strip().replace(" ", "_"))
