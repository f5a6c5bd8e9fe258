"""Which fonts there are: the Latin ones come with matplotlib, a Chinese one is used where the machine has it.

`pip install mplfonts` is an easy way to have one; otherwise the system's font folders are searched.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from PIL import ImageFont

from pipelines.errors import UsageError

CHINESE_PROBE = "发票税额"
CHINESE_NAMES = (
    "notosanscjk", "notosanssc", "notoserifcjk", "sourcehan", "wqy", "droidsansfallback", "uming", "ukai",
    "simfang", "simsun", "simhei", "msyh", "pingfang", "stheiti",
)  # fmt: skip
SYSTEM_FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.fonts",
    "~/.local/share/fonts",
    "~/.paddlex/fonts",
    "/Library/Fonts",
    "/System/Library/Fonts",
    "C:/Windows/Fonts",
)
LATIN_FAMILIES = (
    ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    ("DejaVuSerif.ttf", "DejaVuSerif-Bold.ttf"),
    ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf"),
    ("STIXGeneral.ttf", "STIXGeneralBol.ttf"),
)


@dataclass(frozen=True)
class FontFamily:
    """Font files of one typeface; `bold` is `regular` again where there is no bold file."""

    regular: Path
    bold: Path


@dataclass(frozen=True)
class Fonts:
    """Families by script, in a fixed order, so that a seed picks the same one every time."""

    latin: tuple[FontFamily, ...]
    chinese: tuple[FontFamily, ...] = ()


@lru_cache(maxsize=256)
def load_font(path: Path, size_px: int) -> ImageFont.FreeTypeFont:
    """A font at an em size; basic layout, because the complex one differs between machines."""
    return ImageFont.truetype(str(path), size_px, layout_engine=ImageFont.Layout.BASIC)


def has_glyphs(path: Path, text: str) -> bool:
    """Whether a font file can draw every character of `text` (it draws a box for those it lacks)."""
    try:
        font = load_font(path, 16)
    except OSError:
        return False  # not a font that FreeType reads, so it can't draw anything
    missing = bytes(font.getmask("\uffff"))
    return all(bytes(font.getmask(character)) != missing for character in text)


def find_fonts(extra_paths: Sequence[Path] = ()) -> Fonts:
    """Latin families that ship with matplotlib, and Chinese fonts from `extra_paths`, the system and caches.

    Args:
        extra_paths: font files of the user's own; a file with Chinese glyphs joins the Chinese ones, any other
            the Latin ones.

    Returns:
        All families by script; the user's own come first.

    Raises:
        UsageError: a file in `extra_paths` is no readable font, or no Latin font is there at all.
    """
    for path in extra_paths:
        if not has_glyphs(path, "A1"):
            raise UsageError(f"{path}: expected a TrueType or OpenType font with Latin letters; give another file")
    own = [FontFamily(path, path) for path in extra_paths]
    own_chinese = [family for family in own if has_glyphs(family.regular, CHINESE_PROBE)]
    latin = tuple(family for family in own if family not in own_chinese) + _matplotlib_families()
    if not latin:
        raise UsageError("no Latin font found: `pip install matplotlib` (it brings DejaVu), or pass font files")
    return Fonts(latin, tuple(own_chinese) or _system_chinese())


def _package_folders(package: str, *below: str) -> list[Path]:
    """A folder of an installed package, without importing it (matplotlib takes longer than drawing a page)."""
    spec = importlib.util.find_spec(package)
    return [] if spec is None or spec.origin is None else [Path(spec.origin).parent.joinpath(*below)]


def _matplotlib_families() -> tuple[FontFamily, ...]:
    families = [
        FontFamily(folder / regular, folder / bold)
        for folder in _package_folders("matplotlib", "mpl-data", "fonts", "ttf")
        for regular, bold in LATIN_FAMILIES
    ]
    return tuple(family for family in families if family.regular.is_file() and family.bold.is_file())


@lru_cache(maxsize=1)
def _system_chinese() -> tuple[FontFamily, ...]:
    """The first Chinese font file by the order of `CHINESE_NAMES`, then by name; empty without one."""
    folders = [Path(folder).expanduser() for folder in SYSTEM_FOLDERS] + _package_folders("mplfonts", "fonts")
    files = sorted(
        path
        for folder in folders
        if folder.is_dir()
        for path in folder.rglob("*")
        if path.suffix.lower() in {".ttf", ".ttc", ".otf"}
    )
    for name in CHINESE_NAMES:
        for path in files:
            if path.stem.lower().replace("-", "").startswith(name) and has_glyphs(path, CHINESE_PROBE + "A1"):
                return (FontFamily(path, path),)
    return ()
