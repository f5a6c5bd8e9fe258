"""The text formats `prepare text --from FORMAT` reads: one reader each."""

from __future__ import annotations

from pipelines.prep.icdar2015 import read_icdar2015
from pipelines.prep.paddleocr import read_paddleocr
from pipelines.prep.raw import Reader
from pipelines.prep.sroie import read_sroie

FORMATS: dict[str, Reader] = {
    "icdar2015": read_icdar2015,
    "paddleocr": read_paddleocr,
    "sroie": read_sroie,
}
