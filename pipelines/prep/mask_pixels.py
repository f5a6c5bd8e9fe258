"""What the pixels of a mask mean: a defect or not, or the number of its class.

| mask | meaning of a pixel |
|---|---|
| grey or palette, with `classes.txt` | its class: the first line names the value 1, or, if it is `background`, 0 |
| 16-bit | an object for each value: touching ones stay two |
| 8-bit grey | a defect where it is brighter than half the scale, or not black if nothing is so bright |
| colour, or a palette without `classes.txt` | a defect where it is not black |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from pipelines.dataset.encodings import decode
from pipelines.dataset.image_files import DECODING_ERRORS, opened, read_image
from pipelines.errors import DataError

_NAME_LISTS = ("classes.txt", "class_names.txt", "labels.txt")
_BACKGROUND = frozenset({"background", "_background_"})
_WHITE = 255
"""A defect of the only class; beside numbers of classes Pascal VOC's border round each object, which is nobody's."""
_MOST_OBJECTS = 1000
_LOSSY_NOISE = 24
"""Brightness that JPEG may give to black pixels beside coloured ones."""


@dataclass(frozen=True)
class MaskClasses:
    """Class names by pixel value; {} where none are given."""

    names: Mapping[int, str] = field(default_factory=dict)


def mask_classes(source: Path) -> MaskClasses:
    """The names in `classes.txt`, or what LabelMe calls it.

    Raises:
        DataError: it can't be read.
    """
    for path in (source / name for name in _NAME_LISTS):
        if not path.is_file():
            continue
        try:
            lines = [line.strip() for line in decode(path.read_bytes()).lines]
        except (OSError, DataError) as error:
            raise DataError(f"{path}: can't be read: {error}") from None
        # LabelMe starts its list with __ignore__, which no pixel has.
        lines = lines[1:] if lines[0] == "__ignore__" else lines
        first = 0 if lines and lines[0].lower() in _BACKGROUND else 1
        return MaskClasses({value: name for value, name in enumerate(lines, first) if name and value})
    return MaskClasses()


def defect_values(mask: Path, classes: MaskClasses) -> tuple[np.ndarray, Mapping[int, str]]:
    """Where a mask shows defects, and the class of each value.

    Returns:
        int32 (h, w): 0 without a defect; spots of different values are different objects. Class names by value, {}
        where values are no classes.

    Raises:
        DataError: no picture, or values that the list of classes does not name.
    """
    pixels = read_image(mask)  # says what is wrong with a damaged file; upright, 8 bits
    numbers = _numbers(mask, bool(classes.names))
    values = _brightness(pixels) if numbers is None else numbers
    present = set(present_values(values))
    if classes.names and present:
        _require_named(mask, present, classes.names)
        if present == {_WHITE}:
            return np.minimum(values, 1), {1: next(iter(classes.names.values()))}
        return np.where(values == _WHITE, values * (_WHITE in classes.names), values), classes.names
    if numbers is None:
        return (values > _darkest_defect(mask, pixels)).astype(np.int32), {}
    if len(present) > _MOST_OBJECTS:
        raise DataError(f"{mask}: {len(present)} different values; expected one for each object, not shades")
    return values, {}


def present_values(values: np.ndarray) -> list[int]:
    """The values above 0 that pixels int32 (h, w) have, sorted; counting is ten times as fast as sorting them."""
    return [value for value in np.flatnonzero(np.bincount(values.ravel())).tolist() if value]


def _brightness(pixels: np.ndarray) -> np.ndarray:
    """The brightest channel of uint8 (h, w, 3), int32 (h, w); numpy is slow along an axis of three."""
    blue, green, red = cv2.split(pixels)
    return np.maximum(np.maximum(blue, green), red).astype(np.int32)


def _numbers(mask: Path, are_classes: bool) -> np.ndarray | None:
    """Pixels int32 (h, w) of a mask whose numbers 8-bit colours lose: a palette's places, 16 bits; else None.

    Small 16-bit numbers would all be black there, and a defect would pass for OK.

    Raises:
        DataError: it can't be decoded.
    """
    try:
        with opened(mask) as image:
            if image.mode.startswith("I") or (image.mode == "P" and are_classes):
                return np.asarray(image).astype(np.int32)
    except DECODING_ERRORS as error:
        raise DataError(f"{mask}: can't be read: {error}") from None
    return None


def _require_named(mask: Path, present: set[int], names: Mapping[int, str]) -> None:
    if present == {_WHITE} and len(names) == 1:
        return
    unknown = sorted(present - names.keys() - ({_WHITE} if present - {_WHITE} else set()))
    if unknown:
        shown = ", ".join(map(str, unknown[:5]))
        raise DataError(
            f"{mask}: value(s) {shown} have no name; the list of classes names {min(names)} to {max(names)}"
        )


def _darkest_defect(mask: Path, pixels: np.ndarray) -> int:
    """The brightness above which a pixel of an 8-bit mask is a defect."""
    is_lossy = mask.suffix.lower() in (".jpg", ".jpeg", ".webp")
    is_grey = bool((pixels == pixels[..., :1]).all())
    if is_grey and pixels.max() > 127:
        return 127  # edges may be blurred
    return _LOSSY_NOISE if is_lossy else 0
