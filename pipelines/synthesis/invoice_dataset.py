"""A prepared dataset of seeded invoices: images, PaddleOCR label files and `dataset.yml`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dataset import format_label_line, refuse_existing
from pipelines.dataset.counts import SplitCounts
from pipelines.errors import UsageError
from pipelines.synthesis.drawn_dataset import DrawnKind, require_drawable, write_drawn_dataset
from pipelines.synthesis.fonts import find_fonts
from pipelines.synthesis.invoices import InvoiceSpec, draw_invoice

SMOKE_SIZES_HW = ((448, 320), (544, 384), (640, 480))


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
    require_drawable(num_train, num_val, sizes_hw, seed)
    refuse_existing(out)
    try:
        specs = [replace(spec or InvoiceSpec(), size_hw=size_hw) for size_hw in sizes_hw]
    except ValueError as error:
        raise UsageError(f"sizes_hw={list(sizes_hw)}: {error}") from None
    fonts = find_fonts(font_paths)
    files = [family.regular.name for family in (*fonts.latin, *fonts.chinese)]

    def draw(rng: np.random.Generator, split: str, index: int) -> tuple[np.ndarray, Any]:
        return draw_invoice(rng, specs[index % len(specs)], fonts)

    kind = DrawnKind(
        task="text_detection",
        classes=("text",),
        source={"format": "synthetic invoices", "seed": seed, "fonts": files},
        draw=draw,
        label_suffix="txt",
        label_text=lambda records: "".join(format_label_line(record) + "\n" for record in records),
        counts=SplitCounts.of,
    )
    write_drawn_dataset(out, kind, num_train=num_train, num_val=num_val, seed=seed)
