"""Augmentation of factory images: boxes on the pixels that they marked, tiles that stay what they were drawn for."""

from __future__ import annotations

import pickle
from functools import partial

import cv2
import numpy as np
import pytest

from pipelines.batching.defects import DefectAugmentation
from pipelines.batching.order import sample_rng
from pipelines.batching.shapes import ShapeChoice
from pipelines.batching.views import Look, warp
from pipelines.errors import UsageError
from pipelines.geometry import transform_boxes
from pipelines.records import DefectAnnotation, Record
from pipelines.tiles.scale import ScaleRule

STILL = DefectAugmentation(scale_jitter=(1.0, 1.0), horizontal_flip=False, shift_share=0.0, colour=None)
LIVELY = DefectAugmentation(
    scale_jitter=(0.7, 1.4), vertical_flip=True, quarter_turns=True, shift_share=0.3, min_visible=0.0, colour=None
)


def look(image: np.ndarray) -> Look:
    return partial(warp, image)


def annotated(*boxes: tuple[float, ...], ignored: bool = False) -> DefectAnnotation:
    return DefectAnnotation(
        np.array(boxes, np.float32).reshape(-1, 4), np.arange(len(boxes)), np.full(len(boxes), ignored)
    )


def board(view: tuple[int, int, int, int] | None = None) -> tuple[np.ndarray, Record]:
    """A black image of 300 x 400 (height x width) with one white rectangle, x 150..209 and y 100..129."""
    image = np.zeros((300, 400, 3), np.uint8)
    image[100:130, 150:210] = 255
    return image, Record("board.png", (300, 400), annotated((150, 100, 210, 130)), view_xyxy_px=view)


def bounds(image: np.ndarray) -> np.ndarray:
    """The box around all that is more white than black."""
    rows, columns = np.nonzero(image[..., 0] > 127)
    return np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])


@pytest.mark.parametrize("scale", [ScaleRule(0.5), ScaleRule(), ScaleRule(2.3), ScaleRule(longest_side_px=180)])
@pytest.mark.parametrize("view", [None, (120, 60, 280, 220)])
def test_boxes_lie_on_the_pixels_that_they_marked(scale, view) -> None:
    image, record = board(view)
    augmentation = DefectAugmentation(**{**vars(LIVELY), "scale": scale})
    upright = []
    for index in range(40):
        shown, seen = augmentation.apply(look(image), record, ShapeChoice((160, 192)), sample_rng(0, 0, index))
        assert shown.shape == (160, 192, 3) and len(seen.boxes_xyxy_px) == 1
        np.testing.assert_allclose(seen.boxes_xyxy_px[0], bounds(shown), atol=1.0)
        upright.append(np.ptp(seen.boxes_xyxy_px[0][[0, 2]]) > np.ptp(seen.boxes_xyxy_px[0][[1, 3]]))
    assert 5 < sum(upright) < 35  # both turned and unturned ones were compared


def test_the_comparison_of_boxes_and_pixels_can_fail() -> None:
    """The control: the box of the unmirrored image is off by far more than a pixel on a mirrored one."""
    image, record = board()
    mirrored = DefectAugmentation(**{**vars(STILL), "horizontal_flip": True})
    off = []
    for index in range(20):
        shown, _ = mirrored.apply(look(image), record, ShapeChoice((320, 416)), sample_rng(0, 0, index))
        _, plain = STILL.apply(look(image), record, ShapeChoice((320, 416)), sample_rng(0, 0, index))
        off.append(np.abs(plain.boxes_xyxy_px[0] - bounds(shown)).max())
    assert set(off) == {0.0, 40.0}  # columns 150..209 of 400, seen from the right: 190..249


def test_a_tile_as_it_lies_is_a_copy_of_its_pixels() -> None:
    image = np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8)
    record = Record("board.png", (300, 400), annotated((150, 100, 210, 130)), view_xyxy_px=(128, 96, 256, 192))
    shown, seen = STILL.apply(look(image), record, ShapeChoice((96, 128)), sample_rng(0, 0, 0))
    assert np.array_equal(shown, image[96:192, 128:256])
    assert seen.boxes_xyxy_px.tolist() == [[22, 4, 82, 34]]


def test_a_longest_side_shows_the_whole_image_as_evaluation_resizes_it() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8)
    image, record = cv2.GaussianBlur(noise, (0, 0), 3), board()[1]
    whole = DefectAugmentation(**{**vars(STILL), "scale": ScaleRule(longest_side_px=192)})
    shown, seen = whole.apply(look(image), record, ShapeChoice((160, 192)), sample_rng(0, 0, 0))
    inner = np.abs(shown[8:152].astype(int) - cv2.resize(image, (192, 144)))[1:-1, 1:-1]
    assert inner.max() <= 3  # OpenCV warps in steps of 1/32 px
    np.testing.assert_allclose(seen.boxes_xyxy_px, [[72, 56, 100.8, 70.4]], atol=0.25)  # by 0.48, 8 px of margin


