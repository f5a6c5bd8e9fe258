"""What a configuration comes to: learning rate and length of a run, and what is refused.

Run: pytest tests/unit/runs/test_assemble.py
"""

from __future__ import annotations

from types import SimpleNamespace

import paddle
import pytest

from pipelines.errors import UsageError
from pipelines.runs.assemble import build_updater, new_run_folder


class TwoParts(paddle.nn.Layer):
    """A network of the parts `head` and `threshold`, with one BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.head = paddle.nn.Linear(2, 1)
        self.threshold = paddle.nn.BatchNorm2D(2)


@pytest.fixture
def task() -> SimpleNamespace:
    return SimpleNamespace(network=TwoParts(), exact_by="replay", divisor="")


def groups_of(task: SimpleNamespace) -> dict[str, list[paddle.Tensor]]:
    """As a network's `parameter_groups` gives them; this one has no backbone and no neck."""
    found = {"backbone": [], "neck": []}
    return found | {name: layer.parameters() for name, layer in task.network.named_children()}


def test_the_learning_rate_is_told_with_its_arithmetic(make_config, task, recorder):
    config = make_config(train={"learning_rate": {"base": 0.001, "base_batch": 8, "warmup_updates": 2}})
    updater, num_updates = build_updater(config, task, groups_of(task), 64, recorder)
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
    build_updater(config, task, groups_of(task), 64, recorder)
    assert "after 2 updates of warm-up (asked 9: at most a fifth of the run)" in "\n".join(recorder.notes)


def test_epochs_count_windows_and_a_last_short_one_too(make_config, task, recorder):
    config = make_config(train={"updates": None, "epochs": 3})
    # 65 samples are two windows of 32 and one of 1
    assert build_updater(config, task, groups_of(task), 65, recorder)[1] == 9


@pytest.mark.parametrize(
    ("micro_batch", "advice"),
    [(16, "2 accumulation steps are few"), (1, "raise train.micro_batch towards 2")],
)
def test_few_or_many_accumulation_steps_come_with_advice(micro_batch, advice, make_config, task, recorder):
    build_updater(make_config(train={"micro_batch": micro_batch}), task, groups_of(task), 64, recorder)
    assert len(recorder.warnings) == 1 and advice in recorder.warnings[0]


@pytest.mark.parametrize(
    "section", [{"frozen_updates": {"hed": 1}}, {"learning_rate": {"base": 1, "factors": {"hed": 2}}}]
)
def test_an_unknown_part_of_the_network_is_refused_with_the_known_ones(section, make_config, task, recorder):
    with pytest.raises(UsageError, match=r"unknown part 'hed'.*backbone, neck, head, threshold"):
        build_updater(make_config(train=section), task, groups_of(task), 64, recorder)


def test_a_run_folder_is_new_or_refused(make_config, tmp_path):
    config = make_config(run={"root": tmp_path / "a" / "b"})
    folder = new_run_folder(config)
    assert folder == tmp_path / "a" / "b" / "tiny" and folder.is_dir()
    with pytest.raises(UsageError, match=r"tiny exists already and is left as it is; give another run\.name"):
        new_run_folder(config)
