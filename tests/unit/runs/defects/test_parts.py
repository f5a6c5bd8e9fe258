"""Images larger than a sample become tiles at the scale of evaluation; weights bring the names of their classes.

Run: pytest tests/unit/runs/defects/test_parts.py
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.records import Record
from pipelines.runs.defects.parts import classes_beside, setting_of, targets_of, training_samples
from tests.unit.runs.defects.defect_runs import CLASSES, LABELS, annotation_of, config_of


def records(size_hw: tuple[int, int]) -> list[Record]:
    return [Record(f"{number}.png", size_hw, annotation_of(labels)) for number, labels in enumerate(LABELS)]


@pytest.mark.parametrize(
    ("size_hw", "view", "num_views"),
    [
        ((128, 128), {}, 4),  # an image of a sample's size is one
        ((224, 128), {}, 8),  # starts 0 and 96: two tiles that share 32 px
        ((224, 128), {"scale": 0.5}, 4),  # 112 x 64 network pixels
        ((448, 256), {"longest_side": 224}, 8),  # as 224 x 128
    ],
)
def test_an_image_is_cut_where_it_is_larger_than_a_sample_at_the_scale_of_evaluation(
    size_hw, view, num_views, recorder
):
    config = config_of(
        batching={"overlap": 32, "ok_share": None}, evaluate={"view": {"tile": 256, "overlap": 64, **view}}
    )
    samples = training_samples(config, records(size_hw), CLASSES, recorder)
    assert len(samples.records) == num_views
    assert samples.num_an_epoch == num_views  # without a share of OK samples every one comes once
    is_cut = "cut into 8 tiles of (128, 128) network pixels" in recorder.notes[0]
    assert recorder.notes[0].startswith("4 training images, 2 of them OK") and is_cut == (num_views == 8)


def test_the_share_of_ok_samples_is_that_of_every_epoch(recorder):
    config = config_of(batching={"overlap": 32, "ok_share": 0.75})
    samples = training_samples(config, records((128, 128)), CLASSES, recorder)
    # two defective images; .75 of an epoch OK: six of them, from a pool of two
    assert samples.num_an_epoch == 8
    assert "an epoch: 8 samples: 2 with defects, 6 OK (scratch 2, pit 1)" in recorder.notes


def test_targets_have_room_for_the_image_with_the_most_boxes():
    sample = targets_of(records((128, 128)), CLASSES)
    assert sample.max_boxes == 2
    assert targets_of(records((128, 128)), CLASSES, images_a_sample=4).max_boxes == 8  # a mosaic
    assert targets_of((), CLASSES).max_boxes == 0


def test_the_view_of_a_configuration_is_the_setting_of_its_detector():
    view = config_of(
        evaluate={"view": {"tile": 320, "overlap": 96, "longest_side": 1280, "nms_iou": 0.5}}
    ).evaluate.view
    setting = setting_of(view)
    assert (setting.tile_px, setting.overlap_px, setting.nms_iou) == (320, 96, 0.5)
    assert setting.scale.of((640, 320)) == 2.0


def test_the_classes_of_a_runs_weights_and_of_an_exported_folder_are_found_beside_them(tmp_path: Path):
    (tmp_path / "description.json").write_text(json.dumps({"classes": ["划痕", "pit"]}), encoding="utf-8")
    assert classes_beside(str(tmp_path / "weights.pdparams")) == ["划痕", "pit"]
    exported = tmp_path / "model"
    exported.mkdir()
    (exported / "inference.yml").write_text("label_list: [pit, scratch]\n")
    assert classes_beside(str(exported)) == ["pit", "scratch"]
    assert classes_beside(str(tmp_path / "elsewhere" / "weights.pdparams")) is None
