"""One seeded invoice with exact labels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pipelines.records import TextAnnotation
from pipelines.synthesis.canvas import Canvas
from pipelines.synthesis.fonts import Fonts, find_fonts
from pipelines.synthesis.invoice_blocks import draw_invoice_page
from pipelines.synthesis.invoice_graphics import draw_barcode, draw_logo, draw_signature
from pipelines.synthesis.invoice_words import CHINESE, ENGLISH, GERMAN
from pipelines.synthesis.scan import ScanEffects, age, draw_homography, keep_inside, smear, warp
from pipelines.synthesis.sheet import Sheet, choose_theme

MIN_SIDE_PX = 256
MIN_BODY_PX = 8


@dataclass(frozen=True)
class InvoiceSpec:
    """What a page may be like.

    Attributes:
        size_hw: (height, width) in pixels; type scales with it.
        body_px: em size of the text; None for a size at which a page of 320 to 480 px width is readable. For an
            A4 page at 300 dpi, 10 pt are 42.
        blank_share: chance of a page without any text.
        ignored_share: chance that a line is smeared and becomes an ignore region.
        chinese_share: chance of a Chinese invoice where a font is there.
        effects: what the scan does to it.
    """

    size_hw: tuple[int, int] = (640, 480)
    body_px: float | None = None
    blank_share: float = 0.1
    ignored_share: float = 0.01
    chinese_share: float = 0.3
    effects: ScanEffects = field(default_factory=ScanEffects)

    def __post_init__(self) -> None:
        height, width = self.size_hw
        if min(height, width) < MIN_SIDE_PX:
            raise ValueError(f"size_hw must be at least {MIN_SIDE_PX} on each side, but got {self.size_hw}")
        # Letterhead, title, buyer and foot need some 28 lines; a label with its value some 15 letters of half a page.
        largest = min(width / 30, height / 28)
        if self.body_px is not None and not MIN_BODY_PX <= self.body_px <= largest:
            raise ValueError(
                f"body_px must lie in {MIN_BODY_PX} to {largest:.1f} on a page of {height} x {width} px, "
                f"but got {self.body_px}"
            )
        for name in ("blank_share", "ignored_share", "chinese_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie in 0 to 1, but got {getattr(self, name)}")


def draw_invoice(
    rng: np.random.Generator, spec: InvoiceSpec | None = None, fonts: Fonts | None = None
) -> tuple[np.ndarray, TextAnnotation]:
    """One scanned invoice; the same generator state gives the same bytes.

    Args:
        rng: the only source of chance.
        spec: what it may be like.
        fonts: from `find_fonts`; None looks for them.

    Returns:
        Image, uint8 BGR (height, width, 3), and its regions in pixels of that image: quads around the ink with the
        margin of `label_margin_px`, moved by the very map that moved the page.
    """
    spec = spec or InvoiceSpec()
    canvas = Canvas(spec.size_hw)
    if rng.random() < spec.blank_share:
        _draw_blank(canvas, rng)
    else:
        _draw_filled(canvas, spec, fonts or find_fonts(), rng)
    homography = draw_homography(rng, spec.size_hw, spec.effects)
    if canvas.regions:
        homography = keep_inside(homography, np.concatenate([r.points_px for r in canvas.regions]), spec.size_hw)
    border = (255, 255, 255) if rng.random() < 0.7 else (90, 90, 90)
    image, regions = warp(canvas.image, canvas.regions, homography, border)
    return age(image, rng, spec.effects.strength), TextAnnotation(tuple(regions))


def _draw_filled(canvas: Canvas, spec: InvoiceSpec, fonts: Fonts, rng: np.random.Generator) -> None:
    height, width = spec.size_hw
    is_chinese = bool(fonts.chinese) and rng.random() < spec.chinese_share
    words = CHINESE if is_chinese else (ENGLISH, GERMAN)[rng.integers(2)]
    families = fonts.chinese if is_chinese else fonts.latin
    body_px = spec.body_px or max(min(width / 34, height / 46), MIN_BODY_PX)
    theme = choose_theme(rng, families[rng.integers(len(families))], spec.size_hw, body_px)
    draw_invoice_page(Sheet(canvas, theme), words, rng)
    for index in np.flatnonzero(rng.random(len(canvas.regions)) < spec.ignored_share).tolist():
        canvas.redraw_as_ignored(index, smear)


def _draw_blank(canvas: Canvas, rng: np.random.Generator) -> None:
    """A page with marks but without text: the back of a sheet, a torn-off corner of one."""
    height, width = canvas.image.shape[:2]
    side = round(width * rng.uniform(0.1, 0.3))
    left, top = (int(rng.integers(0, limit - side)) for limit in (width, height))
    draw_logo(canvas.image, left, top, side, (120, 110, 90), rng)
    if rng.random() < 0.5:
        draw_barcode(canvas.image, (width // 8, height * 3 // 4), height // 16, rng)
    if rng.random() < 0.5:
        draw_signature(canvas.image, (width // 2, height * 5 // 8), width // 3, rng)
    for row in range(int(rng.integers(0, 8))):
        y = height // 4 + row * height // 24
        canvas.image[y : y + 1, width // 8 : width * 7 // 8] = 120
