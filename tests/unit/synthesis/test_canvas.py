"""Labels are the ink: measured here again on the pixels, without the code that made them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from pipelines.synthesis.canvas import Canvas, TextStyle, ink_of, label_margin_px
from pipelines.synthesis.fonts import find_fonts, load_font

FONT = find_fonts().latin[0].regular
BLACK = TextStyle(FONT, 12, (0, 0, 0))


def ink_extent(image: np.ndarray) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of whatever is not paper, right and bottom exclusive."""
    rows, columns = np.nonzero((image < 255).any(axis=2))
    return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1


@pytest.mark.parametrize("text", ["Total due", "7", "g", ".", "Ölwechsel", "1,234.50", "  padded  "])
@pytest.mark.parametrize("size_px", [8, 12, 27])
@pytest.mark.parametrize("tracking_px", [0, 5])
def test_region_is_the_ink_of_the_page_plus_the_margin(text: str, size_px: int, tracking_px: int) -> None:
    canvas = Canvas((100, 500))
    canvas.text(text, 30, 60, TextStyle(FONT, size_px, (0, 0, 0), tracking_px))
    left, top, right, bottom = ink_extent(canvas.image)
    margin = label_margin_px(size_px)
    box = canvas.regions[0].points_px
    assert box.min(axis=0).tolist() == [left - margin, top - margin]
    assert box.max(axis=0).tolist() == [right + margin, bottom + margin]


def test_font_metrics_would_have_failed_the_ink_test() -> None:
    # The control: what `getbbox` says of a "1" reaches to the pen's advance, not to the last pixel of ink.
    left, _, right, _ = load_font(FONT, 24).getbbox("1", anchor="ls")
    assert right - left > ink_of("1", FONT, 24).coverage.shape[1]


@pytest.mark.parametrize(("align", "edge"), [("left", 0), ("right", 1)])
def test_alignment_puts_the_ink_not_the_pen_at_x(align: str, edge: int) -> None:
    canvas = Canvas((60, 200))
    canvas.text("1 A", 100, 30, BLACK, align)
    left, _, right, _ = ink_extent(canvas.image)
    assert (left, right)[edge] == 100


def test_margin_is_a_pixel_for_small_letters_two_for_larger_and_a_share_for_large_ones() -> None:
    assert [label_margin_px(size) for size in (8, 13, 14, 28, 60, 146)] == [1, 1, 2, 2, 5, 12]


@pytest.mark.parametrize("degrees", [-20.0, -3.0, 0.0, 7.5, 90.0])
def test_turned_text_keeps_its_ink_inside_its_quad_and_touches_every_side(degrees: float) -> None:
    canvas = Canvas((240, 240))
    style = TextStyle(FONT, 30, (0, 0, 0))
    canvas.turned_text("PAID", (120, 120), style, degrees)
    assert_tight(canvas.image, canvas.regions[0].points_px, label_margin_px(30))


def test_tightness_check_fails_for_a_quad_half_a_letter_off() -> None:
    canvas = Canvas((240, 240))
    canvas.turned_text("PAID", (120, 120), TextStyle(FONT, 30, (0, 0, 0)), 7.5)
    with pytest.raises(AssertionError):
        assert_tight(canvas.image, canvas.regions[0].points_px + 5, label_margin_px(30))


def assert_tight(image: np.ndarray, quad: np.ndarray, margin: float) -> None:
    """Ink comes within a pixel of `margin` of all four sides of a quad, and nowhere further out."""
    rows, columns = np.nonzero((image < 128).all(axis=2))
    middles = np.stack([columns, rows], axis=1) + 0.5
    for start, end in zip(quad, np.roll(quad, -1, axis=0), strict=True):
        (dx, dy), length = end - start, np.linalg.norm(end - start)
        inward = ((middles[:, 1] - start[1]) * dx - (middles[:, 0] - start[0]) * dy) / length
        assert margin - 0.5 <= inward.min() <= margin + 1.5


def test_letter_spacing_widens_one_region_instead_of_making_many() -> None:
    canvas = Canvas((80, 400))
    canvas.text("INVOICE", 20, 30, BLACK)
    canvas.text("INVOICE", 20, 60, TextStyle(FONT, 12, (0, 0, 0), 6))
    plain, spaced = (np.ptp(region.points_px[:, 0]) for region in canvas.regions)
    assert len(canvas.regions) == 2 and spaced - plain == pytest.approx(6 * 6, abs=4)  # 6 gaps, whole pixels each


def test_text_beyond_the_page_is_refused_because_its_label_would_be_wrong() -> None:
    with pytest.raises(ValueError, match="must lie on the 100 x 40 page"):
        Canvas((40, 100)).text("Much too long for it", 50, 20, BLACK)
    with pytest.raises(ValueError, match="visible ink"):
        Canvas((40, 100)).text("   ", 50, 20, BLACK)


def test_fitted_drops_words_then_letters_and_keeps_what_fits() -> None:
    canvas = Canvas((10, 10))
    whole = canvas.width_px("Copy paper A4", BLACK)
    assert canvas.fitted("Copy paper A4", BLACK, whole) == "Copy paper A4"
    assert canvas.fitted("Copy paper A4", BLACK, whole - 1) == "Copy paper"
    assert canvas.fitted("Copy", BLACK, 1) == "C"


def test_smeared_region_is_ignored_and_no_longer_the_same_pixels() -> None:
    canvas = Canvas((60, 200))
    canvas.text("secret", 20, 30, BLACK)
    canvas.redraw_as_ignored(0, lambda window: cv2.blur(window, (31, 3)))
    assert canvas.regions[0].is_ignored and canvas.regions[0].transcription == "###"
    assert canvas.image.min() > 60
