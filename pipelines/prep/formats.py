"""The formats that `prepare text|defect --from FORMAT` reads: one reader each."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TypeVar

from pipelines.errors import UsageError
from pipelines.prep.coco import read_coco_source
from pipelines.prep.cvat import read_cvat, read_cvat_text
from pipelines.prep.deeppcb import read_deeppcb
from pipelines.prep.forms import read_funsd, read_xfund
from pipelines.prep.icdar import read_icdar2013, read_icdar2015
from pipelines.prep.label_studio import read_label_studio, read_label_studio_text
from pipelines.prep.labelme import read_labelme, read_labelme_text
from pipelines.prep.masks import read_masks
from pipelines.prep.paddleocr import read_paddleocr
from pipelines.prep.page_xml import read_page_xml
from pipelines.prep.raw import DefectReader, TextReader
from pipelines.prep.sroie import read_sroie
from pipelines.prep.voc import read_voc
from pipelines.prep.yolo import read_yolo

AnyReader = TypeVar("AnyReader", TextReader, DefectReader)

TEXT_FORMATS: dict[str, TextReader] = {
    "cvat": read_cvat_text,
    "funsd": read_funsd,
    "icdar2013": read_icdar2013,
    "icdar2015": read_icdar2015,
    "labelme": read_labelme_text,
    "labelstudio": read_label_studio_text,
    "paddleocr": read_paddleocr,
    "page": read_page_xml,
    "sroie": read_sroie,
    "xfund": read_xfund,
}
DEFECT_FORMATS: dict[str, DefectReader] = {
    "coco": read_coco_source,
    "cvat": read_cvat,
    "deeppcb": read_deeppcb,
    "labelme": read_labelme,
    "labelstudio": read_label_studio,
    "masks": read_masks,
    "voc": read_voc,
    "yolo": read_yolo,
}


def reader_of(formats: Mapping[str, AnyReader], name: str, kind: str) -> AnyReader:
    """The reader called `name`.

    Raises:
        UsageError: there is none; names the nearest.
    """
    reader = formats.get(name)
    if reader is None:
        near = difflib.get_close_matches(name, formats, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown {kind} format {name!r}; expected one of {', '.join(formats)}{meant}")
    return reader
