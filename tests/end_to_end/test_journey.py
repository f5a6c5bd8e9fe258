"""The whole way of an invoice user on the command line: draw, check, train, evaluate, export, predict.

One run serves all tests of this file. Run: pytest tests/end_to_end/test_journey.py
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml

from pipelines.dataset import load_split, read_image
from tests.end_to_end.tiny_run import SMOKE, TINY, Journey, as_options, content, wholebatch

pytestmark = pytest.mark.slow

METRICS = {f"{name}_{iou}" for name in ("hmean", "precision", "recall") for iou in (50, 70, 80)}
LOG_KEYS = {
    "update", "epoch", "samples", "micro_batches", "shapes", "loss", "loss_shrink", "loss_threshold", "loss_binary",
    "lr", "grad_norm", "loss_scale", "skipped", "in_full", "failures", "seconds", "data_seconds", "peak_bytes",
}  # fmt: skip


@pytest.fixture(scope="module")
def journey(workplace: Path) -> Journey:
    pages, run, model = Path("票据 pages"), Path("runs/试 run"), Path("models/出 model")
    options = [*as_options(TINY), *as_options(("data.synthetic=null", f"data.root={pages}", f"run.name={run.name}"))]
    commands: dict[str, tuple[object, ...]] = {
        "synthesize": ("synthesize", "--out", pages, "--train", 8, "--val", 3, "--seed", 7),
        "check": ("check", pages, "--json", "check.json"),
        "train": ("train", "-c", SMOKE, *options),
        "evaluate": ("evaluate", "-c", SMOKE, "--model", run, *options, "--json", "evaluated.json"),
        "export": ("export", run, "--to", model, "--json", "parity.json"),
        "evaluate exported": ("evaluate", "-c", SMOKE, "--model", model, *options, "--json", "exported.json"),
    }
    printed = {name: wholebatch(workplace, *command) for name, command in commands.items()}
    return Journey(workplace, workplace / pages, workplace / run, workplace / model, printed)


def test_nothing_scrolls_and_nothing_is_coloured_when_output_is_piped(journey):
    for name, text in journey.printed.items():
        assert "\x1b" not in text and "\r" not in text, name
        # a progress bar that is drawn into a file repeats its title for every step
        assert text.count("training 试 run") == 0, name
    assert "UserWarning" not in "".join(journey.printed.values())


def test_the_drawn_dataset_passes_its_check(journey):
    report = content(journey.folder / "check.json")
    assert report["ok"] and report["counts"]["train"]["images"] == 8 and report["counts"]["val"]["images"] == 3


def test_metrics_hold_the_baselines_every_evaluation_and_a_best_that_is_not_worse(journey):
    metrics = content(journey.run / "metrics.json")
    assert {"shipped", "baseline", "evaluations", "best"} <= set(metrics)
    for entry in (metrics["shipped"], metrics["baseline"], metrics["best"], *metrics["evaluations"]):
        assert METRICS.issubset(entry)
    assert [entry["update"] for entry in metrics["evaluations"]] == [3]
    assert metrics["shipped"]["setting"]["unclip_ratio"] == 1.5
    hmeans = [f"hmean_{iou}" for iou in (50, 70, 80)]

    def mean(entry: dict[str, Any]) -> float:
        return float(np.mean([entry[name] for name in hmeans]))

    assert mean(metrics["best"]) >= mean(metrics["baseline"])
    assert metrics["best"]["update"] in (0, 3)
    told = "did not beat the tuned baseline" if metrics["best"]["update"] == 0 else "training added +"
    assert told in journey.printed["train"]


def test_the_log_has_a_line_an_update_with_every_number(journey):
    lines = [json.loads(line) for line in (journey.run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["update"] for line in lines] == [1, 2, 3]
    for line in lines:
        assert LOG_KEYS.issubset(line)
        assert line["samples"] == 8 == sum(count for count, _, _ in line["shapes"])
        assert line["micro_batches"] == len(line["shapes"]) and line["peak_bytes"] > 0 and not line["skipped"]
    parts = lines[0]
    assert parts["loss"] == pytest.approx(
        5 * parts["loss_shrink"] + 10 * parts["loss_threshold"] + parts["loss_binary"], abs=1e-4
    )


def test_the_run_folder_holds_what_the_documentation_says(journey):
    assert yaml.safe_load((journey.run / "config.yml").read_text(encoding="utf-8"))["train"]["updates"] == 3
    assert (journey.run / "checkpoints" / "update_3" / "weights.pdparams").is_file()
    assert (journey.run / "best" / "weights.pdparams").is_file()
    assert any((journey.run / "visualdl").iterdir())
    assert not list(journey.folder.rglob("*.partial"))


def test_the_best_model_scores_what_the_run_says_and_so_does_its_export(journey):
    best = content(journey.run / "metrics.json")["best"]
    evaluated, exported = content(journey.folder / "evaluated.json"), content(journey.folder / "exported.json")
    for name in METRICS:
        assert evaluated[name] == pytest.approx(best[name], abs=1e-6)
        # rounding may move a box or two over a threshold
        assert exported[name] == pytest.approx(best[name], abs=0.03)


def test_the_exported_model_finds_the_same_boxes_in_paddleocr(journey):
    for name in ("inference.json", "inference.pdiparams", "inference.yml"):
        assert (journey.model / name).is_file()
    parity = content(journey.model / "parity.json")
    assert parity == content(journey.folder / "parity.json")
    assert parity["ok"] and parity["num_theirs"] > 20 and parity["share"] >= 0.98


def test_predict_takes_chinese_and_spaced_paths_and_draws_what_it_found(journey):
    odd = journey.folder / "扫描 件"
    odd.mkdir()
    record = next(record for record in load_split(journey.data, "val") if record.annotation.regions)
    shutil.copy(journey.data / record.path, odd / "发票 1.jpg")
    (odd / "notes.txt").write_text("not an image")
    out = journey.folder / "结果 out"
    wholebatch(journey.folder, "predict", journey.model, odd, "--out", out)
    (found,) = content(out / "predictions.json")
    assert Path(found["image"]).name == "发票 1.jpg" and len(found["regions"]) > 5
    points = np.array(found["regions"][0]["points"])
    height, width = record.size_hw
    assert (points >= 0).all() and (points <= [width, height]).all()
    source, drawn = read_image(odd / "发票 1.jpg"), read_image(out / found["drawn"])
    assert drawn.shape == source.shape and cv2.absdiff(drawn, source).max() > 100
