"""`plan` on the command line for both tasks, and a training whose micro-batches are planned for a small budget.

Run: pytest tests/end_to_end/test_memory.py
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.engine.update import Updater
from pipelines.errors import OutOfMemoryError
from pipelines.runs.reporter import Quiet
from pipelines.runs.train import train
from tests.end_to_end.tiny_run import DEFECT_SMOKE, SMOKE, TINY, as_options, content, tiny_config, wholebatch

pytestmark = pytest.mark.slow

MIB = 2**20


@pytest.fixture(scope="module")
def pages(workplace: Path) -> Path:
    wholebatch(workplace, "synthesize", "--out", "pages", "--train", 8, "--val", 3, "--seed", 7)
    return Path("pages")


def options(pages: Path, name: str, *more: str) -> list[object]:
    return [*as_options(TINY), *as_options(("data.synthetic=null", f"data.root={pages}", f"run.name={name}", *more))]


def test_plan_gives_every_shape_of_training_and_evaluation_its_peak_and_what_fits(workplace, pages):
    command = ("plan", "-c", SMOKE, "--memory", "400MiB", *options(pages, "plan"), "--json", "plan.json")
    printed = wholebatch(workplace, *command)
    plan = content(workplace / "plan.json")
    assert plan["budget_bytes"] == 400 * MIB and 5 * MIB < plan["resting_bytes"] < 100 * MIB
    assert sum(row["share"] for row in plan["training"]) == pytest.approx(1, abs=0.01)
    assert sum(row["images"] for row in plan["evaluation"]) == 3
    for row in plan["training"]:
        assert row["micro_batch"] >= 1 and plan["resting_bytes"] < row["peak_bytes"] <= 400 * MIB
    # evaluation keeps no activations
    training = plan["training"][-1]
    one_image = (training["peak_bytes"] - plan["resting_bytes"]) / training["micro_batch"]
    per_pixel = one_image / (training["shape"][0] * training["shape"][1])
    for row in plan["evaluation"]:
        assert row["fits"]
        assert row["peak_bytes"] - plan["resting_bytes"] < 0.6 * per_pixel * row["shape"][0] * row["shape"][1]
    assert plan["largest_side"]["evaluation"] > plan["largest_side"]["training"] > 0
    assert "largest square that fits" in printed and "the CPU allocator reports" in printed


def test_plan_of_a_detector(workplace):
    options = as_options(("data.root=factory", "data.synthetic={train: 8, val: 4}", "train.effective_batch=4"))
    wholebatch(workplace, "plan", "-c", DEFECT_SMOKE, "--memory", "1GiB", *options, "--json", "detector.json")
    plan = content(workplace / "detector.json")
    assert [row["micro_batch"] for row in plan["training"]] == [4]
    assert sum(row["images"] for row in plan["evaluation"]) >= 4


def test_micro_batches_are_planned_for_the_budget_and_windows_are_whole(workplace, pages):
    more = ("train.micro_batch=auto", "train.memory=120MiB", "train.effective_batch=8", "train.updates=3")
    printed = wholebatch(workplace, "train", "-c", SMOKE, *options(pages, "auto", *more))
    assert "micro-batches as large as fit, by shape" in printed and "memory: 120 MiB for tensors" in printed
    lines = [json.loads(line) for line in (workplace / "runs" / "auto" / "log.jsonl").read_text().splitlines()]
    assert [line["samples"] for line in lines] == [8, 8, 8]
    assert max(shape[0] for line in lines for shape in line["shapes"]) > 1
    assert all(line["peak_bytes"] < 1.1 * 120 * MIB for line in lines)


def test_a_budget_that_not_one_image_fits_is_told_with_the_side_that_does(workplace, pages):
    more = ("train.micro_batch=auto", "train.memory=50MiB", "batching.crop_shapes=[[320, 320]]")
    told = wholebatch(workplace, "train", "-c", SMOKE, *options(pages, "tight", *more), exit_code=1)
    assert "one training image of 320 x 320 px needs" in told and "raise train.memory" in told
    side = int(told.split("a square of ")[1].split()[0])
    assert 64 <= side < 320 and side % 32 == 0
    assert not (workplace / "runs" / "tight").exists()  # the same command shall work once there is more memory


def test_what_was_learnt_is_saved_when_memory_ends(workplace, pages, monkeypatch):
    config = tiny_config(workplace, "short of memory", "data.synthetic=null", f"data.root={workplace / pages}")
    learn = Updater.run

    def run(updater, window):
        if updater.num_updates == 2:
            raise OutOfMemoryError("one image of 96 x 96 px does not fit in memory.")
        return learn(updater, window)

    monkeypatch.setattr(Updater, "run", run)
    folder = workplace / "runs" / "short of memory"
    with pytest.raises(OutOfMemoryError, match=r"after update 2 \(saved in .*update_2\): one image of 96 x 96 px"):
        train(config, Quiet())
    assert (folder / "checkpoints" / "update_2").is_dir() and (folder / "best").is_dir()
