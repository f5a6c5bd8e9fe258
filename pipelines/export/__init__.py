"""A trained network as a model that other programs run, and the proof that they find the same."""

from __future__ import annotations

from pipelines.export.parity import ParityReport, check_in_paddleocr, compare_predictions, paddleocr_detector
from pipelines.export.text_detector import export_text_detector, read_settings

__all__ = [
    "ParityReport",
    "check_in_paddleocr",
    "compare_predictions",
    "export_text_detector",
    "paddleocr_detector",
    "read_settings",
]
