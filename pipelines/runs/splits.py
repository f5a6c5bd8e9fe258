"""The records of a run's splits; a configured synthetic dataset is drawn on first use."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pipelines.config import DataSection, SyntheticSection
from pipelines.dataset import SPLITS, load_split, read_index
from pipelines.errors import UsageError
from pipelines.records import Record
from pipelines.runs.reporter import Reporter
from pipelines.synthesis.invoice_dataset import write_invoices


def split_records(data: DataSection, split: str, reporter: Reporter) -> list[Record]:
    """Records of "train" or "val".

    Raises:
        UsageError: `data.root` holds another dataset than the synthetic one that is asked for.
        DataError: the dataset is not there or has faults.
    """
    if data.synthetic is not None:
        _have_drawn(data.root, data.synthetic, reporter)
    return load_split(data.root, split)


def _have_drawn(root: Path, asked: SyntheticSection, reporter: Reporter) -> None:
    if not root.exists():
        write_invoices(root, num_train=asked.train, num_val=asked.val, seed=asked.seed, sizes_hw=asked.sizes)
        reporter.note(f"{asked.train} training and {asked.val} validation invoices drawn into {root}")
        return
    found, wanted = _drawn(read_index(root)), _wanted(asked)
    differing = [name for name in wanted if found[name] != wanted[name]]
    if differing:
        # a run on other data than its configuration names could never be repeated
        raise UsageError(
            f"{root} holds another dataset than data.synthetic asks for: other {', '.join(differing)}. Remove the"
            " folder to have it drawn anew, name another data.root, or take data.synthetic out of the configuration"
        )


def _wanted(asked: SyntheticSection) -> dict[str, Any]:
    # as many images as sizes are needed to show them all
    return {"train": asked.train, "val": asked.val, "seed": asked.seed, "sizes": set(asked.sizes[: asked.train])}


def _drawn(index: dict[str, Any]) -> dict[str, Any]:
    """What `data.synthetic` would have said for a dataset, from its `dataset.yml`."""
    entries, source = index["images"].values(), index.get("source")
    num_images = Counter(entry.get("split") for entry in entries)
    return {
        **{split: num_images[split] for split in SPLITS},
        "seed": source.get("seed") if isinstance(source, dict) else None,
        "sizes": {tuple(entry.get("size_hw", ())) for entry in entries if entry.get("split") == SPLITS[0]},
    }
