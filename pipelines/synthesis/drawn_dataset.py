"""A prepared dataset of drawn images, whatever they show: images, label files and `dataset.yml`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from pipelines.dataset import format_index, new_dataset_folder, refuse_existing
from pipelines.dataset.counts import Counts
from pipelines.errors import UsageError
from pipelines.records import Record

JPEG_QUALITY = 95

Draw = Callable[[np.random.Generator, str, int], tuple[np.ndarray, Any]]


@dataclass(frozen=True)
class DrawnKind:
    """What one kind of drawn dataset has of its own.

    Attributes:
        task: as in a configuration's `data.task`.
        classes: names in the order of their ids.
        source: what `dataset.yml` tells of the origin.
        draw: (rng, split, index) to an image, uint8 BGR (height, width, 3), and its annotation.
        label_suffix: of the label files, "txt" or "json".
        label_text: the content of a split's label file.
        counts: the numbers of a split.
    """

    task: str
    classes: tuple[str, ...]
    source: Mapping[str, Any]
    draw: Draw
    label_suffix: str
    label_text: Callable[[Sequence[Record]], str]
    counts: Callable[[Sequence[Record]], Counts]


class _Drawn(NamedTuple):
    """A written image: its record and what `dataset.yml` tells of it."""

    record: Record
    entry: dict[str, Any]


def require_drawable(num_train: int, num_val: int, sizes_hw: Sequence[tuple[int, int]], seed: int) -> None:
    """Raise UsageError for numbers that make no dataset."""
    if min(num_train, num_val) < 1 or not sizes_hw or seed < 0:
        raise UsageError(
            f"a dataset needs num_train and num_val of at least 1, a size and a seed of at least 0, but got "
            f"num_train={num_train}, num_val={num_val}, sizes_hw={list(sizes_hw)}, seed={seed}"
        )


def write_drawn_dataset(out: Path, kind: DrawnKind, *, num_train: int, num_val: int, seed: int) -> None:
    """Write a dataset that trains as it is: OUT/images, label files and dataset.yml, or nothing.

    Every image has a generator of its own, seeded by the seed, the split and its index alone.

    Raises:
        UsageError: `out` holds something already.
        DataError: the disk refuses.
    """
    refuse_existing(out)
    with new_dataset_folder(out) as partial:
        (partial / "images").mkdir()
        drawn: dict[str, list[_Drawn]] = {}
        for split_number, (split, count) in enumerate({"train": num_train, "val": num_val}.items()):
            rngs = (np.random.default_rng([seed, split_number, index]) for index in range(count))
            drawn[split] = [_write_image(partial, kind.draw, rng, split, index) for index, rng in enumerate(rngs)]
            labels = kind.label_text([image.record for image in drawn[split]])
            (partial / f"{split}.{kind.label_suffix}").write_bytes(labels.encode())
        (partial / "dataset.yml").write_bytes(_index_text(kind, drawn).encode())


def _write_image(root: Path, draw: Draw, rng: np.random.Generator, split: str, index: int) -> _Drawn:
    image, annotation = draw(rng, split, index)
    encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
    name = f"{split}_{index:04d}"
    record = Record(f"images/{name}.jpg", (image.shape[0], image.shape[1]), annotation, group=name)
    (root / record.path).write_bytes(encoded)
    entry = {
        "split": split,
        "group": name,
        "size_hw": list(record.size_hw),
        "sha256": hashlib.sha256(encoded).hexdigest(),
        "source": "synthetic",
    }
    return _Drawn(record, entry)


def _index_text(kind: DrawnKind, drawn: Mapping[str, Sequence[_Drawn]]) -> str:
    """`dataset.yml` with the keys that `prepare` writes."""
    records = {split: [image.record for image in images] for split, images in drawn.items()}
    header = {
        "task": kind.task,
        "classes": list(kind.classes),
        "source": dict(kind.source),
        "split": {
            "rule": "drawn apart, every image a group of its own",
            "groups": {split: len(images) for split, images in drawn.items()},
        },
        "counts": {split: asdict(kind.counts(each)) for split, each in records.items()},
        "faults": {},
    }
    return format_index(header, {image.record.path: image.entry for images in drawn.values() for image in images})
