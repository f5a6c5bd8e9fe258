"""What a text configuration comes to: samples of an epoch, targets that fit the setting, and what is refused.

Run: pytest tests/unit/runs/text/test_parts.py
"""

from __future__ import annotations

import pytest

from pipelines.config import PostProcessSection, TextConfig
from pipelines.errors import DataError, UsageError
from pipelines.records import Record
from pipelines.runs.text.parts import setting_of, targets_of, training_records


def records(*longest_px: int) -> list[Record]:
    return [Record(f"{number}.jpg", (side, 100), None) for number, side in enumerate(longest_px)]


def test_an_epoch_repeats_each_image_and_its_bucket_more(make_config):
    config = make_config(
        batching={"repeats": 2, "repeats_by_bucket": {"2000 px and more": 3}},
        train={"effective_batch": 4, "micro_batch": 2},
    )
    names = [record.path for record in training_records(config, records(500, 3000))]
    assert names == ["0.jpg"] * 2 + ["1.jpg"] * 6


@pytest.mark.parametrize(("num_images", "repeats", "advised"), [(4, 1, 8), (31, 1, 2), (5, 3, 7)])
def test_an_effective_batch_out_of_reach_is_refused_with_repeats_that_reach_it(
    num_images, repeats, advised, make_config
):
    def config(repeats: int) -> TextConfig:
        return make_config(batching={"repeats": repeats})

    images = records(*[500] * num_images)
    with pytest.raises(DataError, match=rf"batching\.repeats to {advised} or more.* to {num_images * repeats} or less"):
        training_records(config(repeats), images)
    assert len(training_records(config(advised), images)) >= 32
    with pytest.raises(DataError):
        training_records(config(advised - 1), images)


def test_an_unknown_bucket_is_refused_with_the_known_ones(make_config):
    config = make_config(batching={"repeats_by_bucket": {"large": 3}})
    with pytest.raises(UsageError, match=r"unknown bucket 'large'.*under 2000 px, 2000 px and more"):
        training_records(config, records(500))


def test_targets_are_made_for_the_setting_that_reads_the_maps(make_config):
    config = make_config()
    setting = setting_of(PostProcessSection(limit_side=1280, unclip_ratio=1.25, box_threshold=0.4))
    assert setting.resize.limit_side == 1280
    assert (setting.post_process.unclip_ratio, setting.post_process.box_threshold) == (1.25, 0.4)
    assert targets_of(config, setting).unclip_ratio == 1.25
