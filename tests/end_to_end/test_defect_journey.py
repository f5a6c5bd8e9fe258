"""The whole way of a factory user on the command line: draw, check, train, evaluate, export, predict, report.

One run serves all tests of this file. Run: pytest tests/end_to_end/test_defect_journey.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pipelines.dataset import read_image
from tests.end_to_end.tiny_run import DEFECT_SMOKE, DEFECT_TINY, Journey, as_options, content, wholebatch

pytestmark = pytest.mark.slow

METRICS = {
    "ap_50", "map", "threshold", "mean_f1", "per_class", "confusion", "image_miss_rate", "image_false_alarm_rate",
    "image_curve", "at_wanted_miss_rate", "num_images", "num_ok_images", "num_objects",
}  # fmt: skip


@pytest.fixture(scope="module")
def journey(workplace: Path) -> Journey:
    parts, run, model = Path("零件 parts"), Path("runs/试 run"), Path("runs/试 run/出 model")
    options = as_options((*DEFECT_TINY, "data.synthetic=null", f"data.root={parts}", f"run.name={run.name}"))
    drawn = ("--train", 12, "--val", 8, "--seed", 7, "--ok-share", 0.5, "--size", "128x128", "--size", "128x160")
    images = parts / "images"
    commands: dict[str, tuple[object, ...]] = {
        "synthesize": ("synthesize", "--kind", "factory", "--out", parts, *drawn),
        "check": ("check", parts, "--json", "check.json"),
        "train": ("train", "-c", DEFECT_SMOKE, *options),
        "evaluate": ("evaluate", "-c", DEFECT_SMOKE, "--model", run, *options, "--json", "evaluated.json"),
        "export": ("export", run, "--to", model, "--json", "parity.json"),
        "evaluate exported": ("evaluate", "-c", DEFECT_SMOKE, "--model", model, *options, "--json", "exported.json"),
        "predict": ("predict", run, images, "--out", "结果 run", "--confidence", 0),
        "predict exported": ("predict", model, images, "--out", "结果 model", "--confidence", 0),
        "predict sure": ("predict", model, images, "--out", "sure", "--confidence", 1),
        "report": ("report", run),
    }
    printed = {name: wholebatch(workplace, *command) for name, command in commands.items()}
    return Journey(workplace, workplace / parts, workplace / run, workplace / model, printed)


def test_the_drawn_dataset_passes_its_check_and_its_ok_images_are_counted(journey):
    report = content(journey.folder / "check.json")
    assert report["ok"]
    assert (report["counts"]["train"]["images"], report["counts"]["train"]["ok_images"]) == (12, 6)
    assert (report["counts"]["val"]["images"], report["counts"]["val"]["ok_images"]) == (8, 4)


def test_what_an_epoch_and_the_first_window_hold_is_told(journey):
    assert "12 training images, 6 of them OK" in journey.printed["train"]
    assert "an epoch:" in journey.printed["train"] and "the first window: 8 samples" in journey.printed["train"]


def test_metrics_hold_the_baseline_every_evaluation_and_a_best_that_is_not_worse(journey):
    metrics = content(journey.run / "metrics.json")
    for entry in (metrics["shipped"], metrics["baseline"], metrics["best"], *metrics["evaluations"]):
        assert METRICS.issubset(entry)
        assert (entry["num_images"], entry["num_ok_images"]) == (8, 4)
    assert [entry["update"] for entry in metrics["evaluations"]] == [3]
    assert metrics["best"]["ap_50"] >= metrics["baseline"]["ap_50"]
    told = "did not beat the starting weights" if metrics["best"]["update"] == 0 else "training took AP50 from"
    assert told in journey.printed["train"]


def test_the_log_has_a_line_an_update_with_every_number(journey):
    lines = [json.loads(line) for line in (journey.run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["update"] for line in lines] == [1, 2, 3]
    # an epoch has 14 samples, so the second window is its short one
    assert [line["samples"] for line in lines] == [8, 6, 8]
    for line in lines:
        assert line["samples"] == sum(count for count, _, _ in line["shapes"])
        assert np.isfinite(line["loss"]) and line["grad_norm"] > 0
        assert {"loss_class", "loss_box", "loss_distribution"} <= set(line)


def test_the_best_model_knows_its_classes_and_scores_what_the_run_says(journey):
    description = content(journey.run / "best" / "description.json")
    assert description["classes"] == list(description["metrics"]["per_class"])
    best, evaluated = content(journey.run / "metrics.json")["best"], content(journey.folder / "evaluated.json")
    assert evaluated["ap_50"] == pytest.approx(best["ap_50"], abs=1e-6)
    assert evaluated["num_predictions"] == best["num_predictions"] > 0


def test_the_exported_model_scores_the_same_and_finds_the_same_in_paddlex(journey):
    evaluated, exported = (content(journey.folder / f"{name}.json") for name in ("evaluated", "exported"))
    assert exported["ap_50"] == pytest.approx(evaluated["ap_50"], abs=0.02)
    parity = content(journey.model / "parity.json")
    assert parity == content(journey.folder / "parity.json")
    assert parity["ok"] and parity["num_theirs"] > 20 and parity["program"] == "paddlex"


def test_predict_finds_the_same_with_the_run_and_with_the_exported_folder(journey):
    run, model = (content(journey.folder / f"结果 {name}" / "predictions.json") for name in ("run", "model"))
    assert len(run) == len(model) == 20
    confidences = [[[one["confidence"] for one in entry["defects"]] for entry in found] for found in (run, model)]
    assert sum(map(len, confidences[0])) > 20
    for ours, theirs in zip(*confidences, strict=True):
        assert len(ours) == pytest.approx(len(theirs), abs=2)
        both = min(len(ours), len(theirs))
        np.testing.assert_allclose(sorted(ours)[-both:], sorted(theirs)[-both:], atol=2e-3)


def test_a_finding_has_a_class_a_confidence_and_a_box_inside_the_image_and_is_drawn(journey):
    found = content(journey.folder / "结果 run" / "predictions.json")
    entry = next(entry for entry in found if entry["defects"])
    source, drawn = (
        read_image(journey.folder / entry["image"]),
        read_image(journey.folder / "结果 run" / entry["drawn"]),
    )
    height, width = source.shape[:2]
    classes = content(journey.run / "best" / "description.json")["classes"]
    for defect in entry["defects"]:
        left, top, right, bottom = defect["box"]
        assert 0 <= left <= right <= width and 0 <= top <= bottom <= height
        assert defect["class"] in classes and 0 <= defect["confidence"] <= 1
    assert drawn.shape == source.shape and np.abs(drawn.astype(int) - source).max() > 100


def test_a_confidence_that_nothing_reaches_leaves_every_image_without_a_finding(journey):
    assert "0 of 20 images have a finding, 0 defects in all" in journey.printed["predict sure"]
    assert not any(entry["defects"] for entry in content(journey.folder / "sure" / "predictions.json"))


def test_the_report_speaks_of_defects_and_of_the_export(journey):
    text = " ".join((journey.run / "report.html").read_text(encoding="utf-8").split())
    for wanted in ("AP50", "Confusion", "missed images", "What a threshold costs", "an epoch", "in paddlex"):
        assert wanted in text, wanted
    assert "hmean" not in text and "Not exported yet" not in text


def test_nothing_is_coloured_and_no_library_warns_when_output_is_piped(journey):
    for name, text in journey.printed.items():
        assert "\x1b" not in text and "\r" not in text, name
        assert "UserWarning" not in text, name
