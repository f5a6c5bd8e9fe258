"""Whole invoices: the seed decides every byte, and labels hold on every size of page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely

from pipelines.records import TextAnnotation
from pipelines.synthesis.fonts import find_fonts
from pipelines.synthesis.invoices import InvoiceSpec, draw_invoice
from pipelines.synthesis.scan import ScanEffects

FONTS = find_fonts()
TEXT_ONLY = InvoiceSpec(blank_share=0, ignored_share=0)
CLEAN = replace(TEXT_ONLY, effects=ScanEffects(0, 0, 0))
SIZES_HW = [(256, 256), (448, 320), (640, 480), (480, 640), (900, 300), (256, 900)]


def draw(seed: int, spec: InvoiceSpec) -> tuple[np.ndarray, TextAnnotation]:
    return draw_invoice(np.random.default_rng(seed), spec, FONTS)


def test_same_seed_gives_the_same_bytes_and_another_seed_other_ones() -> None:
    image, annotation = draw(3, TEXT_ONLY)
    image_again, annotation_again = draw(3, TEXT_ONLY)
    np.testing.assert_array_equal(image, image_again)
    for region, region_again in zip(annotation.regions, annotation_again.regions, strict=True):
        np.testing.assert_array_equal(region.points_px, region_again.points_px)
    assert (image != draw(4, TEXT_ONLY)[0]).any()


@pytest.mark.parametrize("size_hw", SIZES_HW)
@pytest.mark.parametrize("seed", range(4))
def test_regions_lie_on_the_page_and_do_not_cover_each_other(size_hw: tuple[int, int], seed: int) -> None:
    image, annotation = draw(seed, replace(TEXT_ONLY, size_hw=size_hw))
    assert image.shape == (*size_hw, 3) and image.dtype == np.uint8 and len(annotation.regions) >= 10
    points = np.concatenate([region.points_px for region in annotation.regions])
    assert (points >= 0).all() and (points <= size_hw[::-1]).all()
    quads = shapely.polygons([region.points_px for region in annotation.regions])
    shared = shapely.area(shapely.intersection(quads[:, None], quads[None, :]))
    np.fill_diagonal(shared, 0)
    # Margins of neighbouring lines may touch; the ink of one never lies in the region of another.
    assert (shared / shapely.area(quads)).max() < 0.2


@pytest.mark.parametrize("seed", range(4))
def test_every_region_holds_ink_that_reaches_for_all_four_sides(seed: int) -> None:
    image, annotation = draw(seed, CLEAN)
    for region in annotation.regions:
        left, top = region.points_px.min(axis=0).round().astype(int)
        right, bottom = region.points_px.max(axis=0).round().astype(int)
        inside = image[top:bottom, left:right].astype(int)
        differs = np.abs(inside - np.median(inside, axis=(0, 1))).max(axis=2) > 25
        rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
        margins = (rows[0], columns[0], len(differs) - 1 - rows[-1], differs.shape[1] - 1 - columns[-1])
        assert max(margins) <= 3, (region.transcription, margins)


def test_a_table_cell_is_a_region_of_its_own_also_when_it_is_one_digit() -> None:
    _, annotation = draw(0, CLEAN)
    lone_digits = [region for region in annotation.regions if len(region.transcription) == 1]
    assert len(lone_digits) >= 8


def test_blank_pages_have_no_regions_and_come_at_the_share_asked_for() -> None:
    spec = InvoiceSpec(size_hw=(256, 256), blank_share=0.5)
    num_blank = sum(not draw(seed, spec)[1].regions for seed in range(40))
    assert 10 <= num_blank <= 30
    image, annotation = draw(0, replace(spec, blank_share=1.0))
    assert annotation.regions == () and image.std() > 3


def test_smeared_lines_are_ignore_regions() -> None:
    _, annotation = draw(0, replace(TEXT_ONLY, ignored_share=0.3))
    ignored = [region for region in annotation.regions if region.is_ignored]
    assert 0.1 < len(ignored) / len(annotation.regions) < 0.5
    assert {region.transcription for region in ignored} == {"###"}
    assert not any(region.is_ignored for region in draw(0, TEXT_ONLY)[1].regions)


def test_letters_grow_with_the_page_unless_told_otherwise() -> None:
    def median_height(spec: InvoiceSpec) -> float:
        regions = draw(1, spec)[1].regions
        return float(np.median([np.linalg.norm(region.points_px[3] - region.points_px[0]) for region in regions]))

    small, large = median_height(TEXT_ONLY), median_height(replace(TEXT_ONLY, size_hw=(1280, 960)))
    assert large / small == pytest.approx(2, rel=0.15)
    assert median_height(replace(TEXT_ONLY, size_hw=(1280, 960), body_px=14)) == pytest.approx(small, rel=0.15)


def test_chinese_invoices_where_a_font_is_there() -> None:
    if not FONTS.chinese:
        pytest.skip("no font with Chinese glyphs on this machine")
    _, annotation = draw(0, replace(TEXT_ONLY, chinese_share=1.0))
    assert any("\u4e00" <= region.transcription[0] <= "\u9fff" for region in annotation.regions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size_hw": (255, 600)}, "at least 256 on each side"),
        ({"body_px": 40}, r"body_px must lie in 8 to 16.0 on a page of 640 x 480"),
        ({"body_px": 7.9}, "body_px must lie in"),
        ({"blank_share": 10}, "blank_share must lie in 0 to 1"),
        ({"chinese_share": -0.1}, "chinese_share must lie in 0 to 1"),
    ],
)
def test_a_spec_that_makes_no_page_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        InvoiceSpec(**changes)
