"""XML files from anywhere: no entities, which a few lines can blow up to gigabytes, and nothing from other files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from pipelines.errors import DataError

_NAMESPACE_END = "}"


def read_xml(path: Path) -> Element:
    """The root element; tags in a namespace read `{namespace}tag`, as ElementTree has them.

    Raises:
        DataError: it can't be read, is no XML, or declares entities; does not name the file.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator=_NAMESPACE_END)
    parser.buffer_text = True
    parser.EntityDeclHandler = _refuse_entity
    parser.StartElementHandler = lambda tag, attributes: builder.start(
        _name(tag), {_name(key): value for key, value in attributes.items()}
    )
    parser.EndElementHandler = lambda tag: builder.end(_name(tag))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(path.read_bytes(), True)
    except OSError as error:
        raise DataError(f"can't be read: {error.strerror or error}") from None
    # LookupError and ValueError: an encoding that Python does not know, or can't read piecewise.
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DataError(f"no valid XML: {error}") from None
    return builder.close()


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


def _name(name: str) -> str:
    return "{" + name if _NAMESPACE_END in name else name
