"""XML files from anywhere: no entities, which a few lines can blow up to gigabytes, and nothing from other files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from pipelines.errors import DataError


def read_xml(path: Path) -> ElementTree.Element:
    """The root element; tags in a namespace read `{namespace}tag`.

    Raises:
        DataError: it can't be read, is no XML, or declares entities; does not name the file.
    """
    # ElementTree does not tell of entities, so expat looks for them first: in C, at a fifth of the whole price.
    entities = expat.ParserCreate()
    entities.EntityDeclHandler = _refuse_entity
    try:
        content = path.read_bytes()
        entities.Parse(content, True)
        return ElementTree.fromstring(content)
    except OSError as error:
        raise DataError(f"can't be read: {error.strerror or error}") from None
    # LookupError and ValueError: an encoding that Python does not know, or can't read piecewise.
    except (expat.ExpatError, ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(f"no valid XML: {error}") from None


def finite_numbers(texts: Mapping[str, str]) -> list[float]:
    """Texts by their names as finite numbers.

    Raises:
        DataError: one of them is none.
    """
    try:
        numbers = [float(text) for text in texts.values()]
    except ValueError:
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        shown = ", ".join(f"{name}={text!r}" for name, text in texts.items())
        raise DataError(f"expected {len(texts)} number(s), but got {shown}")
    return numbers


def _refuse_entity(name: str, *_: object) -> None:
    raise DataError(f"declares the entity {name!r}, and no labelling tool does: not read")
