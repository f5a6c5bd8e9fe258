"""The prepared dataset on disk: label files as PaddleOCR has them, `dataset.yml`, and images.

A dataset root holds `train.txt` and `val.txt`; a line is `path<TAB>[{"transcription", "points"}, ...]` with
the path relative to the root. `dataset.yml` (written by `prepare`) adds size, group and content hash of every
image; a plain PaddleOCR folder without it works too. No Paddle here: worker processes import it.
"""

from __future__ import annotations

from pipelines.dataset.image_files import image_size_hw, read_image
from pipelines.dataset.label_files import format_label_line, parse_label_line
from pipelines.dataset.new_folder import new_dataset_folder, refuse_existing
from pipelines.dataset.splits import SPLITS, faults_message, load_split, read_index, scan_split

__all__ = [
    "SPLITS",
    "faults_message",
    "format_label_line",
    "image_size_hw",
    "load_split",
    "new_dataset_folder",
    "parse_label_line",
    "read_image",
    "read_index",
    "refuse_existing",
    "scan_split",
]
