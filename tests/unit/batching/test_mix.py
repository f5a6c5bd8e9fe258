"""The mix of an epoch: shares exact, OK samples in turn, rare classes more often, one length for all epochs."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from pipelines.batching.mix import EpochMix, _rounded_together, repeat_factors, tile_records
from pipelines.errors import DataError, UsageError
from pipelines.records import DefectAnnotation, Record


def showing(*class_ids: int, size_hw: tuple[int, int] = (64, 64), name: str = "image.png") -> Record:
    """An image with one defect of 10 x 10 px of each of these classes."""
    boxes = np.tile(np.array([10, 10, 20, 20], np.float32), (len(class_ids), 1))
    ids = np.array(class_ids, np.int64)
    return Record(name, size_hw, DefectAnnotation(boxes, ids, np.zeros(len(ids), bool)))


TEN_AND_FORTY = [showing(0) for _ in range(10)] + [showing() for _ in range(40)]


@pytest.mark.parametrize(
    ("ok_share", "num_ok"), [(None, 40), (0.0, 0), (0.2, 2), (0.5, 10), (0.75, 30), (0.8, 40), (0.9, 90)]
)
def test_ten_defective_and_forty_ok_images_are_mixed_at_the_share_asked_for_in_every_epoch(ok_share, num_ok) -> None:
    mix = EpochMix(TEN_AND_FORTY, ok_share)  # 0.2: 2.5 OK samples, of which 2
    for epoch in range(5):
        indices = mix.indices(epoch)
        assert indices.dtype == np.int64 and len(indices) == mix.num_samples == 10 + num_ok
        assert sorted(index for index in indices if index < 10) == list(range(10))
        composition = mix.composition(indices)
        assert (composition.num_samples, composition.num_ok) == (10 + num_ok, num_ok)
        assert composition.objects_by_class == {0: 10}


def test_the_pool_is_told_in_one_line() -> None:
    pool = EpochMix(TEN_AND_FORTY, ok_share=0.5).composition()
    assert pool.describe(["scratch", "dent"]) == "50 samples: 10 with defects, 40 OK (scratch 10, dent 0)"


@pytest.mark.parametrize("ok_share", [0.2, 0.5, 0.7, 0.9, 0.95])
def test_no_ok_sample_comes_twice_before_all_have_come(ok_share: float) -> None:
    records = [showing(0) for _ in range(6)] + [showing() for _ in range(7)]
    mix = EpochMix(records, ok_share)
    in_turn = np.concatenate([mix.indices(epoch)[6:] for epoch in range(40)])
    pools = [tuple(in_turn[start : start + 7]) for start in range(0, len(in_turn) - 6, 7)]
    assert all(sorted(pool) == list(range(6, 13)) for pool in pools)
    assert len(set(pools)) > 3  # every turn through the pool in another order


def test_an_epoch_draws_other_ok_samples_than_the_one_before() -> None:
    mix = EpochMix(TEN_AND_FORTY, ok_share=0.5)
    epochs = [set(mix.indices(epoch)[10:].tolist()) for epoch in range(4)]
    assert set.union(*epochs) == set(range(10, 50))
    assert all(len(epoch) == 10 for epoch in epochs)


def test_indices_follow_from_seed_and_epoch_alone() -> None:
    one, twin, other = (EpochMix(TEN_AND_FORTY, 0.5, seed=seed) for seed in (0, 0, 1))
    for epoch in (7, 3):  # in any order: a run can go on anywhere
        assert np.array_equal(one.indices(epoch), twin.indices(epoch))
        assert not np.array_equal(one.indices(epoch), other.indices(epoch))


def test_repeat_factors_by_hand() -> None:
    """Of ten samples nine show class 0 and one shows class 3; another class 3 stands beside a class 0."""
    alone = [np.array([0])] * 9 + [np.array([3, 3])]
    np.testing.assert_allclose(repeat_factors(alone, 0.4), [1.0] * 9 + [2.0])  # sqrt(0.4 / 0.1)
    beside = [np.array([0])] * 8 + [np.array([0, 3]), np.array([3])]
    np.testing.assert_allclose(repeat_factors(beside, 0.45), [1.0] * 8 + [1.5, 1.5])  # sqrt(0.45 / 0.2)
    np.testing.assert_allclose(repeat_factors(alone, 0.0), 1.0)


def test_a_whole_repeat_factor_comes_true_in_every_epoch() -> None:
    mix = EpochMix([showing(0) for _ in range(9)] + [showing(3, 3)], repeat_threshold=0.4)
    for epoch in range(20):
        assert Counter(mix.indices(epoch).tolist()) == {**dict.fromkeys(range(9), 1), 9: 2}
    assert mix.composition(mix.indices(0)).objects_by_class == {0: 9, 3: 4}


def test_a_broken_repeat_factor_comes_true_in_the_mean_and_the_length_stays() -> None:
    """A factor of sqrt(0.25 / 0.1) = 1.581 beside nine of 1 sums to 10.58: epochs of 11, stretched by 1.0396."""
    mix = EpochMix([showing(0) for _ in range(9)] + [showing(1)], repeat_threshold=0.25)
    epochs = np.array([np.bincount(mix.indices(epoch), minlength=10) for epoch in range(2000)])
    assert mix.num_samples == 11 and (epochs.sum(axis=1) == 11).all()
    assert epochs.min() == 1 and epochs.max() == 2
    expected = np.array([1.0] * 9 + [math.sqrt(2.5)]) * 11 / (9 + math.sqrt(2.5))
    np.testing.assert_allclose(epochs.mean(axis=0), expected, atol=0.04)


def test_five_dents_among_five_hundred_scratches_come_three_times_as_often() -> None:
    """f = 5 / 505, so the factor at 0.1 is 3.18; the share of OK samples is taken of what that gives."""
    records = [showing(0) for _ in range(500)] + [showing(1) for _ in range(5)] + [showing() for _ in range(100)]
    mix = EpochMix(records, ok_share=0.5, repeat_threshold=0.1)
    assert mix.num_samples == 2 * math.ceil(500 + 5 * math.sqrt(10.1))
    for epoch in range(10):
        composition = mix.composition(mix.indices(epoch))
        assert composition.num_ok == mix.num_samples // 2
        assert 15 <= composition.objects_by_class[1] <= 17
    assert EpochMix(records).composition(EpochMix(records).indices(0)).objects_by_class == {0: 500, 1: 5}


def test_rounding_together_keeps_the_sum_and_each_number_next_to_its_factor() -> None:
    rng = np.random.default_rng(0)
    for count in range(1, 30):
        factors = 1 + 2 * rng.random(count)
        total = math.ceil(factors.sum())
        counts = _rounded_together(factors, total, rng.random())
        stretched = factors * total / factors.sum()
        assert counts.sum() == total
        assert ((counts == np.floor(stretched)) | (counts == np.ceil(stretched))).all()


def test_large_images_become_tiles_and_small_ones_stay_whole() -> None:
    small, large = showing(0, size_hw=(100, 128)), showing(1, size_hw=(200, 300))
    tiles = tile_records([small, large], (128, 128), overlap_px=32)
    assert tiles[0] is small
    assert [tile.view_xyxy_px for tile in tiles[1:]] == [
        (0, 0, 128, 128), (86, 0, 214, 128), (172, 0, 300, 128),
        (0, 72, 128, 200), (86, 72, 214, 200), (172, 72, 300, 200),
    ]  # fmt: skip
    assert all(tile.annotation is large.annotation and tile.path == large.path for tile in tiles[1:])


def test_tiles_of_a_defective_image_that_show_no_defect_count_as_ok() -> None:
    mix = EpochMix(tile_records([showing(1, size_hw=(200, 300))], (128, 128), 32), ok_share=0.5)
    assert mix.composition().describe(["a", "b"]) == "6 samples: 1 with defects, 5 OK (a 0, b 1)"
    assert [mix.indices(epoch)[0] for epoch in range(3)] == [0, 0, 0]
    assert sorted(mix.indices(epoch)[1] for epoch in range(5)) == [1, 2, 3, 4, 5]


def test_defect_in_two_tiles_counts_in_both_and_a_remnant_of_one_in_none() -> None:
    image = Record(
        "bar.png", (64, 192), DefectAnnotation(np.array([[60, 10, 84, 20], [125, 30, 145, 40]]), [0, 1], [0, 0])
    )
    tiles = tile_records([image], (128, 128), overlap_px=64)  # columns 0..127 and 64..191
    mix = EpochMix(tiles)
    first, second = (mix.composition(np.array([index])).objects_by_class for index in (0, 1))
    assert first == {0: 1}  # 3 of 20 columns of the second defect are left
    assert second == {0: 1, 1: 1}  # 20 of 24 columns of the first
    assert EpochMix(tiles, min_visible=0.9).composition(np.array([1])).objects_by_class == {1: 1}


def test_ignore_regions_alone_make_an_ok_sample() -> None:
    ignored = Record("ok.png", (64, 64), DefectAnnotation(np.array([[10, 10, 20, 20]]), [0], [True]))
    pool = EpochMix([ignored, showing(0)]).composition()
    assert (pool.num_ok, pool.objects_by_class) == (1, {0: 1})


def test_ok_images_alone_make_epochs_of_ok_images() -> None:
    mix = EpochMix([showing() for _ in range(5)], repeat_threshold=0.1)
    assert sorted(mix.indices(3)) == list(range(5))
    assert mix.composition(mix.indices(0)).describe(["a"]) == "5 samples: 0 with defects, 5 OK (a 0)"


@pytest.mark.parametrize(
    "wrong", [{"ok_share": 1.0}, {"ok_share": -0.1}, {"repeat_threshold": -1.0}, {"repeat_threshold": 1.5}]
)
def test_impossible_settings_are_refused_by_name(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        EpochMix(TEN_AND_FORTY, **wrong)


@pytest.mark.parametrize(
    ("records", "words"),
    [([], "no image"), ([showing()] * 4, "none of the 4 samples shows a defect"),
     ([showing(0)] * 3, "each of the 3 samples shows a defect")],
)  # fmt: skip
def test_a_share_that_the_records_cannot_give_is_refused_with_the_way_out(records, words: str) -> None:
    with pytest.raises(DataError, match=words):
        EpochMix(records, ok_share=0.5)
