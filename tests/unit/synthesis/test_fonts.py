"""Fonts are found where matplotlib keeps them, and a font without a glyph is known to lack it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import UsageError
from pipelines.synthesis.fonts import find_fonts, has_glyphs


def test_latin_families_come_with_matplotlib_in_a_fixed_order() -> None:
    fonts = find_fonts()
    assert [family.regular.stem for family in fonts.latin[:2]] == ["DejaVuSans", "DejaVuSerif"]
    assert all(family.bold.is_file() for family in fonts.latin)


def test_a_latin_font_is_known_to_lack_chinese() -> None:
    path = find_fonts().latin[0].regular
    assert has_glyphs(path, "Zürich €5") and not has_glyphs(path, "A发票")


def test_every_chinese_font_found_has_the_glyphs() -> None:
    for family in find_fonts().chinese:  # may be none on this machine
        assert has_glyphs(family.regular, "发票税额合计数量")


def test_own_font_joins_in_front() -> None:
    own = find_fonts().latin[1].bold
    assert find_fonts([own]).latin[0].regular == own


def test_a_file_that_is_no_font_is_named(tmp_path: Path) -> None:
    path = tmp_path / "letters.ttf"
    path.write_bytes(b"not a font")
    with pytest.raises(UsageError, match=r"letters\.ttf: expected a TrueType"):
        find_fonts([path])
    with pytest.raises(UsageError, match=r"absent\.ttf"):
        find_fonts([tmp_path / "absent.ttf"])
