"""The records of a run's splits; a configured synthetic dataset is drawn on first use."""

from __future__ import annotations

from pipelines.config import DataSection
from pipelines.dataset import load_split
from pipelines.records import Record
from pipelines.runs.reporter import Reporter
from pipelines.synthesis.invoice_dataset import write_invoices


def split_records(data: DataSection, split: str, reporter: Reporter) -> list[Record]:
    """Records of "train" or "val".

    Raises:
        DataError: the dataset is not there or has faults.
    """
    if data.synthetic is not None and not data.root.exists():
        made = data.synthetic
        write_invoices(data.root, num_train=made.train, num_val=made.val, seed=made.seed)
        reporter.note(f"{made.train} training and {made.val} validation invoices drawn into {data.root}")
    return load_split(data.root, split)
