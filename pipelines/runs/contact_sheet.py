"""The contact sheet of `check`: which images of a dataset to show, and why."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path

from pipelines.dataset import read_image
from pipelines.errors import DataError
from pipelines.prep import CheckReport, OddImage, is_ignored, labelled_images, oddities, outlines_of, usual_size
from pipelines.records import Record
from pipelines.report import SheetImage, write_sheet

_MOST_IMAGES = 40
_LEAST_IMAGES = 9  # made up with ordinary ones, for comparison
_MOST_FAULTS = 40
_GRAVITY = {"error": 1000.0, "warning": 500.0}
_ALIKE = 100.0  # below a fault of its own, above whatever is odd


@dataclass(frozen=True, eq=False)
class _Candidate:
    """An image with all that speaks for showing it."""

    split: str
    record: Record
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
    files = {str(root / candidate.record.path) for candidate in candidates}
    others = [str(fault) for fault in report.faults if fault.file not in files]
    listed = others[:_MOST_FAULTS] + [f"... and {len(others) - _MOST_FAULTS} more"] * (len(others) > _MOST_FAULTS)
    write_sheet(file, str(root), _pictures(root, shown), _sentences(report, candidates, len(chosen)), listed)
    return len(chosen)


def _candidates(root: Path, report: CheckReport) -> list[_Candidate]:
    """All images, those to be looked at first."""
    images = labelled_images(root)
    look = partial(oddities, root, usual_px=usual_size([record for _, record in images]))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        odd = list(pool.map(look, [record for _, record in images]))
    told = _told(report, {str(root / record.path): (split, record.path) for split, record in images})
    found = []
    for (split, record), of_image in zip(images, odd, strict=True):
        reasons = told.get((split, record.path), [])
        weight = of_image.weight + sum(gravity for gravity, _ in reasons)
        texts = (*(text for _, text in reasons), *of_image.reasons)
        found.append(_Candidate(split, record, of_image, texts, weight))
    return sorted(found, key=lambda candidate: -candidate.weight)


def _told(report: CheckReport, files: Mapping[str, tuple[str, str]]) -> dict[tuple[str, str], list[tuple[float, str]]]:
    """What `check` said of each image, by split and path, with its gravity; `files` are those of the dataset."""
    told: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for pair in report.near_duplicates:
        for split, own, other in (("train", pair.train, pair.val), ("val", pair.val, pair.train)):
            text = f"looks like {other} on the other side ({100 * pair.similarity:.1f} % agrees)"
            told.setdefault((split, own), []).append((_ALIKE * pair.similarity, text))
    for fault in report.faults:
        if fault.file in files and fault.action in _GRAVITY and not fault.reason.startswith("looks like"):
            told.setdefault(files[fault.file], []).append((_GRAVITY[fault.action], fault.reason))
    return told


def _spread(candidates: Sequence[_Candidate], number: int) -> list[_Candidate]:
    return list(candidates[:: -(-len(candidates) // number)]) if number > 0 and candidates else []


def _pictures(root: Path, candidates: Sequence[_Candidate]) -> Iterator[SheetImage]:
    for candidate in candidates:
        annotation = candidate.record.annotation
        outlines, ignored = outlines_of(annotation), is_ignored(annotation)
        try:
            image = read_image(root / candidate.record.path)
        except DataError:
            image = None
        yield SheetImage(
            candidate.record.path,
            candidate.split,
            image,
            list(compress(outlines, ~ignored)),
            list(compress(outlines, ignored)),
            candidate.odd.is_odd[~ignored],
            candidate.reasons,
        )


def _sentences(report: CheckReport, candidates: Sequence[_Candidate], num_chosen: int) -> list[str]:
    verdict = "It can be trained on." if report.ok else "It can't be trained on: mend the errors below."
    if not num_chosen:
        shown = f"None of {len(candidates)} images is odd; ordinary ones are shown."
    else:
        most = f", the first {_MOST_IMAGES} are shown" * (num_chosen > _MOST_IMAGES)
        shown = f"{num_chosen} of {len(candidates)} images are worth a look{most}."
    return [verdict, shown, *([f"{report.too_small}."] if report.too_small else [])]
