"""How one invoice looks, and the page with its writing area."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pipelines.synthesis.canvas import Align, Canvas, Color, TextStyle
from pipelines.synthesis.fonts import FontFamily


@dataclass(frozen=True)
class Theme:
    """How one invoice looks; sizes in page pixels."""

    family: FontFamily
    body_px: int
    margin_px: int
    accent: Color
    ink: Color
    line_px: int
    letterhead: str  # logo_left, logo_right or centered
    table: str  # ruled, grid, zebra or plain
    has_dark_header: bool
    title_tracking_px: int

    def style(self, scale: float = 1.0, *, bold: bool = False, color: Color | None = None) -> TextStyle:
        """A style at `scale` x the body size; 7 px at least, below that nobody can label it."""
        font = self.family.bold if bold else self.family.regular
        return TextStyle(font, max(7, round(self.body_px * scale)), self.ink if color is None else color)

    @property
    def rule_px(self) -> int:
        """Thickness of a thin rule."""
        return max(1, round(self.body_px / 14))


def choose_theme(rng: np.random.Generator, family: FontFamily, size_hw: tuple[int, int], body_px: float) -> Theme:
    """A theme for a page; the body size varies by a tenth around `body_px`."""
    body = max(8, round(body_px * rng.uniform(0.92, 1.1)))
    accents: tuple[Color, ...] = ((120, 60, 20), (40, 40, 160), (60, 110, 40), (40, 40, 40), (110, 50, 110))
    shade = int(rng.integers(15, 85))
    return Theme(
        family=family,
        body_px=body,
        margin_px=round(min(size_hw) * rng.uniform(0.045, 0.075)),
        accent=accents[rng.integers(len(accents))],
        ink=(shade, shade, shade),
        line_px=round(body * rng.uniform(1.28, 1.5)),
        letterhead=("logo_left", "logo_right", "centered")[rng.integers(3)],
        table=("ruled", "grid", "zebra", "plain")[rng.integers(4)],
        has_dark_header=bool(rng.random() < 0.4),
        title_tracking_px=int(rng.integers(2, 5)) * body // 8 if rng.random() < 0.4 else 0,
    )


@dataclass
class Sheet:
    """A canvas with a theme and its writing area; `bottom` moves up as the foot is set first."""

    canvas: Canvas
    theme: Theme
    left: int = field(init=False)
    right: int = field(init=False)
    bottom: int = field(init=False)

    def __post_init__(self) -> None:
        height, width = self.canvas.image.shape[:2]
        self.left, self.right = self.theme.margin_px, width - self.theme.margin_px
        self.bottom = height - self.theme.margin_px

    def write(
        self, text: str, x: float, top: float, style: TextStyle, align: Align = "left", width: float = np.inf
    ) -> None:
        """One line whose em box starts at `top`, cut to `width`."""
        text = self.canvas.fitted(text, style, width)
        self.canvas.text(text, x, top + 0.86 * style.size_px, style, align)

    def rule(self, top: float, left: float, right: float, thickness: int = 1, color: Color | None = None) -> None:
        self.fill(left, top, right, top + thickness, self.theme.ink if color is None else color)

    def fill(self, left: float, top: float, right: float, bottom: float, color: Color) -> None:
        self.canvas.image[round(top) : round(bottom), round(left) : round(right)] = color
