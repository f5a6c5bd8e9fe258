"""A prepared dataset of seeded invoices: images, PaddleOCR label files and `dataset.yml`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import yaml

from pipelines.dataset import format_label_line, new_dataset_folder, refuse_existing
from pipelines.errors import UsageError
from pipelines.records import Record
from pipelines.synthesis.fonts import Fonts, find_fonts
from pipelines.synthesis.invoices import InvoiceSpec, draw_invoice

SMOKE_SIZES_HW = ((448, 320), (544, 384), (640, 480))
JPEG_QUALITY = 95  # the scan already went through a worse one


class _Drawn(NamedTuple):
    """A written image: its record and what `dataset.yml` tells of it."""

    record: Record
    entry: dict[str, Any]


def write_invoices(
    out: Path,
    *,
    num_train: int,
    num_val: int,
    seed: int,
    sizes_hw: Sequence[tuple[int, int]] = SMOKE_SIZES_HW,
    spec: InvoiceSpec | None = None,
    font_paths: Sequence[Path] = (),
) -> None:
    """Write a dataset that trains as it is: OUT/images, train.txt, val.txt and dataset.yml.

    Image i of a split depends on the seed, the split and i alone, so asking for more keeps the first ones.

    Args:
        out: a folder that does not exist yet, or is empty; nothing is left in it if writing fails.
        num_train: images of the training split.
        num_val: images of the validation split.
        seed: the same seed and fonts write the same bytes.
        sizes_hw: (height, width) of the pages, by turns.
        spec: what the pages may be like; its size is replaced by `sizes_hw`.
        font_paths: font files to use besides those found (`find_fonts`).

    Raises:
        UsageError: counts or sizes that make no dataset, no usable font, or `out` holds something already.
        DataError: the disk refuses.
    """
    out = Path(out)
    if min(num_train, num_val) < 1 or not sizes_hw or seed < 0:
        raise UsageError(
            f"a dataset needs num_train and num_val of at least 1, a size and a seed of at least 0, but got "
            f"num_train={num_train}, num_val={num_val}, sizes_hw={list(sizes_hw)}, seed={seed}"
        )
    refuse_existing(out)
    specs = [replace(spec or InvoiceSpec(), size_hw=size_hw) for size_hw in sizes_hw]
    fonts = find_fonts(font_paths)
    with new_dataset_folder(out) as partial:
        _write_all(partial, {"train": num_train, "val": num_val}, seed, specs, fonts)


def _write_all(root: Path, counts: dict[str, int], seed: int, specs: Sequence[InvoiceSpec], fonts: Fonts) -> None:
    (root / "images").mkdir()
    drawn: dict[str, list[_Drawn]] = {}
    for split_number, (split, count) in enumerate(counts.items()):
        drawn[split] = [
            _write_one(root, split, index, np.random.default_rng([seed, split_number, index]), spec, fonts)
            for index, spec in enumerate(specs[i % len(specs)] for i in range(count))
        ]
        lines = "".join(format_label_line(image.record) + "\n" for image in drawn[split])
        (root / f"{split}.txt").write_bytes(lines.encode())
    (root / "dataset.yml").write_bytes(_index_text(seed, fonts, drawn).encode())


def _write_one(root: Path, split: str, index: int, rng: np.random.Generator, spec: InvoiceSpec, fonts: Fonts) -> _Drawn:
    image, annotation = draw_invoice(rng, spec, fonts)
    encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
    name = f"{split}_{index:04d}"
    record = Record(f"images/{name}.jpg", spec.size_hw, annotation, group=name)
    (root / record.path).write_bytes(encoded)
    entry = {
        "split": split,
        "group": name,
        "size_hw": list(spec.size_hw),
        "sha256": hashlib.sha256(encoded).hexdigest(),
        "source": "synthetic",
    }
    return _Drawn(record, entry)


def _index_text(seed: int, fonts: Fonts, drawn: dict[str, list[_Drawn]]) -> str:
    """`dataset.yml` with the keys that `prepare` writes; one line an image (JSON is valid YAML)."""
    files = [family.regular.name for family in (*fonts.latin, *fonts.chinese)]
    header = {
        "task": "text_detection",
        "classes": ["text"],
        "source": {"format": "synthetic invoices", "seed": seed, "fonts": files},
        "split": {
            "rule": "drawn apart, every image a group of its own",
            "groups": {split: len(images) for split, images in drawn.items()},
        },
        "counts": {split: _counts(images) for split, images in drawn.items()},
        "faults": {},
    }
    entries = [image for images in drawn.values() for image in images]
    lines = [f"  {json.dumps(image.record.path)}: {json.dumps(image.entry)}\n" for image in entries]
    return yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=120) + "images:\n" + "".join(lines)


def _counts(images: Sequence[_Drawn]) -> dict[str, int]:
    regions = [region for image in images for region in image.record.annotation.regions]
    return {
        "images": len(images),
        "regions": len(regions),
        "ignored": sum(region.is_ignored for region in regions),
        "text_free": sum(not image.record.annotation.regions for image in images),
    }
