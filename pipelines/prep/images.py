"""Image files on their way into a dataset: decoded once to prove them whole, and made upright 8-bit where needed."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from pipelines.dataset.image_files import (
    DECODING_ERRORS,
    JPEG_FORMATS,
    LARGEST_PIXELS,
    LARGEST_SIDE_PX,
    SIDEWAYS,
    decoded,
    encoded_fault,
    is_there,
    opened,
    orientation_of,
    shown_size_hw,
    stored_size_wh,
    unused_pictures,
)
from pipelines.errors import UsageError

DEFAULT_MAX_PIXELS = 200_000_000
"""A sheet of A2 at 600 dpi has 139 million pixels; decoded, 200 million fill 0.6 GB a core."""
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
        orientation: 1 to 8, how EXIF says the stored pixels are turned to be shown; 1 is not at all.
    """

    size_hw: tuple[int, int] = (0, 0)
    sha256: str = ""
    fault: str = ""
    conversion: str = ""
    note: str = ""
    suffix: str = ""
    orientation: int = 1

    @property
    def stored_hw(self) -> tuple[int, int]:
        """(height, width) of the stored pixels, before EXIF turns them."""
        return self.size_hw[::-1] if self.orientation in SIDEWAYS else self.size_hw


def examine_image(path: Path, max_pixels: int = LARGEST_PIXELS) -> ImageFacts:
    """Decode an image file wholly; threads may run this, as decoding and hashing release the GIL.

    One with more than `max_pixels` gets a fault from its header, undecoded.
    """
    if not is_there(path):  # a pipe would be waited for
        return ImageFacts(fault="is no file")
    try:
        content = path.read_bytes()
    except OSError as error:
        return ImageFacts(fault=f"can't be read: {error.strerror or error}")
    fault = encoded_fault(np.frombuffer(content, np.uint8))
    if fault:
        return ImageFacts(fault=fault)
    try:
        with opened(io.BytesIO(content)) as image:
            fault = unusable(image, max_pixels)
            if fault:
                return ImageFacts(fault=fault)
            facts = _facts(image, content)
            if facts.conversion or image.format != "JPEG":
                image.load()
    except UnidentifiedImageError:  # whose text holds an address in memory
        kinds = "JPEG, PNG, TIFF, BMP, WebP or GIF with 8 or 16 bits a channel"
        return ImageFacts(fault=f"can't be decoded as an image: expected {kinds}, but it starts with {content[:8]!r}")
    except DECODING_ERRORS as error:
        return ImageFacts(fault=f"can't be decoded as an image: {error}")
    # What is copied as it is will be read by OpenCV, which refuses some files that PIL takes.
    if not facts.conversion and decoded(content) is None:
        return ImageFacts(fault="can't be decoded as an image: damaged")
    return facts


def refuse_pixel_budget(max_pixels: int) -> None:
    """Raise UsageError where no picture of that many pixels could be used."""
    if not 0 < max_pixels <= LARGEST_PIXELS:
        largest = LARGEST_PIXELS // 10**6
        raise UsageError(
            f"--max-megapixels must be above 0 and at most {largest} (OpenCV decodes no more),"
            f" but got {max_pixels / 1e6:g}"
        )


def unusable(image: Image.Image, max_pixels: int) -> str:
    """Why an opened picture is not worth decoding: more than `max_pixels`, or pixels of another kind; or ""."""
    return _size_fault(image, max_pixels) or _pixel_fault(image)


def _size_fault(image: Image.Image, max_pixels: int) -> str:
    width, height = stored_size_wh(image)
    shown = f"has {width} x {height} px"
    if width * height > LARGEST_PIXELS or max(width, height) > LARGEST_SIDE_PX:
        limit = f"{LARGEST_PIXELS // 10**6} megapixels or a side of {LARGEST_SIDE_PX} px"
        return f"{shown}, and OpenCV decodes no more than {limit}; cut it into pieces"
    if width * height <= max_pixels:
        return ""
    needed = f"raise --max-megapixels if {3 * width * height / 1e6:.0f} MB a core are there"
    return f"{shown}, more than {max_pixels / 1e6:g} megapixels: {needed}, or cut it into pieces"


def _pixel_fault(image: Image.Image) -> str:
    return f"has 32-bit pixels ({image.mode}); save it with 8 or 16 bits" if image.mode in ("I", "F") else ""


def _facts(image: Image.Image, content: bytes) -> ImageFacts:
    orientation = orientation_of(image)
    conversion = _conversion(image, content, orientation)
    return ImageFacts(
        size_hw=shown_size_hw(image),
        sha256=hashlib.sha256(content).hexdigest(),
        conversion=conversion,
        note=unused_pictures(image),
        suffix=".png" if conversion and image.format not in JPEG_FORMATS else "",
        orientation=orientation,
    )


def _conversion(image: Image.Image, content: bytes, orientation: int) -> str:
    """Why the file can't go into a dataset byte for byte, or ""."""
    if orientation != 1:
        return f"EXIF orientation {orientation}: pixels turned upright"
    if image.format not in (*JPEG_FORMATS, "PNG"):
        return f"{image.format} saved as PNG"
    if "transparency" in image.info:
        return f"transparent {image.mode} pixels saved as 8-bit RGB"
    # Byte 24 of a PNG is its bit depth (PNG specification, IHDR); PIL hides it for RGB.
    if image.mode not in ("L", "RGB") or (image.format == "PNG" and content[24] != 8):
        return f"{image.mode} pixels saved as 8-bit RGB"
    return ""


def upright_bytes(path: Path) -> bytes:
    """The image as an `upright` file: JPEG of quality 95 where it was JPEG, else PNG."""
    with opened(path) as image:
        is_jpeg = image.format in JPEG_FORMATS
        picture = upright(image)
    encoded = io.BytesIO()
    if is_jpeg:
        picture.save(encoded, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    else:
        picture.save(encoded, "PNG")
    return encoded.getvalue()


def upright(image: Image.Image) -> Image.Image:
    """An opened image as it is shown, decoded to 8-bit RGB.

    Transparent pixels become paper white, 16-bit grey keeps its upper 8 bits.
    """
    image.load()
    orientation = orientation_of(image)  # 1 for a TIFF, which is upright by now
    return _eight_bit(image.transpose(_TURNS[orientation]) if orientation in _TURNS else image)


def _eight_bit(image: Image.Image) -> Image.Image:
    if image.mode in _SIXTEEN_BIT:
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if "A" in image.mode or "transparency" in image.info:
        layered = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layered.size, "white"), layered).convert("RGB")
    return image.convert("RGB")
