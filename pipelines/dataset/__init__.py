"""The prepared dataset on disk: label files as PaddleOCR and PaddleDetection have them, `dataset.yml`, and images.

A text dataset's root holds `train.txt` and `val.txt`; a line is `path<TAB>[{"transcription", "points"}, ...]` with
the path relative to the root. A defect dataset's holds `train.json` and `val.json` in COCO's layout. `dataset.yml`
(written by `prepare`) adds size, group and content hash of every image, and the class names in order; a plain
PaddleOCR or COCO folder without it works too. No Paddle here: worker processes import it.
"""

from __future__ import annotations

from pipelines.dataset.coco_files import format_coco
from pipelines.dataset.defect_splits import defect_classes, load_defect_split, scan_defect_split
from pipelines.dataset.image_files import image_size_hw, read_image
from pipelines.dataset.index import format_index, read_index
from pipelines.dataset.label_files import format_label_line, parse_label_line
from pipelines.dataset.new_folder import new_dataset_folder, refuse_existing
from pipelines.dataset.splits import SPLITS, faults_message, load_split, scan_split

__all__ = [
    "SPLITS",
    "defect_classes",
    "faults_message",
    "format_coco",
    "format_index",
    "format_label_line",
    "image_size_hw",
    "load_defect_split",
    "load_split",
    "new_dataset_folder",
    "parse_label_line",
    "read_image",
    "read_index",
    "refuse_existing",
    "scan_defect_split",
    "scan_split",
]
