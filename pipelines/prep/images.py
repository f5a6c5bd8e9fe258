"""Image files on their way into a dataset: decoded once to prove them whole, and made upright 8-bit where needed."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from pipelines.dataset.image_files import DECODING_ERRORS, ORIENTATION_TAG, decoded, encoded_fault

_SIXTEEN_BIT = ("I;16", "I;16B", "I;16L")
_JPEG_QUALITY = 95
# Not ImageOps.exif_transpose, which writes the rest of the EXIF anew and fails where that is damaged.
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True)
class ImageFacts:
    """What decoding an image file told.

    Attributes:
        size_hw: (height, width) of the upright image, px.
        sha256: of the file.
        fault: why it can't be used, or "".
        conversion: why it can't be copied as it is (rotated, 16 bits, ...), or "" if it can.
        note: what the user should know besides, or "".
        suffix: what to append to its name when converted, e.g. ".png".
        is_turned: its EXIF says that width and height are swapped when it is shown.
    """

    size_hw: tuple[int, int] = (0, 0)
    sha256: str = ""
    fault: str = ""
    conversion: str = ""
    note: str = ""
    suffix: str = ""
    is_turned: bool = False


def examine_image(path: Path) -> ImageFacts:
    """Decode an image file wholly; threads may run this, as decoding and hashing release the GIL."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return ImageFacts(fault=f"can't be read: {error.strerror or error}")
    fault = encoded_fault(np.frombuffer(content, np.uint8))
    if fault:
        return ImageFacts(fault=fault)
    try:
        with Image.open(io.BytesIO(content)) as image:
            facts = _facts(image, content)
            if facts.conversion or image.format != "JPEG":
                image.load()
    except DECODING_ERRORS as error:
        return ImageFacts(fault=f"can't be decoded as an image: {error}")
    # What is copied as it is will be read by OpenCV, which refuses some files that PIL takes.
    if not (facts.fault or facts.conversion) and decoded(content) is None:
        return ImageFacts(fault="can't be decoded as an image: damaged")
    return facts


def _facts(image: Image.Image, content: bytes) -> ImageFacts:
    orientation = image.getexif().get(ORIENTATION_TAG, 1)
    width, height = image.size
    pages = getattr(image, "n_frames", 1) if image.format != "MPO" else 1
    conversion = _conversion(image, content, orientation)
    is_turned = orientation in (5, 6, 7, 8)
    if image.mode in ("I", "F"):
        return ImageFacts(fault=f"has 32-bit pixels ({image.mode}); save it with 8 or 16 bits")
    return ImageFacts(
        size_hw=(width, height) if is_turned else (height, width),
        sha256=hashlib.sha256(content).hexdigest(),
        conversion=conversion,
        note=f"has {pages} pages and only the first is used" if pages > 1 else "",
        suffix=".png" if conversion and image.format != "JPEG" else "",
        is_turned=is_turned,
    )


def _conversion(image: Image.Image, content: bytes, orientation: int) -> str:
    """Why the file can't go into a dataset byte for byte, or ""."""
    if orientation not in (0, 1):
        return f"EXIF orientation {orientation}: pixels turned upright, labels taken as drawn on the upright image"
    if image.format not in ("JPEG", "MPO", "PNG"):
        return f"{image.format} saved as PNG"
    # Byte 24 of a PNG is its bit depth (PNG specification, IHDR); PIL hides it for RGB.
    if image.mode not in ("L", "RGB") or (image.format == "PNG" and content[24] != 8):
        return f"{image.mode} pixels saved as 8-bit RGB"
    return ""


def upright_bytes(path: Path) -> bytes:
    """The image as an upright 8-bit RGB file: JPEG of quality 95 where it was JPEG, else PNG.

    Transparent pixels become paper white, 16-bit grey keeps its upper 8 bits.
    """
    with Image.open(path) as image:
        is_jpeg = image.format == "JPEG"
        orientation = image.getexif().get(ORIENTATION_TAG, 1)
        turned = image.transpose(_TURNS[orientation]) if orientation in _TURNS else image
        upright = _eight_bit(turned)
    encoded = io.BytesIO()
    if is_jpeg:
        upright.save(encoded, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    else:
        upright.save(encoded, "PNG")
    return encoded.getvalue()


def _eight_bit(image: Image.Image) -> Image.Image:
    if image.mode in _SIXTEEN_BIT:
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if "A" in image.mode or "transparency" in image.info:
        layered = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layered.size, "white"), layered).convert("RGB")
    return image.convert("RGB")
