"""Invoices that add up: amounts are quantity x price and the sums follow."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.synthesis.invoice_words import (
    CHINESE,
    ENGLISH,
    GERMAN,
    Language,
    amount_text,
    write_content,
    write_items,
)


def cents_of(amount: str, words: Language) -> int:
    return int("".join(character for character in amount if character.isdigit()))


@pytest.mark.parametrize(
    ("cents", "words", "text"),
    [(5, ENGLISH, "0.05"), (123456789, ENGLISH, "1,234,567.89"), (123450, GERMAN, "1.234,50"), (100, CHINESE, "1.00")],
)
def test_amounts_are_written_with_the_marks_of_the_language(cents: int, words: Language, text: str) -> None:
    assert amount_text(cents, words) == text


@pytest.mark.parametrize("words", [ENGLISH, GERMAN, CHINESE], ids=["english", "german", "chinese"])
def test_rows_multiply_and_totals_add_up(words: Language) -> None:
    items = write_items(np.random.default_rng(2), words, 12)
    amounts = [cents_of(row[4], words) for row in items.rows]
    assert [int(row[2]) * cents_of(row[3], words) for row in items.rows] == amounts
    net, tax, due = (cents_of(text, words) for _, text in items.totals)
    assert net == sum(amounts) and tax == round(net * words.tax_rate) and due == net + tax


def test_most_quantities_are_a_lone_digit_but_not_all() -> None:
    quantities = [row[2] for row in write_items(np.random.default_rng(0), ENGLISH, 200).rows]
    assert 120 < sum(len(quantity) == 1 for quantity in quantities) < 190


def test_content_follows_the_seed() -> None:
    first, again, other = (write_content(np.random.default_rng(seed), GERMAN) for seed in (1, 1, 2))
    assert first == again != other
