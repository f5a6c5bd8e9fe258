"""A prepared dataset of seeded factory images, most of them without a defect: images, COCO files, `dataset.yml`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dataset import format_coco
from pipelines.dataset.counts import DefectCounts
from pipelines.errors import UsageError
from pipelines.synthesis.drawn_dataset import DrawnKind, require_drawable, write_drawn_dataset
from pipelines.synthesis.factory_images import CLASS_SHARES, CLASSES, MIN_SIDE_PX, draw_factory_image

SMOKE_SIZES_HW = ((256, 256),)
OK_SHARE = 0.8
MORE_DEFECTS = (0.6, 0.25, 0.15)
"""Shares of the images with a defect that have 0, 1 or 2 further ones."""


def write_factory_images(
    out: Path,
    *,
    num_train: int,
    num_val: int,
    seed: int,
    ok_share: float = OK_SHARE,
    sizes_hw: Sequence[tuple[int, int]] = SMOKE_SIZES_HW,
) -> None:
    """Write a dataset that trains as it is: OUT/images, train.json, val.json and dataset.yml.

    Of n images of a split `round(ok_share * n)` have no defect, spread evenly; every class is in every split.

    Args:
        out: a folder that does not exist yet, or is empty; nothing is left in it if writing fails.
        num_train: images of the training split.
        num_val: images of the validation split.
        seed: the same seed writes the same bytes.
        ok_share: share of images without a defect.
        sizes_hw: (height, width) of the images, each drawn at random from these.

    Raises:
        UsageError: counts, sizes or a share that make no dataset, or `out` holds something already.
        DataError: the disk refuses.
    """
    require_drawable(num_train, num_val, sizes_hw, seed)
    _require_defects(num_train, num_val, ok_share, sizes_hw)
    owed = {split: owed_classes(count, ok_share) for split, count in (("train", num_train), ("val", num_val))}

    def draw(rng: np.random.Generator, split: str, index: int) -> tuple[np.ndarray, Any]:
        size_hw = sizes_hw[int(rng.integers(len(sizes_hw)))]
        drawn = draw_factory_image(rng, size_hw, _chosen_classes(rng, owed[split][index]))
        return drawn.image, drawn.annotation

    kind = DrawnKind(
        task="defect_detection",
        classes=CLASSES,
        source={"format": "synthetic factory images", "seed": seed, "ok_share": ok_share},
        draw=draw,
        label_suffix="json",
        label_text=lambda records: format_coco(records, CLASSES),
        counts=partial(DefectCounts.of, classes=CLASSES),
    )
    write_drawn_dataset(Path(out), kind, num_train=num_train, num_val=num_val, seed=seed)


def owed_classes(num_images: int, ok_share: float) -> list[tuple[int, ...] | None]:
    """For every image of a split None if it is an OK image, else the classes that it must show, perhaps none.

    The number of OK images among the first i is round(ok_share * i) for every i, and the defective images share
    the classes out, so that each class is there at least once.
    """
    is_ok = [round(ok_share * (index + 1)) > round(ok_share * index) for index in range(num_images)]
    num_defective = num_images - sum(is_ok)
    ranks = np.cumsum(np.logical_not(is_ok)) - 1
    class_ids = range(len(CLASSES))
    return [None if ok else tuple(class_ids[rank::num_defective]) for ok, rank in zip(is_ok, ranks, strict=True)]


def _chosen_classes(rng: np.random.Generator, owed: tuple[int, ...] | None) -> list[int]:
    """The classes of an image's defects: those owed, and drawn ones up to three; none for an OK image."""
    if owed is None:
        return []
    num_defects = max(1 + int(rng.choice(len(MORE_DEFECTS), p=MORE_DEFECTS)), len(owed))
    drawn = rng.choice(len(CLASSES), num_defects - len(owed), p=CLASS_SHARES)
    return [*owed, *drawn.tolist()]


def _require_defects(num_train: int, num_val: int, ok_share: float, sizes_hw: Sequence[tuple[int, int]]) -> None:
    """Raise UsageError for a share that leaves a split without a defect, or a size too small for one."""
    if not 0 <= ok_share <= 1:
        raise UsageError(f"ok_share must lie in 0 to 1, but got {ok_share}")
    smallest = min(num_train, num_val)
    if round(ok_share * smallest) == smallest:
        raise UsageError(
            f"with ok_share={ok_share} all of {smallest} images are OK and nothing can be learned: ask for more "
            "images or a smaller share"
        )
    if min(min(size_hw) for size_hw in sizes_hw) < MIN_SIDE_PX:
        raise UsageError(f"sizes_hw must be at least {MIN_SIDE_PX} px on each side, but got {list(sizes_hw)}")
