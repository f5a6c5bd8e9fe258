"""The contact sheet of `check`: which images of a dataset to show, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dataset import read_image
from pipelines.errors import DataError
from pipelines.prep import CheckReport, OddImage, is_ignored, labelled_images, oddities, outlines_of, usual_size
from pipelines.prep.oddities import corners_of
from pipelines.records import TextAnnotation
from pipelines.report import SheetImage, write_sheet

_MOST_IMAGES = 40
_LEAST_IMAGES = 9  # made up with ordinary ones, for comparison
_MOST_FAULTS = 40
_MOST_REASONS = 6
_GRAVITY = {"error": 1000.0, "warning": 500.0}
_ALIKE = 100.0  # below a fault of its own, above whatever is odd


@dataclass(frozen=True, eq=False)
class _Candidate:
    """An image with all that speaks for showing it."""

    split: str
    path: str
    annotation: Any
    odd: OddImage
    reasons: tuple[str, ...]
    weight: float


def write_contact_sheet(file: Path, root: Path, report: CheckReport) -> int:
    """Write the images of a checked dataset that most need a look; where they are few, some ordinary ones too.

    Returns:
        How many images there is a reason to look at; the sheet shows the first forty.

    Raises:
        UsageError: something other than a sheet is there.
        DataError: the file can't be written.
    """
    candidates = _candidates(root, report)
    chosen = [candidate for candidate in candidates if candidate.reasons]
    ordinary = [candidate for candidate in candidates if not candidate.reasons]
    shown = chosen[:_MOST_IMAGES] + _spread(ordinary, _LEAST_IMAGES - len(chosen))
    others = [str(fault) for fault in report.faults if not fault.image]
    listed = others[:_MOST_FAULTS] + [f"... and {len(others) - _MOST_FAULTS} more"] * (len(others) > _MOST_FAULTS)
    write_sheet(file, str(root), _pictures(root, shown), _sentences(report, candidates, len(chosen)), listed)
    return len(chosen)


def _candidates(root: Path, report: CheckReport) -> list[_Candidate]:
    """All images, those to be looked at first; also those of which nothing is known but what is wrong with them."""
    images = labelled_images(root)
    look = partial(oddities, root, usual_px=usual_size([record for _, record in images]))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        odd = list(pool.map(look, [record for _, record in images]))
    told = _told(report)
    found = [
        _candidate(split, record.path, record.annotation, of_image, told.pop(record.path, []))
        for (split, record), of_image in zip(images, odd, strict=True)
    ]
    nothing_odd = OddImage(np.zeros(0, bool), (), 0.0)
    found += [_candidate("", path, TextAnnotation(), nothing_odd, reasons) for path, reasons in told.items()]
    return sorted(found, key=lambda candidate: -candidate.weight)


def _candidate(split: str, path: str, annotation: Any, odd: OddImage, told: Sequence[tuple[float, str]]) -> _Candidate:
    gravest = sorted(told, key=lambda reason: -reason[0])
    texts = [text for _, text in gravest[:_MOST_REASONS]]
    texts += [f"... and {len(gravest) - _MOST_REASONS} more"] * (len(gravest) > _MOST_REASONS)
    weight = odd.weight + sum(gravity for gravity, _ in told)
    return _Candidate(split, path, annotation, odd, (*texts, *odd.reasons), weight)


def _told(report: CheckReport) -> dict[str, list[tuple[float, str]]]:
    """What `check` said of each image, by path, with its gravity."""
    told: dict[str, list[tuple[float, str]]] = {}
    for pair in report.near_duplicates:
        for own, other in ((pair.train, pair.val), (pair.val, pair.train)):
            text = f"looks like {other} on the other side ({100 * pair.similarity:.1f} % agrees)"
            told.setdefault(own, []).append((_ALIKE * pair.similarity, text))
    for fault in report.faults:
        if fault.image and fault.action in _GRAVITY:
            text = ": ".join(filter(None, (fault.item, fault.reason))) + f"; {fault.repair}" * bool(fault.repair)
            told.setdefault(fault.image, []).append((_GRAVITY[fault.action], text))
    return told


def _spread(candidates: Sequence[_Candidate], number: int) -> list[_Candidate]:
    return list(candidates[:: -(-len(candidates) // number)]) if number > 0 and candidates else []


def _pictures(root: Path, candidates: Sequence[_Candidate]) -> Iterator[SheetImage]:
    for candidate in candidates:
        outlines, ignored = outlines_of(candidate.annotation), is_ignored(candidate.annotation)
        try:
            image = read_image(root / candidate.path)
        except DataError:
            image = None
        yield SheetImage(
            candidate.path,
            candidate.split,
            image,
            list(compress(outlines, ~ignored)),
            list(compress(outlines, ignored)),
            candidate.odd.is_odd[~ignored],
            candidate.reasons,
            list(corners_of(candidate.odd.unlabelled_px)),
        )


def _sentences(report: CheckReport, candidates: Sequence[_Candidate], num_chosen: int) -> list[str]:
    verdict = "It can be trained on." if report.ok else "It can't be trained on: mend the errors below."
    if not num_chosen:
        shown = f"None of {len(candidates)} images is odd; ordinary ones are shown."
    else:
        most = f", the first {_MOST_IMAGES} are shown" * (num_chosen > _MOST_IMAGES)
        shown = f"{num_chosen} of {len(candidates)} images are worth a look{most}."
    return [verdict, shown, *([f"{report.too_small}."] if report.too_small else [])]
