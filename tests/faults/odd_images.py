"""Image files as people have them, each with what `prepare` makes of it or why it drops it."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from tests.faults import tiny_images as tiny

Colours = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class OddImage:
    """An image file that nobody expects.

    Attributes:
        write: makes it at a path.
        name: of the file, as it lies in its folder.
        dropped: words of the reason, "" where it is used.
        converted: words of how it is written anew, "" where it is copied.
        note: words of what else is told.
        size_wh: of the upright picture.
        colours: RGB of its quarters: top left, top right, bottom left, bottom right.
    """

    write: Callable[[Path], object]
    name: str = "odd.jpg"
    dropped: str = ""
    converted: str = ""
    note: str = ""
    size_wh: tuple[int, int] = (tiny.WIDTH, tiny.HEIGHT)
    colours: Colours = tiny.QUARTERS


def used(
    content: Callable[[], bytes],
    name: str,
    converted: str = "",
    *,
    note: str = "",
    size_wh: tuple[int, int] = (tiny.WIDTH, tiny.HEIGHT),
    colours: Colours = tiny.QUARTERS,
) -> OddImage:
    return OddImage(lambda path: path.write_bytes(content()), name, "", converted, note, size_wh, colours)


def dropped(content: Callable[[], bytes], words: str, name: str = "odd.jpg") -> OddImage:
    return OddImage(lambda path: path.write_bytes(content()), name, words)


def called(name: str) -> OddImage:
    """A sound JPEG of an odd name."""
    return used(lambda: tiny.encoded("JPEG"), name)


def cut(content: Callable[[], bytes], share: float, words: str, name: str) -> OddImage:
    return dropped(lambda: content()[: int(len(content()) * share)], words, name)


def _shown(orientation: int) -> Colours:
    """The quarters of the picture as a viewer shows it (EXIF 2.3, section 4.6.4)."""
    tl, tr, bl, br = tiny.QUARTERS
    return {
        1: (tl, tr, bl, br),
        2: (tr, tl, br, bl),
        3: (br, bl, tr, tl),
        4: (bl, br, tl, tr),
        5: (tl, bl, tr, br),
        6: (bl, tl, br, tr),
        7: (br, tr, bl, tl),
        8: (tr, br, tl, bl),
    }[orientation]


def turned(kind: str, name: str, orientation: int) -> OddImage:
    size_wh = (tiny.WIDTH, tiny.HEIGHT)
    return used(
        lambda: tiny.encoded(kind, exif=tiny.exif(orientation)),
        name,
        f"EXIF orientation {orientation}" if orientation > 1 else "",
        size_wh=size_wh[::-1] if orientation > 4 else size_wh,
        colours=_shown(orientation),
    )


def _zip() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.jpg", tiny.encoded("JPEG"))
    return content.getvalue()


def _unreadable(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every file, whatever its permissions say")
    path.write_bytes(tiny.encoded("JPEG"))
    path.chmod(0)


def _photo() -> bytes:
    return tiny.encoded("JPEG")


_TURNED = {
    **{f"JPEG, EXIF {n}": turned("JPEG", "odd.jpg", n) for n in range(1, 9)},
    **{f"PNG, EXIF {n}": turned("PNG", "odd.png", n) for n in (3, 6, 8)},
    **{f"TIFF, EXIF {n}": turned("TIFF", "odd.tif", n) for n in (3, 6, 8)},
    **{f"WebP, EXIF {n}": turned("WEBP", "odd.webp", n) for n in (3, 6, 8)},
}  # fmt: skip
_JPEGS = {
    "JPEG, EXIF 9": used(lambda: tiny.encoded("JPEG", exif=tiny.exif(9)), "odd.jpg"),
    "JPEG, damaged EXIF": used(lambda: tiny.encoded("JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff"), "odd.jpg"),
    "JPEG, progressive": used(lambda: tiny.encoded("JPEG", progressive=True), "odd.jpg"),
    "JPEG, grey": used(lambda: tiny.encoded("JPEG", "L"), "odd.jpg", colours=tiny.GREYS),
    "JPEG, CMYK as Adobe inverts it": used(lambda: tiny.encoded("JPEG", "CMYK"), "odd.jpg", "CMYK pixels"),
    "JPEG, CMYK without Adobe's marker": used(tiny.cmyk_jpeg_without_marker, "odd.jpg", "CMYK pixels"),
    "JPEG, YCCK": used(tiny.ycck_jpeg, "odd.jpg", "CMYK pixels"),
    "JPEG, restart markers": used(lambda: tiny.encoded("JPEG", restart_marker_rows=1), "odd.jpg"),
    "JPEG, dangling colour profile": used(lambda: tiny.encoded("JPEG", icc_profile=b"\0\0\x02junk"), "odd.jpg"),
    "JPEG with bytes after its end": used(lambda: _photo() + b"\0" * 900, "odd.jpg"),
    "MPO of a phone, with a preview": used(tiny.mpo, "odd.jpg"),
}
_PNGS = {
    "PNG, palette": used(lambda: tiny.encoded("PNG", "P"), "odd.png", "P pixels"),
    "PNG, 1 bit": used(lambda: tiny.encoded("PNG", "1"), "odd.png", "1 pixels", colours=tiny.BLACK_AND_WHITE),
    "PNG, grey": used(lambda: tiny.encoded("PNG", "L"), "odd.png", colours=tiny.GREYS),
    "PNG, grey with alpha": used(lambda: tiny.encoded("PNG", "LA"), "odd.png", "LA pixels", colours=tiny.GREYS),
    "PNG, RGBA": used(lambda: tiny.encoded("PNG", "RGBA"), "odd.png", "RGBA pixels"),
    "PNG, one colour transparent": used(
        lambda: tiny.encoded("PNG", transparency=tiny.RED), "odd.png", colours=(tiny.WHITE, *tiny.QUARTERS[1:]),
        converted="8-bit RGB"),
    "PNG, 16-bit grey": used(lambda: tiny.sixteen_bit(".png", "L"), "odd.png", "I;16 pixels", colours=tiny.GREYS),
    "PNG, 16-bit RGB": used(lambda: tiny.sixteen_bit(".png"), "odd.png", "saved as 8-bit RGB"),
    "PNG, interlaced": used(tiny.interlaced_png, "odd.png"),
    "APNG": used(lambda: tiny.animated("PNG"), "odd.png", note="animated and only the first of its 2 pictures"),
}  # fmt: skip
_TIFFS = {
    "TIFF, strips": used(lambda: tiny.tiff(tiny.rgb_tags(t278=16), [
        tiny.quarters()[y : y + 16].tobytes() for y in (0, 16, 32)]), "odd.tif", "TIFF saved as PNG"),
    "TIFF, tiles": used(tiny.tiled_tiff, "odd.tif", "TIFF saved as PNG"),
    "TIFF, a strip a channel": used(tiny.planar_tiff, "odd.tif", "TIFF saved as PNG"),
    "TIFF, big-endian": used(
        lambda: tiny.tiff(tiny.rgb_tags(), [tiny.quarters().tobytes()], ">"), "odd.tif", "TIFF saved as PNG"),
    "BigTIFF": used(
        lambda: tiny.tiff(tiny.rgb_tags(), [tiny.quarters().tobytes()], is_big=True), "odd.tif", "TIFF saved as PNG"),
    "TIFF, LZW": used(lambda: tiny.encoded("TIFF", compression="tiff_lzw"), "odd.tif", "TIFF saved as PNG"),
    "TIFF, JPEG inside": used(lambda: tiny.encoded("TIFF", compression="jpeg"), "odd.tif", "TIFF saved as PNG"),
    "TIFF, fax": used(
        lambda: tiny.encoded("TIFF", "1", compression="group4"), "odd.tif", "TIFF saved as PNG",
        colours=tiny.BLACK_AND_WHITE),
    "TIFF, CMYK": used(lambda: tiny.encoded("TIFF", "CMYK"), "odd.tif", "TIFF saved as PNG"),
    "TIFF, 16-bit grey": used(
        lambda: tiny.sixteen_bit(".tif", "L"), "odd.tif", "TIFF saved as PNG", colours=tiny.GREYS),
    "TIFF, 16-bit RGB": used(lambda: tiny.sixteen_bit(".tif"), "odd.tif", "TIFF saved as PNG"),
    "TIFF of three pages": used(tiny.pages_tiff, "odd.tif", "TIFF saved as PNG", note="has 3 pages and only the first"),
    "TIFF, floats": dropped(tiny.float_tiff, "has 32-bit pixels (F); save it with 8 or 16 bits", "odd.tif"),
}  # fmt: skip
_OTHERS = {
    "BMP, 24 bits": used(lambda: tiny.encoded("BMP"), "odd.bmp", "BMP saved as PNG"),
    "BMP, 1 bit": used(lambda: tiny.encoded("BMP", "1"), "odd.bmp", "BMP saved as PNG", colours=tiny.BLACK_AND_WHITE),
    "BMP, 4 bits": used(tiny.four_bit_bmp, "odd.bmp", "BMP saved as PNG"),
    "BMP, 8 bits run-length": used(tiny.run_length_bmp, "odd.bmp", "BMP saved as PNG"),
    "BMP, 16 bits": used(tiny.sixteen_bit_bmp, "odd.bmp", "BMP saved as PNG"),
    "BMP, top down": used(tiny.top_down_bmp, "odd.bmp", "BMP saved as PNG"),
    "BMP, 32 bits": used(lambda: tiny.encoded("BMP", "RGBA"), "odd.bmp", "BMP saved as PNG"),
    "GIF, animated": used(lambda: tiny.animated("GIF"), "odd.gif", "GIF saved as PNG", note="only the first of its 2"),
    "WebP, lossless": used(lambda: tiny.encoded("WEBP", lossless=True), "odd.webp", "WEBP saved as PNG"),
    "WebP, alpha": used(lambda: tiny.encoded("WEBP", "RGBA", lossless=True), "odd.webp", "WEBP saved as PNG"),
    "WebP, animated": used(
        lambda: tiny.animated("WEBP", lossless=True), "odd.webp", "WEBP saved as PNG", note="only the first of its 2"),
    "one pixel": used(lambda: tiny.two_coloured((1, 1)), "odd.png", size_wh=(1, 1), colours=(tiny.WHITE,) * 4),
    "1 x 20000 px": used(
        lambda: tiny.two_coloured((1, 20_000)), "odd.png", size_wh=(1, 20_000), colours=(tiny.WHITE,) * 4),
}  # fmt: skip
_NAMES = {
    "PNG called JPG": used(lambda: tiny.encoded("PNG"), "odd.jpg"),
    "JPEG called PNG": used(_photo, "odd.png"),
    "TIFF called JPG": used(lambda: tiny.encoded("TIFF"), "odd.jpg", "TIFF saved as PNG"),
    "upper-case suffix": called("ODD.JPG"),
    "two suffixes": called("odd.tar.jpeg"),
    "blanks in the name": called(" odd  one .jpg"),
    "Chinese name": called("发票（一）.jpg"),
    "picture in the name": called("🧾.jpg"),
    "percent in the name": called("odd%20one%2F.jpg"),
    "quotes in the name": called("odd'\"`one.jpg"),
    "back-slash in the name": called("odd\\one.jpg"),
    "hash, ampersand and brackets in the name": called("odd#[1]&{x}:*?.jpg"),
    "line break in the name": called("odd\none.jpg"),
    "tab in the name": called("odd\tone.jpg"),
    "line separator in the name": called("odd\u2028one\x85.jpg"),
    "leading dash in the name": called("-rf.jpg"),
    "leading dot in the name": called(".odd.jpg"),
    "name of 251 bytes, to be converted": used(lambda: tiny.encoded("TIFF"), "o" * 247 + ".tif", "TIFF saved as PNG"),
    "name that is no UTF-8": called(os.fsdecode(b"odd\xff\xfe.jpg")),
}
_DAMAGED = {
    "zero bytes": dropped(lambda: b"", "the file is empty (0 bytes)"),
    **{f"JPEG cut at {n} %": cut(_photo, n / 100, "cut off", "odd.jpg") for n in (30, 60, 90, 99)},
    "JPEG cut at 2 bytes": dropped(lambda: _photo()[:2], "cut off"),
    "JPEG, progressive, cut at 60 %": cut(
        lambda: tiny.encoded("JPEG", progressive=True), 0.6, "cut off", "odd.jpg"),
    "PNG cut at 60 %": cut(lambda: tiny.encoded("PNG"), 0.6, "cut off", "odd.png"),
    "TIFF cut at 60 %": cut(lambda: tiny.encoded("TIFF"), 0.6, "can't be decoded as an image", "odd.tif"),
    "BMP cut at 60 %": cut(lambda: tiny.encoded("BMP"), 0.6, "can't be decoded as an image", "odd.bmp"),
    "GIF cut at 60 %": cut(lambda: tiny.encoded("GIF"), 0.6, "can't be decoded as an image", "odd.gif"),
    "WebP cut at 60 %": cut(lambda: tiny.encoded("WEBP"), 0.6, "can't be decoded as an image", "odd.webp"),
    "web page": dropped(lambda: b"\xef\xbb\xbf \n<!DOCTYPE html><html>404", "an HTML or XML page"),
    "SVG": dropped(lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an HTML or XML page"),
    "PDF": dropped(lambda: b"%PDF-1.4\n", "a PDF, not an image; `wholebatch pages`"),
    "Git LFS pointer": dropped(lambda: b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "zip archive": dropped(_zip, "a zip archive"),
    "gzip archive": dropped(lambda: b"\x1f\x8b\x08\0" + b"\1" * 60, "a gzip archive"),
    "what macOS keeps beside a picture": dropped(lambda: b"\0\x05\x16\x07\0\2\0\0Mac OS X", "AppleDouble", "._odd.jpg"),
    "Photoshop document": dropped(lambda: b"8BPS\0\1" + b"\0" * 60, "a Photoshop document, not an image; save it"),
    "HEIC": dropped(lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "a HEIC picture; convert it"),
    "JPEG XL": dropped(lambda: b"\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL picture, not an image; convert it"),
    "JPEG XL codestream": dropped(lambda: b"\xff\x0a\xfa\x1f\x01", "a JPEG XL picture, not an image; convert it"),
    "video": dropped(lambda: b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41", "a video; take pictures out of it"),
    "nothing but zeros": dropped(lambda: b"\0" * 5000, "nothing but zeros"),
    "plain text": dropped(lambda: b"see the other folder\n", "can't be decoded as an image: expected JPEG, PNG"),
    "header that promises 60000 x 60000 px": dropped(
        lambda: tiny.png_header(60_000, 60_000), "OpenCV decodes no more than", "odd.png"),
    "header that promises 20000 x 20000 px": dropped(
        lambda: tiny.png_header(20_000, 20_000), "more than 200 megapixels: raise --max-megapixels", "odd.png"),
    "JPEG damaged in its tables": dropped(lambda: _photo()[:20] + b"\0" * 300 + _photo()[320:], "can't be decoded"),
}  # fmt: skip
_NO_FILES = {
    "link to nowhere": OddImage(lambda path: path.symlink_to("gone.jpg"), dropped="image not found"),
    "link in a circle": OddImage(lambda path: path.symlink_to(path.name), dropped="image not found"),
    "folder called odd.jpg": OddImage(lambda path: path.mkdir(), dropped="image not found"),
    "named pipe": OddImage(lambda path: os.mkfifo(path), dropped="image not found"),
    "no permission to read": OddImage(_unreadable, dropped="can't be read: Permission denied"),
}
ODD_IMAGES = _TURNED | _JPEGS | _PNGS | _TIFFS | _OTHERS | _NAMES | _DAMAGED | _NO_FILES


def expected_picture(odd: OddImage) -> Image.Image:
    """What the dataset must hold."""
    corners = Image.new("RGB", (2, 2))
    corners.putdata(odd.colours)
    return corners.resize(odd.size_wh, Image.Resampling.NEAREST)
