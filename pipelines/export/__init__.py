"""A trained network as a model that other programs run, and the proof that they find the same."""

from __future__ import annotations

from pipelines.export.defect_detector import export_defect_detector, exported_class_names, read_defect_settings
from pipelines.export.parity import ParityReport, compare_defect_predictions, compare_predictions
from pipelines.export.programs import check_in_paddleocr, check_in_paddlex, paddleocr_detector, paddlex_detector
from pipelines.export.text_detector import export_text_detector, read_settings
from pipelines.export.tiled import exported_defect_detector

__all__ = [
    "ParityReport",
    "check_in_paddleocr",
    "check_in_paddlex",
    "compare_defect_predictions",
    "compare_predictions",
    "export_defect_detector",
    "export_text_detector",
    "exported_class_names",
    "exported_defect_detector",
    "paddleocr_detector",
    "paddlex_detector",
    "read_defect_settings",
    "read_settings",
]
