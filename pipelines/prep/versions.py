"""The versions that decide the bytes of a prepared image."""

from __future__ import annotations

import cv2
import PIL

from pipelines import __version__


def imaging_versions() -> dict[str, str]:
    """By package: what reads images, what writes them, and this."""
    return {"wholebatch": __version__, "pillow": PIL.__version__, "opencv": cv2.__version__}
