"""Image files: decoded upright whatever their path holds, and refused by name when they are not whole."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from pipelines.errors import DataError

ORIENTATION_TAG = 274
"""EXIF tag; 1 is upright, 5 to 8 swap width and height (EXIF 2.3, section 4.6.4)."""

DECODING_ERRORS = (
    *(
        OSError,
        SyntaxError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RuntimeError,
        ArithmeticError,
        EOFError,
    ),
    struct.error,
    Image.DecompressionBombError,
)
"""What PIL raises of a damaged file: whatever its parsing meets."""

_FOREIGN_STARTS = {
    b"<": "an HTML or XML page",
    b"%PDF": "a PDF",
    b"PK": "a zip archive",
    b"version https://git-lfs": "a Git LFS pointer",
}

# Scans of A3 at 600 dpi and more are ordinary here; PIL would warn at 89 and refuse at 179 million pixels.
# OpenCV's own limit is the one that holds.
Image.MAX_IMAGE_PIXELS = 2**30


_REDUCED = {
    1: cv2.IMREAD_COLOR,
    2: cv2.IMREAD_REDUCED_COLOR_2,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    8: cv2.IMREAD_REDUCED_COLOR_8,
}
_JPEG_START = (0xFF, 0xD8)


def read_image(path: Path | str, reduction: int = 1) -> np.ndarray:
    """Decode an image file, upright, whatever characters its path holds.

    Args:
        path: the file.
        reduction: 1, 2, 4 or 8: a JPEG is decoded at this fraction of its size, several times as fast; the means of
            its pixels, sides rounded up. Other formats gain nothing by it and come whole.

    Returns:
        uint8 (h, w, 3), BGR.

    Raises:
        DataError: missing, empty, cut off, or not an image; names the file.
    """
    try:
        # cv2.imread can't open non-ASCII paths on Windows; bytes always work.
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror or error}") from None
    fault = encoded_fault(content)
    if fault:
        raise DataError(f"{path}: {fault}")
    image = decoded(content, reduction)
    if image is None:
        raise DataError(f"{path}: can't be decoded as an image (expected JPEG, PNG, BMP, TIFF or WebP)")
    return image


def decoded(content: np.ndarray | bytes, reduction: int = 1) -> np.ndarray | None:
    """The upright picture in an image file's bytes, uint8 (h, w, 3), BGR; None where it can't be decoded."""
    data = np.frombuffer(content, np.uint8)
    is_jpeg = tuple(data[:2]) == _JPEG_START
    try:
        return cv2.imdecode(data, _REDUCED[reduction if is_jpeg else 1])
    except cv2.error:  # larger than OpenCV takes, say
        return None


def is_there(path: Path) -> bool:
    """Whether a file is there; a name that no file system takes (too long, with a NUL) is not, and no error."""
    return os.path.isfile(path)


def encoded_fault(content: np.ndarray) -> str:
    """What the bytes of an image file tell before decoding: "" if nothing speaks against them.

    Decoders fill the missing part of a cut-off JPEG or PNG with grey and report success, so the end marker
    is looked for: in a JPEG the last start of scan (FF DA) must be followed by an end of image (FF D9).
    """
    if content.size == 0:
        return "the file is empty (0 bytes)"
    data = content.tobytes()
    for start, name in _FOREIGN_STARTS.items():
        if data.startswith(start):
            return f"the file is {name}, not an image"
    if data[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1"):
        return "the file is a HEIC picture; convert it to JPEG or PNG"
    is_cut_jpeg = data.startswith(b"\xff\xd8") and data.rfind(b"\xff\xd9") <= data.rfind(b"\xff\xda")
    is_cut_png = data.startswith(b"\x89PNG") and data.rfind(b"IEND") < 0
    if is_cut_jpeg or is_cut_png:
        return f"the picture is cut off (its end is missing after {content.size} bytes); copy it again"
    return ""


def image_size_hw(path: Path) -> tuple[int, int]:
    """(height, width) of the upright image from the file's header, without decoding it.

    Raises:
        DataError: missing, empty or not an image; names the file.
    """
    try:
        with Image.open(path) as image:
            width, height = image.size
            is_sideways = image.getexif().get(ORIENTATION_TAG, 1) in (5, 6, 7, 8)
    except DECODING_ERRORS as error:
        reason = encoded_fault(np.fromfile(path, dtype=np.uint8)) if is_there(path) else "no such file"
        raise DataError(f"{path}: {reason or f'not a readable image: {error}'}") from None
    return (width, height) if is_sideways else (height, width)
