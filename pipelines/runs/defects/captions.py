"""Class names as a drawing can show them, with a font that has their letters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pipelines.synthesis.fonts import find_fonts, has_glyphs


@dataclass(frozen=True)
class Captions:
    """What stands for a class in a drawing.

    Attributes:
        names: by class id: its name, or "class 3" (counted from 1, as in COCO files) where the font lacks letters.
        font: file that has every letter of `names`.
        note: which names could not be drawn, or "".
    """

    names: tuple[str, ...]
    font: Path
    note: str = ""


@lru_cache
def captions_of(class_names: tuple[str, ...]) -> Captions:
    """The first font of this machine that has all letters; with none, the names that can't be drawn are counted."""
    fonts = find_fonts()
    files = [family.regular for family in (fonts.latin[0], *fonts.chinese)]
    for file in files:
        if all(has_glyphs(file, name) for name in class_names):
            return Captions(class_names, file)
    can_draw = {file: [has_glyphs(file, name) for name in class_names] for file in files}
    best = max(files, key=lambda file: sum(can_draw[file]))
    shown = [name if can_draw[best][i] else f"class {i + 1}" for i, name in enumerate(class_names)]
    said = ", ".join(f"{name} is {text}" for name, text in zip(class_names, shown, strict=True) if name != text)
    return Captions(tuple(shown), best, f"no font here has all letters of the class names; in the drawings {said}")
