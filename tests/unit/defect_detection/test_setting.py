"""How an image becomes defects: scaled, padded or tiled, doubles suppressed per class, boxes in the image's pixels.

pytest tests/unit/defect_detection/test_setting.py
"""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from pipelines.defect_detection.setting import Setting, as_prediction, in_view, padded, resized
from pipelines.records import DefectPrediction
from pipelines.tiles.scale import ScaleRule
from tests.detectors import blotches
from tests.unit.defect_detection.networks import NETWORKS, network_of, task_of

NOTHING = DefectPrediction(np.zeros((0, 4)), np.zeros(0), np.zeros(0))


class Recorder:
    """Stands for a network: remembers what it is shown and finds the bright pixels, class 0, confidence 0.9."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []

    def __call__(self, view: np.ndarray) -> DefectPrediction:
        self.shapes.append((view.shape[0], view.shape[1]))
        rows, columns = np.nonzero(view[..., 0] > 200)
        if not len(rows):
            return NOTHING
        box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        return DefectPrediction(np.array([box], np.float32), np.array([0]), np.array([0.9]))


def image_with_defect(size_hw: tuple[int, int], box: tuple[int, int, int, int]) -> np.ndarray:
    image = np.zeros((*size_hw, 3), np.uint8)
    image[box[1] : box[3], box[0] : box[2]] = 255
    return image


def detected(setting: Setting, image: np.ndarray) -> tuple[list[list[float]], list[tuple[int, int]]]:
    recorder = Recorder()
    return setting.detect_with(recorder, image).boxes_xyxy_px.tolist(), recorder.shapes


def test_an_image_smaller_than_a_tile_is_seen_once_padded_to_multiples_of_32() -> None:
    boxes, shapes = detected(Setting(tile_px=640), image_with_defect((50, 70), (10, 20, 30, 40)))
    assert shapes == [(64, 96)]
    assert boxes == [[10, 20, 30, 40]]


def test_an_image_of_one_pixel_is_no_fault() -> None:
    boxes, shapes = detected(Setting(), np.zeros((1, 1, 3), np.uint8))
    assert (boxes, shapes) == ([], [(32, 32)])


def test_a_large_image_is_seen_in_tiles_and_a_defect_in_several_is_one() -> None:
    """100 x 200 px in tiles of 64 with 32 shared: starts 0, 32, 36 down and 0, 32, ..., 128, 136 across."""
    setting = Setting(tile_px=64, overlap_px=32)
    boxes, shapes = detected(setting, image_with_defect((100, 200), (20, 30, 180, 50)))
    assert set(shapes) == {(64, 64)} and len(shapes) > 6
    assert boxes == [[20, 30, 180, 50]]


def test_scale_changes_what_is_seen_and_not_where_a_defect_is() -> None:
    image = image_with_defect((100, 200), (20, 40, 60, 80))
    boxes, shapes = detected(Setting(ScaleRule(0.5)), image)
    assert shapes == [(64, 128)] and boxes == [[20, 40, 60, 80]]
    boxes, shapes = detected(Setting(ScaleRule(2.0)), image)
    assert shapes == [(224, 416)]
    np.testing.assert_allclose(boxes, [[20, 40, 60, 80]], atol=0.5)  # interpolation dims the outermost pixel


def test_longest_side_brings_every_image_to_one_size() -> None:
    setting = Setting(ScaleRule(longest_side_px=160))
    for size_hw, seen in (((100, 200), (96, 160)), ((640, 320), (160, 96))):
        boxes, shapes = detected(setting, image_with_defect(size_hw, (20, 40, 60, 80)))
        assert shapes == [seen]
        np.testing.assert_allclose(boxes, [[20, 40, 60, 80]], atol=4)  # a pixel of the scaled image
    assert setting.side_px == 160


def test_boxes_end_at_the_image_and_those_in_the_padding_are_gone() -> None:
    far = np.array([[-5, -5, 20, 20], [60, 40, 95, 63], [75, 10, 90, 20]], np.float32)
    found = DefectPrediction(far, np.arange(3), np.array([0.9, 0.8, 0.7]))
    result = in_view(lambda view: found, np.zeros((50, 70, 3), np.uint8))
    assert result.boxes_xyxy_px.tolist() == [[0, 0, 20, 20], [60, 40, 70, 50]]
    assert result.class_ids.tolist() == [0, 1]


def test_padding_is_grey_and_only_right_and_below() -> None:
    view = np.full((33, 64, 3), 7, np.uint8)
    result = padded(view)
    assert result.shape == (64, 64, 3)
    assert np.array_equal(result[:33], view) and (result[33:] == 114).all()
    assert padded(result) is result
    assert padded(view, 96).shape == (96, 96, 3)


def test_a_thin_bright_line_survives_scaling_down() -> None:
    image = np.zeros((64, 64, 3), np.uint8)
    image[31] = 255
    assert resized(image, 0.25).max() >= 60  # the mean of four rows; picking pixels could miss the line
    assert resized(image, 1.0) is image


def suppressed(setting: Setting, boxes: list[list[float]], scores: list[list[float]]) -> DefectPrediction:
    """Boxes (a, 4) and scores (a, c)."""
    rows, counts = setting.suppressed(paddle.to_tensor([boxes], "float32"), paddle.to_tensor([scores], "float32"))
    assert counts.tolist() == [len(rows)]
    return as_prediction(rows.numpy())


BOXES = [[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 8.0], [50.0, 50.0, 60.0, 60.0]]  # the first two: IoU 0.8


def test_doubles_of_one_class_go_and_those_of_another_stay() -> None:
    one_class = suppressed(Setting(), BOXES, [[0.7, 0.0], [0.9, 0.0], [0.8, 0.0]])
    assert one_class.boxes_xyxy_px.tolist() == [BOXES[1], BOXES[2]]
    np.testing.assert_allclose(one_class.confidences, [0.9, 0.8])
    two_classes = suppressed(Setting(), BOXES, [[0.7, 0.0], [0.0, 0.9], [0.8, 0.0]])
    assert two_classes.class_ids.tolist() == [1, 0, 0]


def test_what_counts_as_a_double_is_the_settings_iou() -> None:
    scores = [[0.7, 0.0], [0.9, 0.0], [0.8, 0.0]]
    assert len(suppressed(Setting(nms_iou=0.79), BOXES, scores)) == 2
    assert len(suppressed(Setting(nms_iou=0.81), BOXES, scores)) == 3


def test_findings_under_the_floor_and_beyond_the_number_are_not_kept() -> None:
    scores = [[0.5, 0.0], [0.0, 0.009], [0.02, 0.0]]
    np.testing.assert_allclose(suppressed(Setting(), BOXES, scores).confidences, [0.5, 0.02])
    np.testing.assert_allclose(suppressed(Setting(max_detections=1), BOXES, scores).confidences, [0.5])
    assert len(suppressed(Setting(confidence_floor=0.6), BOXES, scores)) == 0


def test_a_setting_goes_to_a_file_and_back() -> None:
    setting = Setting(ScaleRule(0.5), 320, 64, 0.05, 0.5, 50)
    assert Setting.from_view(setting.to_view()) == setting
    by_side = Setting(ScaleRule(longest_side_px=320))
    assert Setting.from_view(by_side.to_view()) == by_side


@pytest.mark.parametrize("name", NETWORKS)
def test_a_real_networks_findings_lie_in_the_image_in_order_and_known_classes(name: str) -> None:
    setting = Setting(tile_px=96, overlap_px=32, confidence_floor=0.05)
    image = blotches(0, (75, 130))
    result = setting.detect(network_of(name), image)
    assert len(result) > 3
    boxes = result.boxes_xyxy_px
    assert (boxes >= 0).all() and (boxes[:, [0, 2]] <= 130).all() and (boxes[:, [1, 3]] <= 75).all()
    assert (boxes[:, 2:] > boxes[:, :2]).all()
    assert (np.diff(result.confidences) <= 0).all()
    assert set(result.class_ids.tolist()) <= set(range(6))


def test_an_images_findings_do_not_depend_on_what_else_is_asked() -> None:
    task = task_of("picodet_lcnet_x1_0")
    images = [blotches(0, (64, 96)), blotches(1, (96, 64)), blotches(2, (40, 100))]
    alone = [task.predict([image])[0] for image in images]
    for ours, theirs in zip(task.predict(images[::-1])[::-1], alone, strict=True):
        assert np.array_equal(ours.boxes_xyxy_px, theirs.boxes_xyxy_px)
        assert np.array_equal(ours.confidences, theirs.confidences)
