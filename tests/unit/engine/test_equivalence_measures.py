"""The measures that proofs and `verify` rest on, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.engine.equivalence import compare, image_weights
from pipelines.engine.recovery import evenly_split
from pipelines.records import MicroBatch
from tests.factories import LOSSES, split, toy_samples, toy_task


def test_errors_by_hand() -> None:
    reference = {"a": np.array([3.0, 4.0]), "b": np.array([12.0])}
    found = compare({"a": np.array([3.0, 4.5]), "b": np.array([12.0])}, reference)
    assert found.per_tensor == {"a": pytest.approx(0.1), "b": 0.0}
    assert found.max_relative_error == pytest.approx(0.1)
    assert found.relative_error == pytest.approx(0.5 / 13)
    assert found.norm_ratio == pytest.approx(np.sqrt(9 + 20.25 + 144) / 13)
    assert found.cosine == pytest.approx((9 + 18 + 144) / (13 * np.sqrt(9 + 20.25 + 144)))


def test_a_tensor_that_is_rounding_noise_is_measured_against_the_largest() -> None:
    reference = {"large": np.array([1.0]), "noise": np.array([1e-9])}
    found = compare({"large": np.array([1.0]), "noise": np.array([3e-9])}, reference)
    assert found.per_tensor["noise"] == pytest.approx(2e-9)


def test_no_gradient_equals_no_gradient_and_nothing_else() -> None:
    nothing, something = {"a": np.zeros(2)}, {"a": np.array([0.0, 1e-30])}
    same = compare(nothing, nothing)
    assert (same.max_relative_error, same.relative_error, same.cosine, same.norm_ratio) == (0.0, 0.0, 1.0, 1.0)
    assert compare(something, nothing).max_relative_error == np.inf
    assert compare(nothing, something).relative_error == 1.0


def test_a_micro_batch_falls_into_its_images() -> None:
    samples = toy_samples(3)
    parts = evenly_split(MicroBatch.of(samples), 1)
    assert [part.sources for part in parts] == [(sample.source,) for sample in samples]
    for part, sample in zip(parts, samples, strict=True):
        assert np.array_equal(part.images[0], sample.image)
        assert np.array_equal(part.targets["mask"][0], sample.targets["mask"])


@pytest.mark.parametrize("exact_by", LOSSES)
def test_every_image_weighs_one_under_its_exact_method(exact_by: str) -> None:
    window = split(toy_samples(5), (2, 3))
    np.testing.assert_allclose(image_weights(toy_task(exact_by), window, "exact"), 1.0, atol=1e-9)


def test_under_the_mean_an_images_weight_is_the_ratio_of_the_divisors() -> None:
    """One shared divisor: (n_k / n) S / S_k with the score sums S_k of the micro-batch and S of the window."""
    task, window = toy_task("rescale"), split(toy_samples(6), (2, 1, 3))
    divisors = [task.statistics(batch)["score_sum"].item() for batch in window]
    expected = [
        len(batch) / 6 * max(sum(divisors), 1) / max(divisor, 1)
        for batch, divisor in zip(window, divisors, strict=True)
        for _ in range(len(batch))
    ]
    np.testing.assert_allclose(image_weights(task, window, "mean"), expected, rtol=1e-9)
    assert max(expected) > 1.1
