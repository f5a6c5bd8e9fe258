"""`synthesize`: a dataset of drawn images to try everything on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pipelines.errors import UsageError
from pipelines.runs.reporter import Reporter
from pipelines.synthesis.factory_dataset import OK_SHARE, write_factory_images
from pipelines.synthesis.factory_dataset import SMOKE_SIZES_HW as FACTORY_SIZES_HW
from pipelines.synthesis.invoice_dataset import SMOKE_SIZES_HW as INVOICE_SIZES_HW
from pipelines.synthesis.invoice_dataset import write_invoices

KINDS = ("invoices", "factory")
_MAX_SIDE_PX = 16384


def synthesize(
    out: Path,
    kind: str,
    reporter: Reporter,
    *,
    num_train: int,
    num_val: int,
    seed: int,
    sizes: Sequence[str] = (),
    font_paths: Sequence[Path] = (),
    ok_share: float | None = None,
) -> None:
    """Write a dataset of synthetic invoices or factory images.

    Args:
        out: new dataset folder.
        kind: one of `KINDS`.
        reporter: who tells the user.
        num_train: images of the training split.
        num_val: images of the validation split.
        seed: same seed, same bytes.
        sizes: "HEIGHTxWIDTH" in pixels; none: the kind's own.
        font_paths: more fonts, for invoices.
        ok_share: share of images without a defect, for factory images; None: 0.8.

    Raises:
        UsageError: a kind, size, count or share that makes no dataset, an option of the other kind, a used folder.
        DataError: the disk refuses.
    """
    sizes_hw = [parse_size_hw(text) for text in sizes]
    if kind == "invoices":
        _refuse("--ok-share", ok_share is not None, "factory")
        write = partial(write_invoices, sizes_hw=sizes_hw or INVOICE_SIZES_HW, font_paths=font_paths)
    elif kind == "factory":
        _refuse("--font", bool(font_paths), "invoices")
        share = OK_SHARE if ok_share is None else ok_share
        write = partial(write_factory_images, sizes_hw=sizes_hw or FACTORY_SIZES_HW, ok_share=share)
    else:
        raise UsageError(f"--kind {kind}: expected one of {', '.join(KINDS)}")
    write(out, num_train=num_train, num_val=num_val, seed=seed)
    noun = "invoices" if kind == "invoices" else "factory images"
    reporter.note(f"{num_train} training and {num_val} validation {noun} written to {out}")


def parse_size_hw(text: str) -> tuple[int, int]:
    """(height, width) of "512x1536".

    Raises:
        UsageError: other text, or a side beyond 16384 px.
    """
    match = re.fullmatch(r"([0-9]{1,5})[xX×]([0-9]{1,5})", text.strip())
    size_hw = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 0 < min(size_hw) <= max(size_hw) <= _MAX_SIDE_PX:
        raise UsageError(
            f"--size {text}: expected HEIGHTxWIDTH in pixels, such as 512x1536, {_MAX_SIDE_PX} at most on a side"
        )
    return size_hw


def _refuse(option: str, is_given: bool, kind: str) -> None:
    if is_given:
        raise UsageError(f"{option} belongs to --kind {kind}; leave it out or choose that kind")
