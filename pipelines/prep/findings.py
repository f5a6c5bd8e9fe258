"""Many findings in few rows: repairs and drops by kind, with how many and where the first is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.records import Fault

_ACTIONS = ("repaired", "dropped")
# What differs between two findings of one kind: what was quoted, points, names of files, numbers.
_PARTICULARS = re.compile(
    r"""'[^']*'|"[^"]*"|\[\[.*?\](?:, \.\.\.)?\]|\[[^\]]*\]|\([^)]*\)"""
    r"""|(?:[^\s:]+[\\/])?[^\s:]+\.(?:jpe?g|png|tiff?|bmp|webp|gif|txt|csv|json|xml)\b|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?""",
    re.IGNORECASE,
)
_GAP = "…"


@dataclass(frozen=True)
class FindingKind:
    """Findings that differ in their particulars alone.

    Attributes:
        action: "repaired" or "dropped".
        reason: what they have in common, with "…" for the particulars.
        count: how many there are.
        first: where the first is, FILE or FILE:LINE.
    """

    action: str
    reason: str
    count: int
    first: str


def finding_kinds(faults: Sequence[Fault]) -> list[FindingKind]:
    """Repairs, then drops, the most frequent kind first; a region with two repairs counts in both."""
    places: dict[tuple[str, str], list[str]] = {}
    for fault in faults:
        if fault.action in _ACTIONS:
            for reason in _reasons(fault):
                place = fault.file if fault.line is None else f"{fault.file}:{fault.line}"
                places.setdefault((fault.action, reason), []).append(place)
    kinds = [FindingKind(action, reason, len(found), found[0]) for (action, reason), found in places.items()]
    return sorted(kinds, key=lambda kind: (_ACTIONS.index(kind.action), -kind.count, kind.reason))


def _reasons(fault: Fault) -> list[str]:
    common = _PARTICULARS.sub(_GAP, fault.reason)
    return common.split("; ") if fault.action == "repaired" else [common]
