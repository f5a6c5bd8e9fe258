"""Shapes of a window: runs fill micro-batches, many shapes occur, grouping loses nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pipelines.batching.shapes import ShapePlan, group_by_shape
from pipelines.errors import UsageError
from pipelines.records import Sample


def sample(shape_hw: tuple[int, int], name: str) -> Sample:
    return Sample(np.zeros((*shape_hw, 3), np.uint8), {"map": np.zeros(shape_hw, np.uint8)}, name)


def test_crops_come_in_runs_of_one_shape_and_no_shape_repeats_before_all_have_come() -> None:
    plan = ShapePlan(shape_run=4)
    shapes = [choice.crop_hw for choice in plan.choices(seed=0, epoch=0, window=0, num_samples=32)]
    runs = [shapes[start : start + 4] for start in range(0, 32, 4)]
    assert all(len(set(run)) == 1 for run in runs)
    assert {run[0] for run in runs} == set(plan.crop_shapes)
    assert len(set(plan.crop_shapes)) >= 6


def test_whole_pages_take_their_share_and_leave_the_runs_whole() -> None:
    plan = ShapePlan(whole_page_share=0.25, shape_run=4)
    choices = plan.choices(seed=0, epoch=0, window=0, num_samples=32)
    crops = [choice.crop_hw for choice in choices if not choice.is_page]
    assert len(crops) == 24
    assert set(Counter(crops).values()) == {4}


def test_a_share_below_one_sample_comes_true_over_many_windows() -> None:
    plan = ShapePlan(whole_page_share=0.1)
    pages = [sum(c.is_page for c in plan.choices(0, 0, window, 4)) for window in range(500)]
    assert set(pages) == {0, 1}
    assert 0.3 < np.mean(pages) < 0.5  # 0.1 x 4 = 0.4


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 5)])
def test_page_share_at_its_limits(share: float, expected: int) -> None:
    assert sum(choice.is_page for choice in ShapePlan(whole_page_share=share).choices(0, 0, 0, 5)) == expected


def test_choices_follow_from_seed_epoch_and_window() -> None:
    plan = ShapePlan(whole_page_share=0.2)
    assert plan.choices(1, 2, 3, 32) == plan.choices(1, 2, 3, 32)
    others = [plan.choices(0, 2, 3, 32), plan.choices(1, 0, 3, 32), plan.choices(1, 2, 0, 32)]
    assert all(plan.choices(1, 2, 3, 32) != other for other in others)


@pytest.mark.parametrize("micro_batch", range(1, 6))
def test_grouping_keeps_every_sample_once_and_in_order(micro_batch: int) -> None:
    rng = np.random.default_rng(micro_batch)
    shapes = [(32, 32), (32, 64), (64, 32)]
    for count in range(0, 14):
        samples = [sample(shapes[rng.integers(3)], str(index)) for index in range(count)]
        micro_batches = group_by_shape(samples, lambda size_hw: micro_batch)
        names = [name for one in micro_batches for name in one.sources]
        assert sorted(names, key=int) == [str(index) for index in range(count)]
        assert all(1 <= len(one) <= micro_batch for one in micro_batches)
        for shape in shapes:
            of_shape = [int(name) for one in micro_batches if one.shape_hw == shape for name in one.sources]
            assert of_shape == sorted(of_shape)
        full = Counter(one.shape_hw for one in micro_batches if len(one) < micro_batch)
        assert all(short == 1 for short in full.values())  # at most one short micro-batch a shape


def test_every_shape_has_a_micro_batch_size_of_its_own() -> None:
    samples = [sample(shape, str(k)) for k, shape in enumerate([(32, 32), (64, 64)] * 4)]
    found = group_by_shape(samples, lambda size_hw: 3 if size_hw == (32, 32) else 1)
    assert [(len(one), one.shape_hw) for one in found] == [(3, (32, 32)), (1, (32, 32)), *[(1, (64, 64))] * 4]


def test_a_window_holds_no_more_pages_than_are_foreseen() -> None:
    plan = ShapePlan(((32, 64),), whole_page_share=0.03)
    assert plan.most_of((32, 64), 32) == 32 and plan.most_of((640, 480), 32) == 1
    counts = [sum(choice.is_page for choice in plan.choices(0, 0, window, 40)) for window in range(200)]
    assert max(counts) == 2 == plan.most_of((640, 480), 40)


def test_shares_add_up_with_pages_and_without() -> None:
    crops = ((32, 64), (64, 64))
    assert list(ShapePlan(crops).shares().values()) == [0.5, 0.5]
    shares = ShapePlan(crops, whole_page_share=0.2).shares()
    assert list(shares.values()) == [0.4, 0.4, 0.2]
    assert [choice.is_page for choice in shares] == [False, False, True]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"crop_shapes": ()}, "crop_shapes"), ({"crop_shapes": ((640, 650),)}, "crop_shapes"),
     ({"whole_page_share": 1.5}, "whole_page_share"), ({"shape_run": 0}, "shape_run")],
)  # fmt: skip
def test_impossible_plans_are_refused_by_name(wrong: dict, field: str) -> None:
    with pytest.raises(UsageError, match=field):
        ShapePlan(**wrong)
