"""What a configuration comes to: samples of an epoch, learning rate and length of a run, and what is refused.

Run: pytest tests/unit/runs/test_assemble.py
"""

from __future__ import annotations

from types import SimpleNamespace

import paddle
import pytest

from pipelines.config import Config, PostProcessSection
from pipelines.errors import DataError, UsageError
from pipelines.records import Record
from pipelines.runs.assemble import build_updater, new_run_folder, setting_of, targets_of, training_records


class TwoParts(paddle.nn.Layer):
    """A network of the parts `head` and `threshold`, with one BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.head = paddle.nn.Linear(2, 1)
        self.threshold = paddle.nn.BatchNorm2D(2)


@pytest.fixture
def task() -> SimpleNamespace:
    return SimpleNamespace(network=TwoParts(), exact_by="replay", divisor="")


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
    def config(repeats: int) -> Config:
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


def test_the_learning_rate_is_told_with_its_arithmetic(make_config, task, recorder):
    config = make_config(train={"learning_rate": {"base": 0.001, "base_batch": 8, "warmup_updates": 2}})
    updater, num_updates = build_updater(config, task, 64, recorder)
    assert num_updates == 10
    told = "\n".join(recorder.notes)
    assert "effective batch 32 = micro-batch 2 x 16 accumulation steps; 10 updates, 2.0 an epoch of 64 samples" in told
    assert "learning rate 0.001 x 32/8 (linear rule) = 0.004 after 2 updates of warm-up" in told
    assert "1 BatchNorms keep their statistics" in told
    # a third of the way up to the peak of 0.004, as two updates warm up
    assert updater.optimizer.get_lr() == pytest.approx(0.004 / 3)
    assert recorder.warnings == []


def test_a_warm_up_longer_than_a_fifth_of_the_run_is_cut_and_told(make_config, task, recorder):
    config = make_config(train={"learning_rate": {"base": 0.001, "warmup_updates": 9}})
    build_updater(config, task, 64, recorder)
    assert "after 2 updates of warm-up (asked 9: at most a fifth of the run)" in "\n".join(recorder.notes)


def test_epochs_count_windows_and_a_last_short_one_too(make_config, task, recorder):
    config = make_config(train={"updates": None, "epochs": 3})
    # 65 samples are two windows of 32 and one of 1
    assert build_updater(config, task, 65, recorder)[1] == 9


@pytest.mark.parametrize(
    ("micro_batch", "advice"),
    [(16, "2 accumulation steps are few"), (1, "raise train.micro_batch towards 2")],
)
def test_few_or_many_accumulation_steps_come_with_advice(micro_batch, advice, make_config, task, recorder):
    build_updater(make_config(train={"micro_batch": micro_batch}), task, 64, recorder)
    assert len(recorder.warnings) == 1 and advice in recorder.warnings[0]


@pytest.mark.parametrize(
    "section", [{"frozen_updates": {"hed": 1}}, {"learning_rate": {"base": 1, "factors": {"hed": 2}}}]
)
def test_an_unknown_part_of_the_network_is_refused_with_the_known_ones(section, make_config, task, recorder):
    with pytest.raises(UsageError, match=r"unknown part 'hed'.*backbone, neck, head, threshold"):
        build_updater(make_config(train=section), task, 64, recorder)


def test_targets_are_made_for_the_setting_that_reads_the_maps(make_config):
    config = make_config()
    setting = setting_of(PostProcessSection(limit_side=1280, unclip_ratio=1.25, box_threshold=0.4))
    assert setting.resize.limit_side == 1280
    assert (setting.post_process.unclip_ratio, setting.post_process.box_threshold) == (1.25, 0.4)
    assert targets_of(config, setting).unclip_ratio == 1.25


def test_a_run_folder_is_new_or_refused(make_config, tmp_path):
    config = make_config(run={"root": tmp_path / "a" / "b"})
    folder = new_run_folder(config)
    assert folder == tmp_path / "a" / "b" / "tiny" and folder.is_dir()
    with pytest.raises(UsageError, match=r"tiny exists already and is left as it is; give another run\.name"):
        new_run_folder(config)
