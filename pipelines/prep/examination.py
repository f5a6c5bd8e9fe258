"""What decoding tells of many image files, those that an earlier run decoded left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pipelines.prep.executors import JobPool
from pipelines.prep.images import ImageFacts, examine_image
from pipelines.prep.journal import Journal, stamp_of


def examine_images(paths: Sequence[Path], pool: JobPool, max_pixels: int, journal: Journal | None) -> list[ImageFacts]:
    """`examine_image` of every file, in order.

    Args:
        paths: the files.
        pool: decodes.
        max_pixels: larger images get a fault before they are decoded.
        journal: knows files examined before, and learns the others; None: nothing is kept.

    Raises:
        WorkerLost: a worker died.
    """
    stamps = [stamp_of(path) for path in paths]
    known = [journal.facts(*file) if journal else None for file in zip(paths, stamps, strict=True)]
    unknown = [path.absolute() for path, facts in zip(paths, known, strict=True) if facts is None]
    examined = pool.results(partial(examine_image, max_pixels=max_pixels), unknown, lambda path: path)
    found = []
    for path, stamp, facts in zip(paths, stamps, known, strict=True):
        if facts is None:
            facts = next(examined)
            if journal:
                journal.add_facts(path, stamp, facts)
        found.append(facts)
    return found