@pytest.mark.parametrize(
    ("switches", "expected"),
    [((False, False, False), 1), ((True, False, False), 2), ((False, True, False), 2), ((True, True, False), 4),
     ((False, False, True), 4), ((True, False, True), 8), ((True, True, True), 8)],
)  # fmt: skip
def test_each_switch_adds_its_orientations_and_no_others(switches, expected: int) -> None:
    """Four corners of four brightnesses: where they lie tells the orientation."""
    image = np.kron(np.array([[10, 60], [110, 160]], np.uint8), np.ones((32, 32), np.uint8))
    image, record = cv2.merge([image] * 3), Record("part.png", (64, 64), DefectAnnotation())
    names = ("horizontal_flip", "vertical_flip", "quarter_turns")
    augmentation = DefectAugmentation(**{**vars(STILL), **dict(zip(names, switches, strict=True))})
    shown = [augmentation.apply(look(image), record, ShapeChoice((64, 64)), sample_rng(0, 0, i))[0] for i in range(80)]
    assert len({tuple(one[16::32, 16::32, 0].ravel().tolist()) for one in shown}) == expected
    assert (10, 60, 110, 160) in {tuple(one[16::32, 16::32, 0].ravel().tolist()) for one in shown}


def test_defect_sizes_follow_the_scale_and_its_jitter() -> None:
    image, record = board()
    augmentation = DefectAugmentation(scale=ScaleRule(2.0), scale_jitter=(0.9, 1.1), colour=None)
    widths = []
    for index in range(60):
        _, seen = augmentation.apply(look(image), record, ShapeChoice((608, 800)), sample_rng(0, 0, index))
        widths.append(float(np.ptp(seen.boxes_xyxy_px[0][[0, 2]])))
    assert 2 * 60 * 0.9 - 0.01 <= min(widths) < 112 and 128 < max(widths) <= 2 * 60 * 1.1 + 0.01


def test_view_moves_by_at_most_its_share_and_never_out_of_the_image() -> None:
    image, record = board((0, 100, 100, 200))
    shifted = DefectAugmentation(**{**vars(STILL), "shift_share": 0.2, "min_visible": 0.0})
    corners = []
    ramp = np.broadcast_to(np.arange(400, dtype=np.float64) / 2, (300, 400)).astype(np.uint8)
    image = cv2.merge([ramp, np.arange(300, dtype=np.uint16).repeat(400).reshape(300, 400).astype(np.uint8), ramp])
    empty = Record("board.png", (300, 400), DefectAnnotation(), view_xyxy_px=record.view_xyxy_px)
    for index in range(100):
        shown, _ = shifted.apply(look(image), empty, ShapeChoice((96, 96)), sample_rng(0, 0, index))
        corners.append((2 * int(shown[0, 0, 0]), int(shown[0, 0, 1])))
    left, top = np.array(corners).T
    # 96 px of a tile of 100 px: 20 px of shift and 2 px of slack to either side of its middle
    assert left.min() == 0 and 18 <= left.max() <= 24
    assert 80 <= top.min() <= 84 and 120 <= top.max() <= 124


@pytest.mark.parametrize(("view", "is_ok"), [((100, 100, 200, 200), True), ((190, 100, 290, 200), False)])
def test_an_ok_tile_stays_ok_and_a_defective_tile_stays_defective(view, is_ok: bool) -> None:
    image = np.zeros((300, 400, 3), np.uint8)
    record = Record("board.png", (300, 400), annotated((202, 140, 222, 160)), view_xyxy_px=view)
    augmentation = DefectAugmentation(scale_jitter=(0.8, 1.25), shift_share=0.4, colour=None)
    for index in range(100):
        _, seen = augmentation.apply(look(image), record, ShapeChoice((96, 96)), sample_rng(0, 0, index))
        assert seen.is_ok == is_ok
    # the control: views moved without this care are of the other kind now and then
    views = [augmentation._moved(record, (96, 96), np.eye(2), sample_rng(0, 0, index)) for index in range(20)]
    assert any(augmentation._seen(record, one, (96, 96)).is_ok != is_ok for one in views)


