"""A prepared dataset of seeded invoices: images, PaddleOCR label files and `dataset.yml`."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import yaml

from pipelines.dataset import format_label_line
from pipelines.errors import DataError, UsageError
from pipelines.records import Record
from pipelines.synthesis.fonts import Fonts, find_fonts
from pipelines.synthesis.invoices import InvoiceSpec, draw_invoice

SMOKE_SIZES_HW = ((448, 320), (544, 384), (640, 480))
JPEG_QUALITY = 95  # the scan already went through a worse one


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
        UsageError: counts or sizes that make no dataset, or no usable font.
        DataError: `out` holds something already.
    """
    out = Path(out)
    if min(num_train, num_val) < 1 or not sizes_hw or seed < 0:
        raise UsageError(
            f"a dataset needs num_train and num_val of at least 1, a size and a seed of at least 0, but got "
            f"num_train={num_train}, num_val={num_val}, sizes_hw={list(sizes_hw)}, seed={seed}"
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: expected a new or empty folder, but it is in use; choose another or remove it")
    specs = [replace(spec or InvoiceSpec(), size_hw=size_hw) for size_hw in sizes_hw]
    fonts = find_fonts(font_paths)
    # Written beside and renamed, so that an interrupted run leaves no half dataset that looks whole.
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        _write_all(partial, {"train": num_train, "val": num_val}, seed, specs, fonts)
        if out.exists():
            out.rmdir()
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_all(root: Path, counts: dict[str, int], seed: int, specs: Sequence[InvoiceSpec], fonts: Fonts) -> None:
    (root / "images").mkdir(parents=True)
    entries: dict[str, dict[str, Any]] = {}
    summary: dict[str, dict[str, int]] = {}
    for split_number, (split, count) in enumerate(counts.items()):
        lines, num_regions = [], 0
        for index in range(count):
            rng = np.random.default_rng([seed, split_number, index])
            record, entry = _write_one(root, f"images/{split}_{index:04d}.jpg", rng, specs[index % len(specs)], fonts)
            entries[record.path] = {**entry, "split": split}
            lines.append(format_label_line(record))
            num_regions += len(record.annotation.regions)
        (root / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        summary[split] = {"images": count, "regions": num_regions}
    index_text = yaml.safe_dump(_index(seed, summary, fonts, entries), sort_keys=False, allow_unicode=True)
    (root / "dataset.yml").write_text(index_text, encoding="utf-8", newline="\n")


def _write_one(
    root: Path, path: str, rng: np.random.Generator, spec: InvoiceSpec, fonts: Fonts
) -> tuple[Record, dict[str, Any]]:
    """Draw and save one image; its record and its entry for `dataset.yml`."""
    image, annotation = draw_invoice(rng, spec, fonts)
    encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
    (root / path).write_bytes(encoded)
    entry = {
        "size_hw": list(spec.size_hw),
        "group": Path(path).stem,
        "source": "synthesis",
        "sha256": hashlib.sha256(encoded).hexdigest(),
    }
    return Record(path, spec.size_hw, annotation, entry["group"]), entry


def _index(
    seed: int, counts: dict[str, dict[str, int]], fonts: Fonts, entries: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    families = [*fonts.latin, *fonts.chinese]
    return {
        "task": "text_detection",
        "classes": ["text"],
        "counts": counts,
        "split": {"rule": "every image is a group of its own", "seed": seed},
        "origin": {"synthesis": "invoices", "seed": seed, "fonts": [family.regular.name for family in families]},
        "faults": [],
        "images": entries,
    }
