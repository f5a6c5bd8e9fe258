"""Second scans are found, other invoices on one form are not. Run: pytest tests/unit/prep/test_near_duplicates.py"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.prep import near_duplicates as module
from pipelines.prep.near_duplicates import MAX_DISTANCE, MIN_CORRELATION, Look, look_at, look_of, near_duplicates
from pipelines.prep.same_picture import SAME_FROM, agreement


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


def grey(page: np.ndarray) -> np.ndarray:
    return cv2.cvtColor(page, cv2.COLOR_BGR2GRAY)


def written(root: Path, pages: Mapping[str, np.ndarray]) -> dict[str, Look]:
    """The pages as files below `root`, and what is kept of them."""
    for name, page in pages.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(cv2.imencode(".png", page)[1].tobytes())
    return {name: look_at(root / name, page.shape[:2]) for name, page in pages.items()}


def test_a_second_scan_agrees_everywhere_and_another_invoice_on_the_form_does_not() -> None:
    pages = [grey(invoice(seed)) for seed in range(4)]
    scans = [grey(second_scan(invoice(seed), seed, 0.5 + seed / 8)) for seed in range(4)]
    same = [agreement(page, scan) for page, scan in zip(pages, scans, strict=True)]
    other = [agreement(pages[i], scans[j]) for i, j in itertools.permutations(range(4), 2)]
    assert min(same) == 1.0
    assert max(other) < SAME_FROM - 0.1


def test_an_invoice_that_differs_in_a_single_line_is_another_one() -> None:
    page = invoice(0)
    changed = page.copy()
    changed[480:530, 400:800] = 250
    cv2.putText(changed, "20-07-2031", (420, 520), cv2.FONT_HERSHEY_SIMPLEX, 0.9, (20, 20, 20), 2)
    assert 0.9 < agreement(grey(page), grey(second_scan(changed, 3))) < SAME_FROM


def test_the_form_alone_would_pass_as_a_duplicate() -> None:
    """The control: as candidates, invoices on one form can't be told from second scans."""
    first, second = look_of(invoice(0)), look_of(invoice(1))
    assert np.bitwise_count(first.bits ^ second.bits).sum() <= MAX_DISTANCE
    assert first.tiny @ second.tiny >= MIN_CORRELATION


def test_light_and_sharpness_do_not_count_but_a_turn_by_90_degrees_does() -> None:
    page = grey(invoice(2))
    dull = (cv2.GaussianBlur(page, (0, 0), 1.5) * 0.6 + 30).astype(np.uint8)
    assert agreement(page, dull) == 1.0
    assert agreement(page, np.rot90(page)) == 0.0


def test_what_shows_nothing_or_noise_agrees_with_nothing() -> None:
    blank = np.full((300, 200), 255, np.uint8)
    noise = [np.random.default_rng(seed).integers(0, 256, (300, 300), dtype=np.uint8) for seed in (0, 1)]
    assert agreement(blank, blank) == 0.0
    assert agreement(*noise) < 0.5
    assert agreement(np.full((3, 900), 255, np.uint8), np.full((3, 900), 255, np.uint8)) == 0.0


def test_pairs_are_found_among_others_the_most_alike_first(tmp_path: Path) -> None:
    train = written(tmp_path, {f"train/{seed}.png": invoice(seed) for seed in range(6)})
    shown = {"new.png": invoice(20), "scan of 4.png": second_scan(invoice(4), 1), "2.png": invoice(2)}
    val = written(tmp_path, shown)
    with ThreadPoolExecutor(2) as executor:
        found, num_left = near_duplicates(tmp_path, train, val, executor)
    assert {(pair.train, pair.val) for pair in found} == {("train/2.png", "2.png"), ("train/4.png", "scan of 4.png")}
    assert all(pair.similarity >= SAME_FROM for pair in found) and num_left == 0


def test_processes_find_what_threads_find(tmp_path: Path) -> None:
    train = written(tmp_path, {"a.png": invoice(1)})
    val = written(tmp_path, {"b.png": second_scan(invoice(1), 5)})
    with ThreadPoolExecutor(1) as threads, ProcessPoolExecutor(1, get_context("spawn")) as processes:
        found = [near_duplicates(tmp_path, train, val, executor) for executor in (threads, processes)]
    assert found[0] == found[1] and len(found[0][0]) == 1


def test_what_is_left_uncompared_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = written(tmp_path, {f"{seed}.png": invoice(seed) for seed in range(3)})
    monkeypatch.setattr(module, "MOST_COMPARED", 3)
    with ThreadPoolExecutor(1) as executor:
        found, num_left = near_duplicates(tmp_path, train, train, executor)
    # 3 x 3 pairs resemble each other; a page is nearest to itself
    assert [pair.train for pair in found] == ["0.png", "1.png", "2.png"] and num_left == 6


def test_a_picture_replaced_between_two_checks_is_read_again(tmp_path: Path) -> None:
    train, val = written(tmp_path, {"a.png": invoice(1)}), written(tmp_path, {"b.png": invoice(1)})
    with ThreadPoolExecutor(1) as executor:
        assert len(near_duplicates(tmp_path, train, val, executor)[0]) == 1
        val = written(tmp_path, {"b.png": invoice(2)})
        os.utime(tmp_path / "b.png", ns=(1, 1))
        assert near_duplicates(tmp_path, train, val, executor) == ([], 0)
        (tmp_path / "b.png").unlink()
        assert near_duplicates(tmp_path, train, val, executor) == ([], 0)


def test_blank_pages_are_no_duplicates_and_nothing_has_none(tmp_path: Path) -> None:
    blank = written(tmp_path, {"blank.png": np.full((300, 200, 3), 255, np.uint8)})
    with ThreadPoolExecutor(1) as executor:
        for train, val in ((blank, blank), ({}, blank), (blank, {})):
            assert near_duplicates(tmp_path, train, val, executor) == ([], 0)


def test_the_nearest_are_those_that_a_loop_over_all_pairs_finds() -> None:
    rng = np.random.default_rng(0)
    base = [look_of(invoice(seed)) for seed in range(4)]
    looks = [Look(base[i % 4].bits ^ np.uint64(rng.integers(0, 2**20)), base[i % 4].tiny) for i in range(300)]
    train, val = looks[:290], looks[290:]
    expected = {
        (i, j)
        for i, first in enumerate(train)
        for j, second in enumerate(val)
        if sum(int(x ^ y).bit_count() for x, y in zip(first.bits, second.bits, strict=True)) <= MAX_DISTANCE
        and float(first.tiny @ second.tiny) >= MIN_CORRELATION
    }
    found = module._candidates(train, val)
    per_image = {i: [j for row, j in expected if row == i] for i in range(290)}
    assert set(found) <= expected and len(found) == len(set(found))
    assert all(sum(row == i for row, _ in found) == min(5, len(js)) for i, js in per_image.items())


def test_two_real_receipts_on_one_form_are_two(real_data: Path) -> None:
    """One shop, one article, other numbers: they differ in date, invoice number and three sums."""
    images = real_data / "receipts" / "img"
    for names in (("477", "483"), ("471", "489")):
        first, second = (cv2.imread(str(images / f"{name}.jpg"), cv2.IMREAD_GRAYSCALE) for name in names)
        assert 0.95 < agreement(first, second) < SAME_FROM
        assert agreement(first, grey(second_scan(cv2.cvtColor(first, cv2.COLOR_GRAY2BGR), 2))) >= SAME_FROM
