"""What a defect run's page says follows from the scorer's figures; rates that fall are better.

Run: pytest tests/unit/runs/defects/test_page.py
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.records import Record
from pipelines.report import RunResult, write_report
from pipelines.runs.defects import page as page_module
from pipelines.runs.defects import page_tables
from pipelines.runs.defects.captions import Captions
from pipelines.runs.defects.page import DefectPage
from pipelines.synthesis.factory_dataset import write_factory_images
from tests.unit.report.run_values import log_line
from tests.unit.runs.defects.defect_runs import BASELINE, BEST, LABELS, SIZE_HW, annotation_of, config_of, scored


@pytest.fixture
def result() -> RunResult:
    """AP50 of the scratch rose, that of the pit fell."""
    found = {"shipped": BASELINE, "baseline": BASELINE, "best": BEST, "evaluations": [{**BEST, "update": 8}]}
    for entry in (BASELINE, BEST, *found["evaluations"]):
        entry["objective"] = entry["ap_50"]
    return RunResult(config_of().model_dump(mode="json"), found, "AP50", [log_line(1)], 0.001, "starting weights")


def row_of(table, name):
    (row,) = (row for row in table.rows if row[0] == name)
    return list(row)


def test_the_headline_has_both_stages_their_difference_and_the_threshold(result):
    table = page_tables.result_table(result)
    assert list(table.columns) == ["", "starting weights", "best (update 8)", "best − starting weights"]
    # the baseline misses one of two defective images; the best none, but stops one of two OK ones
    assert row_of(table, "missed images") == ["missed images", "0.500", "0.000", "−0.500"]
    assert row_of(table, "at confidence") == ["at confidence", "0.200", "0.600", ""]
    marks = {row[0]: table.marks.get((number, 3), "") for number, row in enumerate(table.rows)}
    assert marks["missed images"] == "better"
    assert marks["at confidence"] == ""
    assert "missed images" in table.note.lower()


def test_a_rate_that_rose_is_worse_and_an_ap_that_rose_is_better(result):
    table = page_tables.result_table(replace(result, metrics={**result.metrics, "baseline": BEST, "best": BASELINE}))
    marks = {row[0]: table.marks.get((number, 3), "") for number, row in enumerate(table.rows)}
    assert marks["missed images"] == "worse"


def test_every_class_has_its_counts_at_the_threshold(result):
    table = page_tables.class_table(result)
    row = row_of(table, "scratch")
    # two scratches found at .6 and above; the pit that was taken for one is false
    assert row[:2] == ["scratch", "2"] and row[-3:] == ["2", "0", "1"]
    assert row_of(table, "pit")[-3:] == ["0", "1", "0"]
    assert len(row) == len(table.columns)


def test_the_confusion_matrix_names_what_was_taken_for_what(result):
    table = page_tables.confusion_table(result.metrics["best"])
    assert list(table.columns) == ["labelled as", "scratch", "pit", "not found"]
    assert [list(row) for row in table.rows] == [
        ["scratch", "2", "0", "0"],
        ["pit", "1", "0", "0"],
        ["nothing", "0", "0", ""],  # the false alarm of .4 is below the threshold of .6
    ]
    assert dict(table.marks) == {(0, 1): "strong", (1, 2): "strong"}


def test_the_threshold_of_the_wanted_miss_rate_stands_beside_the_chosen_one(result):
    table = page_tables.threshold_table(result.metrics["best"])
    chosen, wanted = table.rows
    assert list(chosen) == ["best mean F1", "0.600", "0.0%", "0.0%"]
    # at most .1 x 2 = 0 images may be missed: the lower of the two images' highest confidences, .8 and .9
    assert list(wanted) == ["at most 10.0% missed images", "0.800", "0.0%", "0.0%"]
    assert table.note == ""


def test_a_wanted_miss_rate_out_of_reach_is_said(result):
    assert "out of reach at any threshold" in page_tables.threshold_table(result.metrics["baseline"]).note


def test_rates_without_images_of_the_kind_are_dashes():
    metrics = scored([], [], [], [])
    undefined = {**metrics, "image_false_alarm_rate": None, "image_miss_rate": None}
    assert list(page_tables.threshold_table(undefined).rows[0]) == ["default: no box is right", "0.500", "–", "–"]


def test_remarks_name_the_rates_and_the_classes_that_got_worse(result):
    rates, lower = page_tables.remarks(result)
    assert rates == (
        "At confidence 0.600 the best model finds nothing in 0.0% of the images with a defect, and something in 0.0% of"
        " the OK images."
    )
    assert lower == "AP50 lower than with the starting weights: pit (1.000 to 0.000)."


def test_curves_are_over_updates_and_over_thresholds(result):
    average, images, by_threshold = page_tables.panels(result)
    assert [line.label for line in average.lines] == ["AP50", "mAP"]
    assert list(images.points) == [8]
    assert list(by_threshold.points) == sorted(by_threshold.points)
    assert by_threshold.across == "confidence threshold"


def test_the_data_table_counts_images_defects_and_what_an_epoch_takes(tmp_path: Path):
    write_factory_images(tmp_path / "data", num_train=10, num_val=10, seed=1, ok_share=0.5, sizes_hw=((128, 128),))
    config = config_of(data={"root": tmp_path / "data"}, batching={"ok_share": 0.5, "overlap": 32})
    page = DefectPage(config)
    classes = ["scratch", "pit", "stain", "dent"]
    (table,) = page_tables.data_tables(config, classes)
    assert row_of(table, "train images")[:3] == ["train images", "10", "5"]
    assert row_of(table, "an epoch")[1:3] == ["10", "5"]
    assert len(table.columns) == len(table.rows[0]) == 4 + 4
    for row in table.rows:
        assert sum(map(int, row[4:])) == int(row[3])
    assert page.objective_name == "AP50"


def test_a_dataset_that_is_gone_is_said_where_its_numbers_would_stand(tmp_path: Path):
    (table,) = page_tables.data_tables(config_of(data={"root": tmp_path / "gone"}), ["scratch"])
    assert "gone" in table.rows[0][1]


def test_images_of_every_class_and_ok_ones_are_worth_drawing():
    records = [Record(f"{number}.png", SIZE_HW, annotation_of(LABELS[number % 4])) for number in range(40)]
    chosen = DefectPage(config_of()).worth_drawing(records, 6)
    assert len(chosen) == 6
    assert {int(record.path.removesuffix(".png")) % 4 for record in chosen} >= {0, 1}
    assert sum(record.annotation.is_ok for record in chosen) == 2


def test_the_whole_page_is_written_and_says_what_it_must(result, tmp_path: Path):
    page = DefectPage(config_of(data={"root": tmp_path / "gone"}))
    text = write_report(tmp_path / "report.html", result, page.content(result)).read_text("utf-8")
    said = " ".join(text.split())
    assert f"Training added {BEST['ap_50'] - BASELINE['ap_50']:+.3f} to the AP50 of the starting weights" in said
    for wanted in ("missed images", "Confusion", "What a threshold costs", "Not exported yet", "paddlex", "tile"):
        assert wanted in said, wanted
    assert "hmean" not in said


def test_class_names_that_can_not_be_drawn_are_explained_beside_the_pictures(result, monkeypatch):
    monkeypatch.setattr(
        page_module, "captions_of", lambda names: Captions(("class 1", "pit"), Path("a.ttf"), "so it is")
    )
    assert DefectPage(config_of()).content(result).pictures_key == "fits a label of its class at IoU .5 (so it is)"
