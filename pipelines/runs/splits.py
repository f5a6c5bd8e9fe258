"""A configured synthetic dataset, drawn on first use; one that is there already must be the one that is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.config import FactorySection, InvoicesSection
from pipelines.dataset import SPLITS, read_index
from pipelines.errors import UsageError
from pipelines.runs.reporter import Reporter
from pipelines.synthesis.factory_dataset import write_factory_images
from pipelines.synthesis.invoice_dataset import write_invoices

Asked = InvoicesSection | FactorySection


def have_drawn(root: Path, asked: Asked, reporter: Reporter) -> None:
    """Draw a synthetic dataset into `root` unless it is there.

    Raises:
        UsageError: `root` holds another dataset than the one that is asked for.
        DataError: the disk refuses.
    """
    if not root.exists():
        noun, write = _writer(asked)
        write(root)
        reporter.note(f"{asked.train} training and {asked.val} validation {noun} drawn into {root}")
        return
    found = _drawn(read_index(root), asked)
    wanted = _wanted(asked, found)
    differing = [name for name in wanted if found[name] != wanted[name]]
    if differing:
        # a run on other data than its configuration names could never be repeated
        raise UsageError(
            f"{root} holds another dataset than data.synthetic asks for: other {', '.join(differing)}. Remove the"
            " folder to have it drawn anew, name another data.root, or take data.synthetic out of the configuration"
        )


def _writer(asked: Asked) -> tuple[str, Callable[[Path], None]]:
    if isinstance(asked, FactorySection):
        factory = partial(write_factory_images, ok_share=asked.ok_share, sizes_hw=asked.sizes)
        return "factory images", partial(factory, num_train=asked.train, num_val=asked.val, seed=asked.seed)
    invoices = partial(write_invoices, sizes_hw=asked.sizes)
    return "invoices", partial(invoices, num_train=asked.train, num_val=asked.val, seed=asked.seed)


def _wanted(asked: Asked, found: dict[str, Any]) -> dict[str, Any]:
    wanted = {"train": asked.train, "val": asked.val, "seed": asked.seed}
    if isinstance(asked, FactorySection):
        # sizes are drawn at random, so not all need be there
        sizes = found["sizes"] if found["sizes"] <= set(asked.sizes) else set(asked.sizes)
        return {**wanted, "sizes": sizes, "ok_share": asked.ok_share}
    # as many images as sizes are needed to show them all
    return {**wanted, "sizes": set(asked.sizes[: asked.train])}


def _drawn(index: dict[str, Any], asked: Asked) -> dict[str, Any]:
    """What `data.synthetic` would have said for a dataset, from its `dataset.yml`."""
    entries, source = index["images"].values(), index.get("source")
    num_images = Counter(entry.get("split") for entry in entries)
    said = source if isinstance(source, dict) else {}
    found = {
        **{split: num_images[split] for split in SPLITS},
        "seed": said.get("seed"),
        "sizes": {tuple(entry.get("size_hw", ())) for entry in entries if entry.get("split") == SPLITS[0]},
    }
    return {**found, "ok_share": said.get("ok_share")} if isinstance(asked, FactorySection) else found
