"""Weights: where they come from, tensors out of the files that hold them, and the table of what matched.

Shared by the tasks; nothing in a file is ever executed, and nothing here knows a network.
"""

from __future__ import annotations

from pipelines.weights.files import Tensors, read_tensors
from pipelines.weights.matching import MatchTable, PartMatch, match_tensors, require_backbone
from pipelines.weights.sources import resolve_source

__all__ = [
    "MatchTable",
    "PartMatch",
    "Tensors",
    "match_tensors",
    "read_tensors",
    "require_backbone",
    "resolve_source",
]
