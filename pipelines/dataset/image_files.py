"""Image files: decoded upright whatever their path holds, and refused by name when they are not whole."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from typing import BinaryIO

import cv2
import numpy as np
from PIL import Image, ImageFile
from PIL.TiffImagePlugin import IMAGELENGTH, IMAGEWIDTH, TiffImageFile

from pipelines.errors import DataError

_ORIENTATION_TAG = 274
JPEG_FORMATS = ("JPEG", "MPO")
"""PIL's names for what phones write; an MPO is a JPEG with another one behind it."""
SIDEWAYS = (5, 6, 7, 8)
"""EXIF orientations that swap width and height."""
LARGEST_PIXELS = 2**30
"""OpenCV decodes no larger picture (CV_IO_MAX_IMAGE_PIXELS), so nothing larger can be trained on."""
LARGEST_SIDE_PX = 2**20
"""Nor one of a longer side (CV_IO_MAX_IMAGE_WIDTH, _HEIGHT)."""

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
    b"%PDF": "a PDF; `wholebatch pages` makes pictures of its pages",
    b"PK": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"version https://git-lfs": "a Git LFS pointer; fetch the picture with `git lfs pull`",
    b"\0\x05\x16\x07": "what macOS keeps about a picture beside it (AppleDouble)",
    b"8BPS": "a Photoshop document; save it as PNG",
    b"\0\0\0\x0cJXL ": "a JPEG XL picture; convert it to JPEG or PNG",
    b"\xff\x0a": "a JPEG XL picture; convert it to JPEG or PNG",
}
_FTYP_BRANDS = {
    **dict.fromkeys(
        (b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1"), "HEIC picture; convert it to JPEG or PNG"
    ),
    **dict.fromkeys((b"isom", b"mp41", b"mp42", b"qt  ", b"avc1", b"M4V "), "video; take pictures out of it"),
}
"""What ISO media files say they are, in bytes 8 to 12 after "ftyp" (ISO/IEC 14496-12, 4.3)."""

# Pictures are bounded by LARGEST_PIXELS and by what the user allows, not by PIL's guess of an attack.
Image.MAX_IMAGE_PIXELS = None


_REDUCED = {
    1: cv2.IMREAD_COLOR,
    2: cv2.IMREAD_REDUCED_COLOR_2,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    8: cv2.IMREAD_REDUCED_COLOR_8,
}
_JPEG_START = (0xFF, 0xD8)

# cv2 operations for EXIF orientations 2 to 8: (flip code or None, transpose first)
_FLIPS: dict[int, tuple[int | None, bool]] = {
    2: (1, False),
    3: (-1, False),
    4: (0, False),
    5: (None, True),
    6: (1, True),
    7: (-1, True),
    8: (0, True),
}


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
        image = cv2.imdecode(data, _REDUCED[reduction if is_jpeg else 1])
    except cv2.error as error:  # larger than OpenCV takes, say
        if error.code == cv2.Error.StsNoMem:
            raise MemoryError(f"no memory to decode a picture of {data.size} encoded bytes") from None
        return None
    if image is None or data[8:12].tobytes() != b"WEBP":
        return image
    return _turned(image, _webp_orientation(data))  # OpenCV turns JPEG, PNG and TIFF, not WebP


def _webp_orientation(data: np.ndarray) -> int:
    try:
        with opened(io.BytesIO(data.tobytes())) as image:
            return orientation_of(image)
    except DECODING_ERRORS:
        return 1


def _turned(image: np.ndarray, orientation: int) -> np.ndarray:
    """Pixels (h, w, 3) as an EXIF orientation says they are shown."""
    flip, is_transposed = _FLIPS.get(orientation, (None, False))
    image = cv2.transpose(image) if is_transposed else image
    return image if flip is None else cv2.flip(image, flip)


def opened(file: Path | BinaryIO, formats: tuple[str, ...] | None = None) -> Image.Image:
    """`PIL.Image.open`, where what is cut off stays a fault: importing ppdet tells PIL to fill it up with grey."""
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    return Image.open(file, formats=formats)


def orientation_of(image: Image.Image) -> int:
    """1 to 8: how the stored pixels are turned to be shown; 1 is as they are (EXIF 2.3, section 4.6.4).

    Of a TIFF this must be asked before PIL loads it, as loading turns it and drops the tag.
    """
    orientation = image.getexif().get(_ORIENTATION_TAG, 1)
    return orientation if orientation in _FLIPS else 1


def shown_size_hw(image: Image.Image) -> tuple[int, int]:
    """(height, width) of an opened, not yet loaded image as it is shown."""
    width, height = stored_size_wh(image)
    return (width, height) if orientation_of(image) in SIDEWAYS else (height, width)


def stored_size_wh(image: Image.Image) -> tuple[int, int]:
    """(width, height) of an opened, not yet loaded image before any turn."""
    if isinstance(image, TiffImageFile):  # whose `size` is the shown one, in newer versions of PIL
        return int(image.tag_v2[IMAGEWIDTH]), int(image.tag_v2[IMAGELENGTH])
    return image.size


def unused_pictures(image: Image.Image) -> str:
    """What is not looked at of a file with several pictures, or ""; the others of an MPO are its preview or depth."""
    count = getattr(image, "n_frames", 1) if image.format not in JPEG_FORMATS else 1
    if count < 2:
        return ""
    if image.format == "TIFF":
        return f"has {count} pages and only the first is used; `wholebatch pages` makes a picture of every page"
    return f"is animated and only the first of its {count} pictures is used"


def unused_pictures_of(path: Path) -> str:
    """`unused_pictures` of a file, from its headers; "" where it is no image."""
    try:
        with opened(path) as image:
            return unused_pictures(image)
    except DECODING_ERRORS:
        return ""


def is_there(path: Path) -> bool:
    """Whether a file is there; a folder, a pipe or a dead link is none.

    Nor is a name that no file system takes (too long, with a NUL), and that is no error.
    """
    return os.path.isfile(path)


def encoded_fault(content: np.ndarray) -> str:
    """What the bytes of an image file tell before decoding: "" if nothing speaks against them.

    Decoders fill the missing part of a cut-off JPEG or PNG with grey and report success, so the end marker
    is looked for: in a JPEG the last start of scan (FF DA) must be followed by an end of image (FF D9).
    """
    if content.size == 0:
        return "the file is empty (0 bytes)"
    data = content.tobytes()
    foreign = _foreign(data)
    if foreign:
        return f"the file is {foreign}"
    is_cut_jpeg = data.startswith(b"\xff\xd8") and data.rfind(b"\xff\xd9") <= data.rfind(b"\xff\xda")
    is_cut_png = data.startswith(b"\x89PNG") and data.rfind(b"IEND") < 0
    if is_cut_jpeg or is_cut_png:
        return f"the picture is cut off (its end is missing after {content.size} bytes); copy it again"
    return ""


def _foreign(data: bytes) -> str:
    """What a file is that is no image to this program, "" if nothing is recognised."""
    text = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    for start, name in _FOREIGN_STARTS.items():
        if data.startswith(start) or text.startswith(start):
            what, _, way_out = name.partition("; ")
            return f"{what}, not an image" + (f"; {way_out}" if way_out else "")
    if data[4:8] == b"ftyp" and data[8:12] in _FTYP_BRANDS:
        return f"a {_FTYP_BRANDS[data[8:12]]}"
    if not any(data[:4096]):
        return "nothing but zeros at its start, not an image; copy it again"
    return ""


def image_size_hw(path: Path) -> tuple[int, int]:
    """(height, width) of the upright image from the file's header, without decoding it.

    Raises:
        DataError: missing, empty or not an image; names the file.
    """
    try:
        with opened(path) as image:
            return shown_size_hw(image)
    except DECODING_ERRORS as error:
        reason = encoded_fault(np.fromfile(path, dtype=np.uint8)) if is_there(path) else "no such file"
        raise DataError(f"{path}: {reason or f'not a readable image: {error}'}") from None
