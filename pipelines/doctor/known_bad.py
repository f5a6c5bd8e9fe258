"""Versions that are known to break or leak, each with the reason and the way out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_END = (10**9,)


@dataclass(frozen=True)
class KnownBad:
    """A range of versions of one component.

    Attributes:
        component: distribution name, or "cudnn" or "python".
        first: first bad version; `last` is the last one, inclusive.
        beside: only bad together with this distribution; "" for always.
    """

    component: str
    first: tuple[int, ...]
    last: tuple[int, ...]
    verdict: Literal["warn", "bad"]
    reason: str
    remedy: str
    beside: str = ""


_RESIZE = "an exported resize holds a double attribute that oneDNN on a CPU and paddle2onnx reject"
_OLD_PADDLE = "the networks that text detection is built on need Paddle 3"

KNOWN_BAD = (
    KnownBad("paddlepaddle", (3, 3, 0), (3, 3, 1), "bad", _RESIZE, "use 3.2.2"),
    KnownBad("paddlepaddle-gpu", (3, 3, 0), (3, 3, 1), "bad", _RESIZE, "use 3.2.2"),
    KnownBad("paddlepaddle", (0,), (2, 10**9), "bad", _OLD_PADDLE, "use 3.2.2"),
    KnownBad("paddlepaddle-gpu", (0,), (2, 10**9), "bad", _OLD_PADDLE, "use 3.2.2 from Paddle's own package index"),
    KnownBad("cudnn", (8, 0, 3), (8, 1, 10**9), "bad", "leaks host memory with images of many sizes", "use cuDNN 8.9"),
    KnownBad("paddleocr", (0,), (3, 6, 10**9), "bad", "lacks the networks of PP-OCRv5 and v6", "use paddleocr 3.7.0"),
    KnownBad("numpy", (2, 4), _END, "warn", "paddlex asks for numpy below 2.4", "use numpy 2.3.5"),
    KnownBad(
        "setuptools",
        (81,),
        _END,
        "bad",
        "no longer has pkg_resources, which ppdet imports",
        "use setuptools 80",
        "paddledet",
    ),
)


def version_tuple(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "3.2.2.post126" is (3, 2, 2)."""
    leading = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in leading.group().split(".")) if leading else ()


def known_bad(component: str, version: str, installed: frozenset[str]) -> KnownBad | None:
    """The first entry that holds for this version beside what is installed."""
    numbers = version_tuple(version)
    for entry in KNOWN_BAD:
        here = entry.component == component and entry.first <= numbers <= entry.last
        if here and (not entry.beside or entry.beside in installed):
            return entry
    return None
