"""Raw files to a prepared dataset: one reader a format, checks, repairs, a split without leaks."""

from __future__ import annotations

from pipelines.prep.check import CheckReport, check_dataset
from pipelines.prep.formats import FORMATS
from pipelines.prep.prepared import SplitCounts
from pipelines.prep.text import PrepareReport, prepare_text

__all__ = ["FORMATS", "CheckReport", "PrepareReport", "SplitCounts", "check_dataset", "prepare_text"]