def test_sample_smaller_than_its_tile_shows_its_defect_wherever_in_the_tile_that_lies() -> None:
    image = np.zeros((300, 400, 3), np.uint8)
    record = Record("board.png", (300, 400), annotated((4, 250, 14, 262)), view_xyxy_px=(0, 100, 200, 300))
    for index in range(100):
        _, seen = LIVELY.apply(look(image), record, ShapeChoice((32, 64)), sample_rng(0, 0, index))
        assert not seen.is_ok
    views = [LIVELY._moved(record, (32, 64), np.eye(2), sample_rng(0, 0, index)) for index in range(100)]
    alone = sum(LIVELY._seen(record, one, (32, 64)).is_ok for one in views)
    assert alone > 50  # the control: left to chance, most would miss it


def test_defect_cut_by_the_tile_is_an_ignore_region_and_classes_follow_their_boxes() -> None:
    image = np.zeros((300, 400, 3), np.uint8)
    annotation = annotated((10, 10, 30, 30), (90, 40, 130, 60), (200, 200, 220, 220), (60, 60, 80, 90))
    record = Record("board.png", (300, 400), annotation, view_xyxy_px=(0, 0, 96, 96))
    _, seen = STILL.apply(look(image), record, ShapeChoice((96, 96)), sample_rng(0, 0, 0))
    assert seen.class_ids.tolist() == [0, 1, 3]  # the third lies outside
    assert seen.is_ignored.tolist() == [False, True, False]  # 6 of 40 columns are left of the second
    assert seen.boxes_xyxy_px[1].tolist() == [90, 40, 96, 60]


def test_image_smaller_than_the_sample_is_whole_and_has_the_colour_of_its_margins_around() -> None:
    image = np.full((40, 50, 3), (30, 60, 90), np.uint8)
    image[10:20, 10:20] = 255
    record = Record("part.png", (40, 50), annotated((10, 10, 20, 20)))
    augmentation = DefectAugmentation(scale_jitter=(1.0, 1.0), shift_share=0.5, colour=None)
    for index in range(20):
        shown, seen = augmentation.apply(look(image), record, ShapeChoice((96, 128)), sample_rng(0, 0, index))
        assert (shown == 255).all(axis=2).sum() == 100
        assert ((shown == 255) | (shown == (30, 60, 90))).all()
        np.testing.assert_allclose(seen.boxes_xyxy_px[0], bounds(shown), atol=1e-4)


@pytest.mark.parametrize("ignored", [None, (10.0, 10.0, 30.0, 30.0)])
def test_ok_image_gives_a_sample_without_defects(ignored) -> None:
    image = np.full((64, 64, 3), 128, np.uint8)
    annotation = DefectAnnotation() if ignored is None else annotated(ignored, ignored=True)
    record = Record("ok.png", (64, 64), annotation)
    shown, seen = DefectAugmentation().apply(look(image), record, ShapeChoice((64, 64)), sample_rng(0, 0, 0))
    assert shown.shape == (64, 64, 3) and seen.is_ok
    assert len(seen.boxes_xyxy_px) == len(annotation.boxes_xyxy_px)


def test_same_randomness_gives_the_same_bytes_also_after_pickling_and_inputs_stay_as_they_were() -> None:
    image, record = board()
    before, boxes = image.copy(), record.annotation.boxes_xyxy_px.copy()
    lively = DefectAugmentation(quarter_turns=True)
    twin, choice = pickle.loads(pickle.dumps(lively)), ShapeChoice((128, 128))
    one, other = (lively.apply(look(image), record, choice, sample_rng(0, 0, i))[0] for i in (1, 2))
    assert np.array_equal(one, twin.apply(look(image), record, choice, sample_rng(0, 0, 1))[0])
    assert not np.array_equal(one, other)
    assert np.array_equal(image, before) and np.array_equal(record.annotation.boxes_xyxy_px, boxes)


def test_whole_pages_are_refused() -> None:
    with pytest.raises(UsageError, match="whole_page_share"):
        STILL.apply(look(board()[0]), board()[1], ShapeChoice((64, 64), is_page=True), sample_rng(0, 0, 0))


@pytest.mark.parametrize("wrong", [{"scale_jitter": (1.2, 0.8)}, {"shift_share": 2}, {"min_visible": -1}])
def test_impossible_settings_are_refused_by_name(wrong: dict) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        DefectAugmentation(**wrong)


def test_boxes_through_a_quarter_turn_by_hand() -> None:
    """A quarter clockwise of an image 400 wide and 300 high: (x, y) comes to (300 - y, x)."""
    matrix = np.array([[0.0, -1, 300], [1, 0, 0]])
    assert transform_boxes(np.array([[150.0, 100, 210, 130]]), matrix).tolist() == [[170, 150, 200, 210]]
    assert transform_boxes(np.zeros((0, 4), np.float32), matrix).shape == (0, 4)
