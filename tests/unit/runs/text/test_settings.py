"""Which settings are tried on which images, and how numbers become table rows.

Run: pytest tests/unit/runs/text/test_settings.py
"""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.config import PostProcessSection, TuneSection
from pipelines.records import Record, TextAnnotation, TextRegion
from pipelines.runs.text.buckets import bucket_names, bucket_of
from pipelines.runs.text.evaluation import cells, metrics_row, setting_candidates, spread_over_buckets

SQUARE = np.array([[0, 0], [9, 0], [9, 9], [0, 9]], np.float32)
TEXT = TextAnnotation((TextRegion(SQUARE),))
IGNORED = TextAnnotation((TextRegion(SQUARE, is_ignored=True),))


def record(name: int, longest_px: int, annotation: TextAnnotation = TEXT) -> Record:
    return Record(f"{name}.jpg", (longest_px, 100), annotation)


def test_the_shipped_setting_comes_first_and_only_once():
    shipped = PostProcessSection()
    candidates = setting_candidates(shipped, TuneSection(unclip_ratios=[1.2, 1.5], box_thresholds=[0.5, 0.6]))
    assert candidates[0] == shipped and candidates.count(shipped) == 1
    assert {(each.unclip_ratio, each.box_threshold) for each in candidates} == {
        (1.5, 0.6), (1.2, 0.5), (1.5, 0.5), (1.2, 0.6),
    }  # fmt: skip


def test_settings_of_one_limit_side_follow_each_other_so_that_the_network_runs_once_a_side():
    options = TuneSection(limit_sides=[1280, 960, 1600], unclip_ratios=[1.2, 1.5], binary_thresholds=[0.2, 0.3])
    sides = [candidate.limit_side for candidate in setting_candidates(PostProcessSection(limit_side=960), options)]
    runs = [side for position, side in enumerate(sides) if position == 0 or sides[position - 1] != side]
    assert runs == [960, 1280, 1600]
    assert len(sides) == 3 * 2 * 2


def test_what_is_not_tuned_stays_as_shipped():
    shipped = PostProcessSection(limit_side=736, box_threshold=0.7, box_type="poly")
    assert setting_candidates(shipped, TuneSection()) == [shipped]
    (_, other) = setting_candidates(shipped, TuneSection(unclip_ratios=[2.0]))
    assert other == shipped.model_copy(update={"unclip_ratio": 2.0})


def test_every_size_has_an_equal_share_of_the_tuning_images():
    records = [record(n, 500) for n in range(50)] + [record(n, 3000) for n in range(50, 60)]
    chosen = spread_over_buckets(records, 8, [2000])
    assert [each.size_hw[0] for each in chosen].count(500) == 4
    assert len({each.path for each in chosen}) == len(chosen) == 8


def test_what_a_small_bucket_leaves_goes_to_the_others():
    records = [record(n, 500) for n in range(50)] + [record(50, 3000)]
    chosen = spread_over_buckets(records, 8, [2000])
    assert len(chosen) == 8 and "50.jpg" in {each.path for each in chosen}


def test_images_are_taken_from_the_whole_split_and_not_from_its_head():
    chosen = spread_over_buckets([record(n, 500) for n in range(101)], 5, [2000])
    assert [each.path for each in chosen] == ["0.jpg", "25.jpg", "50.jpg", "75.jpg", "100.jpg"]


def test_images_without_text_that_counts_tell_nothing_about_a_setting():
    records = [record(0, 500, TextAnnotation()), record(1, 500, IGNORED), record(2, 500)]
    assert [each.path for each in spread_over_buckets(records, 8, [2000])] == ["2.jpg"]


@pytest.mark.parametrize(
    ("edges", "names"),
    [
        ([], ["all sizes"]),
        ([2000], ["under 2000 px", "2000 px and more"]),
        ([1000, 4000], ["under 1000 px", "1000 px and more", "4000 px and more"]),
    ],
)
def test_size_buckets_are_named_by_their_edges(edges, names):
    assert bucket_names(edges) == names
    assert bucket_of(record(0, 999), edges) == names[0]
    assert bucket_of(record(0, 9999), edges) == names[-1]


def scored(**hmeans: float | None) -> dict[str, object]:
    return {"num_images": 2, "hmean_50": 0.9, "hmean_70": 0.8, "hmean_80": 0.5, **hmeans}


def test_undefined_numbers_are_left_out_of_a_comparison_and_shown_as_a_dash():
    metrics = {**scored(), "by_bucket": {"small": scored(), "large": scored(hmean_80=None)}}
    assert ("large", "hmean_80") not in cells(metrics) and cells(metrics)["small", "hmean_80"] == 0.5
    rows = metrics_row("best", metrics)
    assert rows[0] == ["best", "small", 2, "0.900", "0.800", "0.500"]
    assert rows[1] == ["", "large", 2, "0.900", "0.800", "-"]
    assert rows[2][1] == "all"


def test_one_bucket_alone_is_not_shown_twice():
    metrics = {**scored(), "by_bucket": {"small": scored()}}
    assert metrics_row("best", metrics) == [["best", "all", 2, "0.900", "0.800", "0.500"]]
