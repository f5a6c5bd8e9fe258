"""Splitting by whole groups. Run: pytest tests/unit/prep/test_split.py"""

from __future__ import annotations

import pytest

from pipelines.errors import UsageError
from pipelines.prep.split import group_rule, joined_groups, val_groups


@pytest.mark.parametrize(
    ("rule", "name", "group"),
    [
        (None, "a/b_1.jpg", "a/b_1.jpg"),
        ("folder", "a/b/c.jpg", "a/b"),
        ("folder", "c.jpg", "."),
        ("stem-prefix", "a/roll7_012.jpg", "roll7"),
        ("stem-prefix", "2024-05-17_inv-3.jpg", "2024-05-17_inv"),
        ("stem-prefix", "single.jpg", "single"),
        ("stem-prefix", "_1.jpg", None),
        (r"^(.*?)/page", "invoice 12/page 3.jpg", "invoice 12"),
        (r"^(.*?)/page", "cover.jpg", None),
    ],
)
def test_a_group_rule_reads_the_group_from_the_name(rule, name, group):
    assert group_rule(rule)(name) == group


@pytest.mark.parametrize("rule", ["(", "no group", "(two)(groups)"])
def test_a_group_rule_without_exactly_one_group_is_refused(rule):
    with pytest.raises(UsageError, match="group rule"):
        group_rule(rule)


def test_equal_pictures_join_their_groups_also_in_chains():
    groups = ["a", "b", "c", "d", "b"]
    contents = ["1", "1", "2", "3", "2"]
    assert joined_groups(groups, contents) == ["a", "a", "a", "d", "a"]
    assert joined_groups(groups, list("12345")) == groups


def test_val_is_near_its_share_and_never_everything_for_every_small_dataset():
    for num_groups in range(2, 9):
        for share in (0.01, 0.2, 0.5, 0.99):
            sizes = {f"g{i}": 1 + i % 3 for i in range(num_groups)}
            chosen = val_groups(sizes, share, seed=0)
            num_val, target = sum(sizes[group] for group in chosen), share * sum(sizes.values())
            assert 0 < len(chosen) < num_groups
            assert abs(num_val - target) <= 3


def test_one_group_cannot_be_split():
    assert val_groups({"only": 12}, 0.2, seed=0) == set()


def test_groups_larger_than_the_share_give_the_smallest_to_val():
    assert val_groups({"a": 50, "b": 30, "c": 40}, 0.1, seed=0) == {"b"}


def test_the_choice_depends_on_the_seed_and_not_on_the_order():
    sizes = {f"g{i}": 1 for i in range(40)}
    backwards = dict(reversed(sizes.items()))
    assert val_groups(sizes, 0.2, seed=3) == val_groups(backwards, 0.2, seed=3)
    assert val_groups(sizes, 0.2, seed=3) != val_groups(sizes, 0.2, seed=4)
    assert len(val_groups(sizes, 0.2, seed=3)) == 8
