"""The exported detector: its graph under our tiles and in paddlex finds what the network finds, or says what is wrong.

pytest tests/unit/export/test_defect_detector.py
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipelines.defect_detection.network import Detector, build_network
from pipelines.defect_detection.setting import Setting, in_view, padded
from pipelines.defect_detection.weights import load_weights
from pipelines.errors import DataError, UsageError
from pipelines.export import (
    check_in_paddlex,
    compare_defect_predictions,
    export_defect_detector,
    exported_class_names,
    exported_defect_detector,
    paddlex_detector,
    read_defect_settings,
)
from pipelines.records import DefectPrediction
from pipelines.tiles.scale import ScaleRule
from tests.detectors import blotches
from tests.unit.defect_detection.networks import CLASSES, NETWORKS, network_of

SETTING = Setting(ScaleRule(0.5), tile_px=128, overlap_px=32, confidence_floor=0.3)
PICODET = "picodet_lcnet_x1_0"
LARGE, SMALL, ONE_TILE = blotches(1, (300, 420)), blotches(2, (90, 170)), blotches(3, (256, 256))
"""At scale 0.5: six tiles; less than a tile, and no multiples of 32; exactly one tile."""


def _export(network: Detector, out: Path, setting: Setting = SETTING) -> Path:
    return export_defect_detector(network, out, setting=setting, class_names=network.class_names, meta={"run": "r1"})


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The exported folder of a network, made once; only for reading."""
    folders: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in folders:
            folders[name] = _export(network_of(name), tmp_path_factory.mktemp("models") / name)
        return folders[name]

    return folder


@cache
def _in_paddlex(folder: Path) -> Callable[[np.ndarray], DefectPrediction]:
    return paddlex_detector(folder)


