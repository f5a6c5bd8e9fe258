"""What mends a fault that `check` finds: what `prepare` does about it, or what only a person can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipelines.records import Fault

_LEFT_OUT = "prepare leaves the image out"
_DROPPED = "prepare drops it"
_LINE_DROPPED = "prepare drops the line"
_RESTORED = f"put the file back, or {_LEFT_OUT}"
_RENUMBERED = "prepare numbers images, objects and classes anew"
_LABEL_SOME = "label some, or choose another split (--seed, --val)"

_BY_START = {
    # label lines of text
    "no tab between": "prepare finds where the path ends, or drops the line",
    "the regions are no valid JSON": "prepare joins a line that was cut, or drops it",
    "the regions must be": _LINE_DROPPED,
    "no path before": _LINE_DROPPED,
    "the line is blank": "prepare skips it",
    "starts with a byte-order mark": "prepare writes the file without",
    'expected {"transcription"': _DROPPED,
    "points_px must be": _DROPPED,
    "a polygon needs": _DROPPED,
    "every point must be": "prepare reads numbers written as text, and drops other points",
    "its outline crosses": "prepare reorders four points, of more it makes an ignore region",
    # boxes and objects of COCO files
    "its corners are reversed": "prepare swaps them",
    "expected a bbox": "prepare takes the outline where there is one, else drops the object",
    "image_id": _DROPPED,
    "category_id": _DROPPED,
    "expected a file_name": _DROPPED,
    "expected a whole number as id": _RENUMBERED,
    "id ": _RENUMBERED,
    "lists no images": "look at what was exported",
    # either
    "encloses no area": _DROPPED,
    "reaches outside the image": "prepare cuts it at the border",
    "the label file is empty": "look at what was exported",
    "is not the file that prepare wrote": "put it back, or prepare again",
    "weighs more than once": "remove all but the one that is labelled best",
    "trains and validates": "prepare drops the training copy",
}

_BY_PART = {
    "image not found": _RESTORED,
    "the picture is cut off": _RESTORED,
    "can't be decoded": _RESTORED,
    "can't be read": _RESTORED,
    "not a readable image": _RESTORED,
    "the file is ": f"convert or replace it, or {_LEFT_OUT}",
    "Windows line ends": "prepare writes line feeds",
    "is labelled twice": "prepare keeps the first",
    "is listed twice": "prepare keeps one",
    "is there twice": "prepare makes them one",
    "images found under": "check the folder, or tell prepare --images DIR",
    "labels of another picture": "label it anew, or put the labelled picture back",
    "to learn or score": _LABEL_SOME,
    "nothing to learn it from": _LABEL_SOME,
    "nothing to score it on": _LABEL_SOME,
}
"""Where the reason may start with something of the user's."""


def with_remedies(faults: Sequence[Fault]) -> list[Fault]:
    """The faults, each with what mends it where that is known."""
    return [replace(fault, repair=fault.repair or remedy_of(fault.reason)) for fault in faults]


def remedy_of(reason: str) -> str:
    """What mends a fault with this reason, or ""."""
    by_start = next((remedy for start, remedy in _BY_START.items() if reason.startswith(start)), "")
    return by_start or next((remedy for part, remedy in _BY_PART.items() if part in reason), "")
