"""Real receipts, among them pages of 600 dpi: prepared, scored with the weights as shipped, trained for two updates.

Run: WHOLEBATCH_DATA=FOLDER pytest tests/end_to_end/test_receipts.py, where FOLDER holds receipts/ in SROIE's layout.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.dataset import load_split
from tests.end_to_end.tiny_run import REPOSITORY, as_options, wholebatch

pytestmark = pytest.mark.slow

CONFIG = REPOSITORY / "configs" / "text_detection" / "receipts_ppocrv4_mobile.yml"


@pytest.fixture
def prepared(real_data: Path, workplace: Path) -> Path:
    """The receipts, prepared once for the file."""
    out = workplace / "收据 receipts"
    if not out.exists():
        source = real_data / "receipts"
        wholebatch(workplace, "prepare", "text", source, "--from", "sroie", "--out", out, "--json", "prepared.json")
    return out


def test_the_receipts_become_102_training_and_36_validation_images_that_pass_their_check(prepared, workplace):
    counts = json.loads((workplace / "prepared.json").read_text(encoding="utf-8"))["counts"]
    assert (counts["train"]["images"], counts["val"]["images"]) == (102, 36)
    assert any(max(record.size_hw) > 4000 for record in load_split(prepared, "train"))
    assert "can be trained on" in wholebatch(workplace, "check", prepared)


def few_images(prepared: Path, out: Path, num_small: int, num_large: int) -> Path:
    """A dataset of the first images of either size, in the same folder of images."""
    out.mkdir()
    (out / "images").symlink_to(prepared / "images")
    for split in ("train", "val"):
        is_large = {record.path: max(record.size_hw) >= 4000 for record in load_split(prepared, split)}
        lines = (prepared / f"{split}.txt").read_text(encoding="utf-8").splitlines(keepends=True)
        small = [line for line in lines if not is_large[line.partition("\t")[0]]]
        large = [line for line in lines if is_large[line.partition("\t")[0]]]
        (out / f"{split}.txt").write_text("".join(small[:num_small] + large[:num_large]), encoding="utf-8")
    return out


def test_two_updates_on_small_and_600_dpi_receipts_leave_a_best_that_is_not_worse(prepared, workplace):
    data = few_images(prepared, workplace / "few", num_small=4, num_large=2)
    overrides = (
        f"data.root={data}",
        "batching.crop_shapes=[[96, 160], [160, 96]]",
        "batching.whole_page_share=0",
        "batching.repeats=1",
        "train.effective_batch=8",
        "train.updates=2",
        "evaluate.every_updates=2",
        "evaluate.tune=null",
        "evaluate.setting.unclip_ratio=1.35",
        "run.name=few",
    )
    printed = wholebatch(workplace, "train", "-c", CONFIG, *as_options(overrides))
    metrics = json.loads((workplace / "runs" / "few" / "metrics.json").read_text(encoding="utf-8"))
    assert set(metrics["baseline"]["by_bucket"]) == {"under 4000 px", "4000 px and more"}
    # the shipped weights read receipts: far from 0, and far from a scorer that says yes to everything
    assert 0.8 < metrics["shipped"]["hmean_50"] < 1
    lines = [json.loads(line) for line in (workplace / "runs" / "few" / "log.jsonl").read_text().splitlines()]
    # a page of 600 dpi gives four samples an epoch: 4 + 2 x 4 = 12, so the second window is the epoch's short one
    assert [line["samples"] for line in lines] == [8, 4]
    if metrics["best"]["update"] == 0:
        assert "did not beat the tuned baseline" in printed
        assert metrics["best"]["hmean_70"] == metrics["baseline"]["hmean_70"]
    else:
        assert "training added +" in printed


def test_a_learning_rate_that_ruins_the_weights_leaves_them_as_they_were_and_says_so(prepared, workplace):
    data = few_images(prepared, workplace / "ruined", num_small=2, num_large=0)
    overrides = (
        f"data.root={data}",
        "batching.crop_shapes=[[96, 160]]",
        "batching.whole_page_share=0",
        "batching.repeats=1",
        "train.effective_batch=2",
        "train.micro_batch=1",
        "train.updates=2",
        "train.ema=null",
        "train.frozen_updates={}",
        "train.learning_rate={base: 1.0, base_batch: 2}",
        "evaluate.tune=null",
        "run.name=ruined",
    )
    printed = wholebatch(workplace, "train", "-c", CONFIG, *as_options(overrides))
    metrics = json.loads((workplace / "runs" / "ruined" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["evaluations"][-1]["hmean_50"] < metrics["baseline"]["hmean_50"]
    assert metrics["best"] == {"update": 0, **metrics["baseline"]}
    assert "training did not beat the tuned baseline: the best model is the untouched weights" in printed
