"""Raw files to a prepared dataset: one reader a format, checks, repairs, a split without leaks."""

from __future__ import annotations

from pipelines.dataset.counts import DefectCounts, SplitCounts
from pipelines.prep.check import CheckReport, check_dataset, labelled_images
from pipelines.prep.defect import prepare_defect
from pipelines.prep.formats import DEFECT_FORMATS, TEXT_FORMATS
from pipelines.prep.oddities import OddImage, is_ignored, oddities, outlines_of, usual_size
from pipelines.prep.pages import PagesReport, write_pages
from pipelines.prep.preparation import PrepareReport
from pipelines.prep.request import PrepareOptions
from pipelines.prep.text import prepare_text

__all__ = [
    "DEFECT_FORMATS",
    "TEXT_FORMATS",
    "CheckReport",
    "DefectCounts",
    "OddImage",
    "PagesReport",
    "PrepareOptions",
    "PrepareReport",
    "SplitCounts",
    "check_dataset",
    "is_ignored",
    "labelled_images",
    "oddities",
    "outlines_of",
    "prepare_defect",
    "prepare_text",
    "usual_size",
    "write_pages",
]
