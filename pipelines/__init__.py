"""wholebatch: fine-tune OCR and defect detectors with the gradient of the whole batch on one small card."""

__version__ = "0.1.0"
