"""Second scans are found, other invoices on one form are not. Run: pytest tests/unit/prep/test_near_duplicates.py"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from pipelines.prep.near_duplicates import MIN_SIMILARITY, look_of, near_duplicates, similarity


def words(seed: int) -> Iterator[str]:
    rng = np.random.default_rng(seed)
    while True:
        yield "".join(chr(97 + letter) for letter in rng.integers(0, 26, rng.integers(5, 14)))


def invoice(seed: int) -> np.ndarray:
    """A page of 1400 x 1000 px: letterhead, field names and ruled table of all invoices, values of its own."""
    page = np.full((1400, 1000, 3), 250, np.uint8)
    printed, filled = words(7), words(1000 + seed)

    def write(text: str, x: int, y: int) -> None:
        cv2.putText(page, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.9, (20, 20, 20), 2)

    cv2.putText(page, "ACME INVOICE", (80, 120), cv2.FONT_HERSHEY_SIMPLEX, 2, (0, 0, 0), 4)
    for row in range(8):
        write(f"{next(printed)}:", 80, 220 + row * 50)
        write(next(filled), 420, 220 + row * 50)
    for row in range(12):
        cv2.line(page, (80, 650 + row * 45), (920, 650 + row * 45), (60, 60, 60), 2)
        for x in (90, 300, 520, 740):
            write(next(filled)[:9], x, 682 + row * 45)
    return page


def second_scan(page: np.ndarray, seed: int, resolution: float = 0.7) -> np.ndarray:
    """Turned by up to a degree, moved, darker, noisy, at another resolution, as a JPEG of quality 60."""
    rng = np.random.default_rng(seed)
    height, width = page.shape[:2]
    warp = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-1, 1), rng.uniform(0.97, 1.02))
    warp[:, 2] += rng.uniform(-12, 12, 2)
    turned = cv2.warpAffine(page, warp, (width, height), borderValue=(235, 235, 235))
    noisy = turned * rng.uniform(0.8, 1) + rng.normal(0, 6, page.shape)
    small = cv2.resize(noisy.clip(0, 255).astype(np.uint8), None, fx=resolution, fy=resolution)
    return cv2.imdecode(cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 60])[1], cv2.IMREAD_COLOR)


def test_a_second_scan_is_alike_and_another_invoice_on_the_form_is_not() -> None:
    pages = [look_of(invoice(seed)) for seed in range(4)]
    scans = [look_of(second_scan(invoice(seed), seed, 0.5 + seed / 8)) for seed in range(4)]
    same = [similarity(page, scan) for page, scan in zip(pages, scans, strict=True)]
    other = [similarity(pages[i], scans[j]) for i, j in itertools.permutations(range(4), 2)]
    assert min(same) > MIN_SIMILARITY + 0.03
    assert max(other) < MIN_SIMILARITY - 0.3


def test_the_form_alone_would_pass_as_a_duplicate() -> None:
    """The control: correlation of whole thumbnails, by which invoices on one form can't be told from second scans."""
    first, second = (look_of(invoice(seed)).thumbnail.astype(np.float32).ravel() for seed in (0, 1))
    assert np.corrcoef(first, second)[0, 1] > 0.7


def test_pairs_are_found_among_others_the_most_alike_first() -> None:
    train = {f"train/{seed}": look_of(invoice(seed)) for seed in range(6)}
    shown = {"new": invoice(20), "scan of 4": second_scan(invoice(4), 1), "2": invoice(2)}
    val = {name: look_of(page) for name, page in shown.items()}
    with ThreadPoolExecutor(2) as executor:
        found = near_duplicates(train, val, executor)
    assert [(pair.train, pair.val) for pair in found] == [("train/2", "2"), ("train/4", "scan of 4")]
    assert found[0].similarity == pytest.approx(1.0, abs=1e-3)


def test_blank_pages_are_no_duplicates_and_nothing_has_none() -> None:
    blank = {"blank": look_of(np.full((300, 200, 3), 255, np.uint8))}
    with ThreadPoolExecutor(1) as executor:
        assert near_duplicates(blank, blank, executor) == []
        assert near_duplicates({}, blank, executor) == near_duplicates(blank, {}, executor) == []