@pytest.fixture
def picodet(folder_of: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of PicoDet's folder, free to be spoilt."""
    return Path(shutil.copytree(folder_of(PICODET), tmp_path / "model"))


def _edit(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(yaml.safe_dump(content), encoding="utf-8")


def _found_by(network: Detector, images: list[np.ndarray], setting: Setting = SETTING) -> list[DefectPrediction]:
    return [setting.detect(network, image) for image in images]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_folder_alone_finds_the_same_on_images_of_any_size(name: str, folder_of: Callable[[str], Path]) -> None:
    detect = exported_defect_detector(folder_of(name))
    images = [LARGE, SMALL, ONE_TILE, LARGE.transpose(1, 0, 2)]
    ours = _found_by(network_of(name), images)
    report = compare_defect_predictions(ours, [detect(image) for image in images])
    assert report.ok, report.render()
    assert report.num_ours > 100
    assert min(len(prediction) for prediction in ours) > 10
    assert len({int(class_id) for prediction in ours for class_id in prediction.class_ids}) > 2
    # The control: another overlap moves the tiles, and the boxes with them.
    moved = _found_by(network_of(name), images, replace(SETTING, overlap_px=64))
    assert not compare_defect_predictions(moved, ours).ok


@pytest.mark.parametrize("name", NETWORKS)
def test_paddlex_finds_the_same_in_whatever_fills_one_view(name: str, folder_of: Callable[[str], Path]) -> None:
    images = [ONE_TILE, blotches(4, (256, 256))]
    report = compare_defect_predictions(
        _found_by(network_of(name), images), [_in_paddlex(folder_of(name))(image) for image in images]
    )
    assert report.ok, report.render()
    assert report.num_ours > 50


def test_paddlex_pads_what_is_not_square_as_evaluation_does(folder_of: Callable[[str], Path]) -> None:
    views = [blotches(5, (70, 128)), blotches(6, (128, 33))]
    find = SETTING.finder(network_of(PICODET))
    ours = [in_view(find, view) for view in views]
    report = compare_defect_predictions(ours, [_in_paddlex(folder_of(PICODET))(view) for view in views])
    assert report.ok, report.render()
    assert report.num_ours > 20
    # The control: the network does see the padding, so filling up to the square changes boxes.
    square = [find(padded(view, 128)) for view in views]
    assert not compare_defect_predictions(ours, square).ok


def test_a_network_that_sees_images_at_one_longest_side_is_the_same_in_paddlex(tmp_path: Path) -> None:
    setting = replace(SETTING, scale=ScaleRule(longest_side_px=120))
    network, images = network_of(PICODET), [blotches(6, (130, 250)), blotches(7, (301, 270))]
    folder = _export(network, tmp_path / "model", setting)
    ours = _found_by(network, images, setting)
    assert compare_defect_predictions(ours, check_in_paddlex(folder, images)).ok
    detect = exported_defect_detector(folder)
    assert compare_defect_predictions(ours, [detect(image) for image in images]).ok
    assert not compare_defect_predictions(ours, _found_by(network, images)).ok


def test_nothing_found_is_an_empty_prediction(tmp_path: Path) -> None:
    folder = _export(network_of(PICODET), tmp_path / "model", replace(SETTING, confidence_floor=0.999999))
    found = [exported_defect_detector(folder)(LARGE), *check_in_paddlex(folder, [ONE_TILE])]
    assert [prediction.boxes_xyxy_px.shape for prediction in found] == [(0, 4), (0, 4)]


def _other_mean(content: dict[str, Any]) -> None:
    content["Preprocess"][1]["mean"] = [0.45, 0.45, 0.65]


def test_another_mean_in_the_folder_is_found_out(picodet: Path) -> None:
    ours = _found_by(network_of(PICODET), [ONE_TILE])
    _edit(picodet / "inference.yml", _other_mean)
    assert not compare_defect_predictions(ours, [exported_defect_detector(picodet)(ONE_TILE)]).ok
    assert not compare_defect_predictions(ours, check_in_paddlex(picodet, [ONE_TILE])).ok


def test_another_order_of_classes_in_the_folder_is_found_out(picodet: Path) -> None:
    ours = _found_by(network_of(PICODET), [ONE_TILE])
    _edit(picodet / "inference.yml", lambda content: content["label_list"].reverse())
    assert not compare_defect_predictions(ours, check_in_paddlex(picodet, [ONE_TILE])).ok
    with pytest.raises(DataError, match=r"wholebatch\.yml and inference\.yml must name the same classes"):
        exported_defect_detector(picodet)


def test_classes_that_the_network_does_not_have_are_named(picodet: Path) -> None:
    _edit(picodet / "inference.yml", lambda content: content.update(label_list=["wood"] * len(CLASSES)))
    with pytest.raises(DataError, match=r"paddlex finds classes that the model does not have: .'wood'"):
        check_in_paddlex(picodet, [ONE_TILE])


def test_the_two_files_hold_what_paddlex_and_tiling_need(folder_of: Callable[[str], Path]) -> None:
    folder = folder_of(PICODET)
    assert sorted(path.name for path in folder.iterdir()) == [
        "inference.json",
        "inference.pdiparams",
        "inference.yml",
        "wholebatch.yml",
    ]
    description = yaml.safe_load((folder / "inference.yml").read_text(encoding="utf-8"))
    assert description["Global"] == {"model_name": "PicoDet-S"}
    assert description["label_list"] == list(CLASSES)
    assert description["draw_threshold"] == 0.5
    grey = 114 / 255
    assert description["Preprocess"] == [
        {"type": "Resize", "target_size": [128, 128], "keep_ratio": True, "interp": 3},
        {"type": "NormalizeImage", "mean": [grey] * 3, "std": [1.0] * 3, "norm_type": "mean_std", "is_scale": True},
        {"type": "Permute"},
        {"type": "PadStride", "stride": 32},
    ]
    assert Setting.from_view(read_defect_settings(folder)) == SETTING
    assert exported_class_names(folder) == CLASSES
    provenance = yaml.safe_load((folder / "wholebatch.yml").read_text(encoding="utf-8"))
    assert provenance["run"] == "r1"
    yolo = yaml.safe_load((folder_of("ppyoloe_plus_s") / "inference.yml").read_text(encoding="utf-8"))
    assert yolo["Global"] == {"model_name": "PP-YOLOE_plus-S"}


def test_class_names_that_look_like_other_things_stay_names(tmp_path: Path) -> None:
    names = ("no", "1e3", "Öl: Fleck", "007", "null", "#6")
    network = build_network(PICODET, names)
    assert exported_class_names(_export(network, tmp_path / "model")) == names


def test_a_setting_survives_its_names_in_a_configuration() -> None:
    setting = Setting(ScaleRule(longest_side_px=700), 320, 48, 0.02, 0.55, 77)
    assert setting.to_view() == {
        "scale": 1.0,
        "longest_side": 700,
        "tile": 320,
        "overlap": 48,
        "confidence_floor": 0.02,
        "nms_iou": 0.55,
        "max_detections": 77,
    }
    assert Setting.from_view(setting.to_view()) == setting


@pytest.mark.parametrize("name", [PICODET, "ppyoloe_plus_s"])
def test_export_leaves_the_network_as_it_was(name: str, tmp_path: Path) -> None:
    network = network_of(name)
    before = {key: (tensor.name, tensor.numpy().copy()) for key, tensor in network.state_dict().items()}
    _export(network, tmp_path / "model")
    after = network.state_dict()
    assert {key: tensor.name for key, tensor in after.items()} == {key: value[0] for key, value in before.items()}
    assert all(np.array_equal(after[key].numpy(), value) for key, (_, value) in before.items())
    assert [path.name for path in tmp_path.iterdir()] == ["model"]  # nothing half-made beside it


def test_an_exported_picodet_is_a_starting_point_again(folder_of: Callable[[str], Path]) -> None:
    again = build_network(PICODET, CLASSES)
    table = load_weights(again, str(folder_of(PICODET)), file_classes=CLASSES)
    assert all(row.num_matched == row.num_expected for row in table.rows), table.render()

    again.eval()
    ours, theirs = (_found_by(network, [ONE_TILE]) for network in (network_of(PICODET), again))
    assert compare_defect_predictions(ours, theirs).ok


def test_an_earlier_export_is_replaced_and_a_foreign_folder_is_not(tmp_path: Path) -> None:
    network = network_of(PICODET)
    out = _export(network, tmp_path / "model")
    (out / "left_over.txt").write_text("from the first export")
    _export(network, out, replace(SETTING, nms_iou=0.4))
    assert read_defect_settings(out)["nms_iou"] == 0.4
    assert not (out / "left_over.txt").exists()
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter.txt").write_text("three years of work")
    with pytest.raises(UsageError, match="thesis: exists and is no export"):
        _export(network, foreign)
    assert [path.name for path in foreign.iterdir()] == ["chapter.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "thesis"]


def test_class_names_in_another_order_than_the_network_s_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="class_names: the network has"):
        export_defect_detector(network_of(PICODET), tmp_path / "model", setting=SETTING, class_names=CLASSES[::-1])
    assert not (tmp_path / "model").exists()


def test_a_folder_that_is_no_exported_detector_is_told_so(picodet: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere: holds no wholebatch\.yml; export a model there first"):
        exported_defect_detector(tmp_path / "nowhere")
    _edit(picodet / "wholebatch.yml", lambda content: content.pop("view"))
    with pytest.raises(UsageError, match="names no view, so this is no exported defect detector"):
        exported_defect_detector(picodet)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("wholebatch.yml", lambda content: content["view"].pop("tile"), "wholebatch.yml: view: 'tile'"),
        ("wholebatch.yml", lambda content: content["view"].update(scale=-1), "must be above 0, but got -1"),
        ("inference.yml", lambda content: content["Preprocess"].pop(1), "NormalizeImage with three means and stds"),
        ("inference.yml", lambda content: content["Preprocess"][1].update(mean=[0.5]), "NormalizeImage with three"),
    ],
)
def test_a_spoilt_description_is_named(
    file: str, change: Callable[[dict[str, Any]], None], message: str, picodet: Path
) -> None:
    _edit(picodet / file, change)
    with pytest.raises(DataError, match=message):
        exported_defect_detector(picodet)


def test_a_spoilt_graph_is_named_by_both_programs(picodet: Path) -> None:
    (picodet / "inference.json").write_text("{}")
    with pytest.raises(DataError, match=r"model: paddle .* can't load the graph"):
        exported_defect_detector(picodet)
    with pytest.raises(DataError, match="model: paddlex can't load it as PicoDet-S"):
        check_in_paddlex(picodet, [])


def test_an_unknown_device_is_named(folder_of: Callable[[str], Path]) -> None:
    with pytest.raises(UsageError, match="device: expected cpu, gpu or gpu:N, but got 'cuda'"):
        exported_defect_detector(folder_of(PICODET), device="cuda")
