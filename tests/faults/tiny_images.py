"""Image files in every format and pixel kind, of one picture: red, green, blue and white quarters, 64 x 48 px.

The formats that Pillow can't write are put together by hand from their specifications.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
from PIL import Image

WIDTH, HEIGHT = 64, 48
RED, GREEN, BLUE, WHITE = (230, 30, 30), (30, 230, 30), (30, 30, 230), (255, 255, 255)
QUARTERS = (RED, GREEN, BLUE, WHITE)
"""Top left, top right, bottom left, bottom right."""
BLACK_AND_WHITE = ((0, 0, 0), WHITE, (0, 0, 0), WHITE)
GREYS = tuple((round(0.299 * r + 0.587 * g + 0.114 * b),) * 3 for r, g, b in QUARTERS)


def quarters() -> np.ndarray:
    """The picture: uint8 (48, 64, 3), RGB."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    halves = [slice(0, HEIGHT // 2), slice(HEIGHT // 2, None)], [slice(0, WIDTH // 2), slice(WIDTH // 2, None)]
    for index, colour in enumerate(QUARTERS):
        pixels[halves[0][index // 2], halves[1][index % 2]] = colour
    return pixels


def picture(mode: str = "RGB") -> Image.Image:
    """In another pixel kind, without dots of other colours."""
    plain = Image.fromarray(quarters())
    return plain.quantize(4) if mode == "P" else plain.convert(mode, dither=Image.Dither.NONE)


def encoded(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    """The picture as Pillow writes it."""
    content = io.BytesIO()
    picture(mode).save(content, kind, **({"quality": 95, "subsampling": 0} if kind == "JPEG" else {}) | options)
    return content.getvalue()


def exif(orientation: int) -> Image.Exif:
    tags = Image.Exif()
    tags[274] = orientation
    return tags


def sixteen_bit(suffix: str, mode: str = "RGB") -> bytes:
    """16 bits a channel, by OpenCV; the upper 8 are the picture's."""
    pixels = np.asarray(picture(mode)).astype(np.uint16) * 257
    return cv2.imencode(suffix, pixels[..., ::-1] if mode == "RGB" else pixels)[1].tobytes()


def ycck_jpeg() -> bytes:
    """CMYK stored as Adobe does it: inverted, and its CMY as YCbCr (transform 2 in the APP14 marker)."""
    luma_chroma = np.asarray(Image.fromarray(255 - quarters()).convert("YCbCr"))
    black = np.full((HEIGHT, WIDTH, 1), 255, np.uint8)
    content = io.BytesIO()
    # Pillow inverts what it writes as CMYK
    stored = Image.fromarray(255 - np.concatenate([luma_chroma, black], axis=2), "CMYK")
    stored.save(content, "JPEG", quality=95, subsampling=0)
    data = bytearray(content.getvalue())
    data[data.index(b"Adobe") + 11] = 2
    return bytes(data)


def cmyk_jpeg_without_marker() -> bytes:
    """Read as inverted all the same, as browsers, Pillow and OpenCV do."""
    data = encoded("JPEG", "CMYK")
    start = data.index(b"\xff\xee")
    return data[:start] + data[start + 2 + int.from_bytes(data[start + 2 : start + 4], "big") :]


def mpo() -> bytes:
    """A photo with a preview behind it."""
    content = io.BytesIO()
    preview = Image.new("RGB", (16, 12))
    picture().save(content, "MPO", save_all=True, append_images=[preview], quality=95)
    return content.getvalue()


def animated(kind: str, **options: Any) -> bytes:
    """Two pictures one after the other, the second all black."""
    content = io.BytesIO()
    picture().save(content, kind, save_all=True, append_images=[Image.new("RGB", (WIDTH, HEIGHT))], **options)
    return content.getvalue()


def png_of(chunks: Mapping[bytes, bytes]) -> bytes:
    """A PNG of these chunks, whatever they hold."""
    content = b"\x89PNG\r\n\x1a\n"
    for name, body in {**chunks, b"IEND": b""}.items():
        content += struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return content


def png_header(width: int, height: int) -> bytes:
    """A PNG that promises a grey picture of this size and holds a line of nothing."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return png_of({b"IHDR": header, b"IDAT": zlib.compress(b"\0" * 64)})


def interlaced_png() -> bytes:
    """Adam7: seven coarser pictures one after the other (PNG specification, 8.2)."""
    pixels = quarters()
    lines = b""
    for top, left, down, right in (
        (0, 0, 8, 8),
        (0, 4, 8, 8),
        (4, 0, 8, 4),
        (0, 2, 4, 4),
        (2, 0, 4, 2),
        (0, 1, 2, 2),
        (1, 0, 2, 1),
    ):
        lines += b"".join(b"\0" + row.tobytes() for row in pixels[top::down, left::right])
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 1)
    return png_of({b"IHDR": header, b"IDAT": zlib.compress(lines)})


def bmp(bits: int, rows: np.ndarray, palette: bytes = b"", compression: int = 0, height: int = HEIGHT) -> bytes:
    """A BMP of rows of bytes, bottom row first unless `height` is negative."""
    stride = -(-rows.shape[1] // 4) * 4
    body = b"".join(row.tobytes().ljust(stride, b"\0") for row in rows)
    masks = struct.pack("<III", 0xF800, 0x07E0, 0x001F) if compression == 3 else b""
    start = 14 + 40 + len(masks) + len(palette)
    header = struct.pack("<2sIHHI", b"BM", start + len(body), 0, 0, start)
    colours = len(palette) // 4
    fields = struct.pack("<IiiHHIIiiII", 40, WIDTH, height, 1, bits, compression, len(body), 0, 0, colours, 0)
    return header + fields + masks + palette + body


def _quarter_numbers() -> np.ndarray:
    """uint8 (48, 64): 0 to 3, which quarter a pixel lies in."""
    rows, columns = np.indices((HEIGHT, WIDTH))
    return ((rows >= HEIGHT // 2) * 2 + (columns >= WIDTH // 2)).astype(np.uint8)


_PALETTE = b"".join(bytes((*colour[::-1], 0)) for colour in QUARTERS)


def four_bit_bmp() -> bytes:
    numbers = _quarter_numbers()[::-1]
    return bmp(4, (numbers[:, ::2] << 4) | numbers[:, 1::2], _PALETTE)


def sixteen_bit_bmp() -> bytes:
    """5 bits red, 6 green, 5 blue."""
    red, green, blue = quarters()[::-1].astype(np.uint16).transpose(2, 0, 1)
    packed = (red >> 3 << 11) | (green >> 2 << 5) | (blue >> 3)
    return bmp(16, packed.astype("<u2").view(np.uint8), compression=3)


def top_down_bmp() -> bytes:
    return bmp(24, np.ascontiguousarray(quarters()[..., ::-1]).reshape(HEIGHT, -1), height=-HEIGHT)


def run_length_bmp() -> bytes:
    """8 bits, RLE8: a count and a palette entry, each row closed by 0 0, the picture by 0 1."""
    half = WIDTH // 2
    rows = [bytes((half, row[0], half, row[-1], 0, 0)) for row in _quarter_numbers()[::-1]]
    data = np.frombuffer(b"".join(rows) + b"\0\1", np.uint8)[None]
    return bmp(8, data, _PALETTE, compression=1)


def tiff(tags: Mapping[int, Any], blocks: list[bytes], order: str = "<", is_big: bool = False) -> bytes:
    """A TIFF of one directory (TIFF 6.0, section 2), its strips or tiles after the header.

    Args:
        tags: numbers by tag; written as 16 bits, places and lengths as 32.
        blocks: strips, or tiles where `tags` has a tile's width.
        order: "<" or ">".
        is_big: as BigTIFF, with places of 64 bits.
    """
    place, count, size = ("Q", "Q", 8) if is_big else ("I", "H", 4)
    places, content = [], bytearray(16 if is_big else 8)
    for block in blocks:
        places.append(len(content))
        content += block
    where, lengths = (324, 325) if 322 in tags else (273, 279)
    entries = {**{tag: ("H", value) for tag, value in tags.items()}, where: ("I", places)}
    entries[lengths] = ("I", [len(block) for block in blocks])
    directory = struct.pack(f"{order}{count}", len(entries))
    for tag, (code, value) in sorted(entries.items()):
        values = value if isinstance(value, list | tuple) else [value]
        body = struct.pack(f"{order}{len(values)}{code}", *values)
        if len(body) > size:
            at = len(content)
            content += body
            body = struct.pack(f"{order}{place}", at)
        kind = {"H": 3, "I": 4}[code]
        directory += struct.pack(f"{order}HH{place}", tag, kind, len(values)) + body.ljust(size, b"\0")
    start = len(content)
    content += directory + struct.pack(f"{order}{place}", 0)
    version = struct.pack(f"{order}HHHQ", 43, 8, 0, start) if is_big else struct.pack(f"{order}HI", 42, start)
    content[: 2 + len(version)] = (b"II" if order == "<" else b"MM") + version
    return bytes(content)


def rgb_tags(**more: int) -> dict[int, Any]:
    tags = {256: WIDTH, 257: HEIGHT, 258: (8, 8, 8), 259: 1, 262: 2, 277: 3, 278: HEIGHT}
    return {**tags, **{int(name[1:]): value for name, value in more.items()}}


def tiled_tiff() -> bytes:
    """Twelve tiles of 16 x 16 px."""
    pixels = quarters()
    tiles = [pixels[y : y + 16, x : x + 16].tobytes() for y in range(0, HEIGHT, 16) for x in range(0, WIDTH, 16)]
    return tiff(rgb_tags(t322=16, t323=16), tiles)


def planar_tiff() -> bytes:
    """A strip a channel."""
    return tiff(rgb_tags(t284=2), [quarters()[..., channel].tobytes() for channel in range(3)])


def float_tiff() -> bytes:
    tags = {256: WIDTH, 257: HEIGHT, 258: 32, 259: 1, 262: 1, 277: 1, 278: HEIGHT, 339: 3}
    return tiff(tags, [np.zeros((HEIGHT, WIDTH), "<f4").tobytes()])


def pages_tiff(num_pages: int = 3, **options: Any) -> bytes:
    content = io.BytesIO()
    others = [Image.new("RGB", (WIDTH, HEIGHT), (40 * n, 0, 0)) for n in range(1, num_pages)]
    picture().save(content, "TIFF", save_all=True, append_images=others, **options)
    return content.getvalue()


def two_coloured(size_wh: tuple[int, int]) -> bytes:
    """A white PNG of another size."""
    content = io.BytesIO()
    Image.new("RGB", size_wh, "white").save(content, "PNG")
    return content.getvalue()
