"""A mosaic shows four pieces where their boxes say, all of one kind, the same whatever workers make it.

Run: pytest tests/unit/batching/test_mosaic.py
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.batching.defects import DefectAugmentation
from pipelines.batching.loader import Window, WindowLoader
from pipelines.batching.mix import EpochMix
from pipelines.batching.mosaic import NUM_COMPANIONS, assembled, piece_choice
from pipelines.batching.order import EveryRecordOnce, Position
from pipelines.batching.shapes import ShapeChoice, ShapePlan
from pipelines.errors import DataError
from pipelines.records import DefectAnnotation, Record, Sample

STILL = DefectAugmentation(scale_jitter=(1.0, 1.0), horizontal_flip=False, shift_share=0.0, colour=None)


def one_box(*box: float, class_id: int = 0, ignored: bool = False) -> DefectAnnotation:
    return DefectAnnotation(np.array([box]), np.array([class_id]), np.array([ignored]))


def boxes_as_targets(image: np.ndarray, annotation: DefectAnnotation, source: str) -> Sample:
    """Targets with room for eight boxes; a function of this module, for workers."""
    boxes = np.zeros((8, 4), np.float32)
    boxes[: len(annotation.boxes_xyxy_px)] = annotation.boxes_xyxy_px
    return Sample(image, {"boxes": boxes}, source)


def test_each_piece_lies_in_its_quarter_with_its_boxes_classes_and_ignore_marks() -> None:
    pieces = [
        (np.full((20, 30, 3), 10, np.uint8), one_box(1, 2, 11, 12, class_id=3)),
        (np.full((20, 30, 3), 20, np.uint8), DefectAnnotation()),
        (np.full((20, 30, 3), 30, np.uint8), one_box(0, 0, 30, 20, class_id=1, ignored=True)),
        (np.full((20, 30, 3), 40, np.uint8), one_box(5, 6, 7, 8)),
    ]
    image, annotation = assembled(pieces)
    assert image.shape == (40, 60, 3)
    assert [int(image[y, x, 0]) for y in (0, 39) for x in (0, 59)] == [10, 20, 30, 40]
    assert annotation.boxes_xyxy_px.tolist() == [[1, 2, 11, 12], [0, 20, 30, 40], [35, 26, 37, 28]]
    assert annotation.class_ids.tolist() == [3, 1, 0] and annotation.is_ignored.tolist() == [False, True, False]


def test_a_piece_has_half_the_sides_of_the_sample() -> None:
    assert piece_choice(ShapeChoice((160, 192))) == ShapeChoice((80, 96))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record]]:
    """Six black boards with a white rectangle that is their defect, and six grey OK boards."""
    root, records = tmp_path_factory.mktemp("boards"), []
    for index in range(12):
        image, annotation = np.full((64, 64, 3), 100, np.uint8), DefectAnnotation()
        if index < 6:
            image[:] = 0
            image[20:36, 24:44] = 255
            annotation = one_box(24, 20, 44, 36)
        cv2.imwrite(str(root / f"{index}.png"), image)
        records.append(Record(f"{index}.png", (64, 64), annotation))
    return root, records


def loader(dataset: tuple[Path, list[Record]], num_companions: int = NUM_COMPANIONS, **settings) -> WindowLoader:
    root, records = dataset
    mix = EpochMix(records, ok_share=0.5, seed=3, num_companions=num_companions)
    plan = ShapePlan(((64, 64),))
    return WindowLoader(records, root, boxes_as_targets, STILL, plan, mix=mix, effective_batch=12, **settings)


def samples(window: Window) -> list[tuple[bytes, np.ndarray]]:
    found = [(image.tobytes(), boxes) for one in window.micro_batches for image, boxes in
             zip(one.images, one.targets["boxes"], strict=True)]  # fmt: skip
    return sorted(found, key=lambda sample: sample[0])


def test_a_mosaic_shows_each_piece_with_its_defect_on_the_pixels_that_it_marks(dataset) -> None:
    (window,) = [next(iter(loader(dataset)))]
    counts = [int((boxes[:, 2] > 0).sum()) for _, boxes in samples(window)]
    assert len(counts) == 12 and len(set(counts)) > 2  # of 0 to 4 pieces, not all or none
    for image, boxes in samples(window):
        pixels = np.frombuffer(image, np.uint8).reshape(64, 64, 3)[..., 0]
        for left, top, right, bottom in boxes[boxes[:, 2] > 0].astype(int).tolist():
            assert (pixels[top:bottom, left:right] == 255).all()


def test_without_companions_a_sample_is_one_view(dataset) -> None:
    """The control: the same records, no mosaic, one defect a defective sample."""
    counts = [int((boxes[:, 2] > 0).sum()) for _, boxes in samples(next(iter(loader(dataset, num_companions=0))))]
    assert sorted(counts) == [0] * 6 + [1] * 6
    assert EveryRecordOnce(3).companions(0, np.arange(3)).shape == (3, 0)


@pytest.mark.parametrize("ok_share", [0.5, 0.8])
def test_companions_are_ok_by_the_same_share_whatever_they_accompany(dataset, ok_share: float) -> None:
    """So that nothing about a sample as a whole tells whether one of its pieces has a defect."""
    mix = EpochMix(dataset[1], ok_share=ok_share, seed=3, num_companions=3)
    num_defective = round(mix.num_samples * (1 - ok_share))
    chosen = np.concatenate([mix.companions(epoch, np.arange(mix.num_samples)) >= 6 for epoch in range(100)])
    beside = np.tile(np.arange(mix.num_samples) < num_defective, 100)
    assert chosen[beside].mean() == pytest.approx(ok_share, abs=0.04)
    assert chosen[~beside].mean() == pytest.approx(ok_share, abs=0.04)


def test_companions_follow_from_seed_epoch_and_place_alone(dataset) -> None:
    mix = EpochMix(dataset[1], ok_share=0.5, seed=3, num_companions=3)
    places = np.arange(mix.num_samples)
    chosen = mix.companions(1, places)
    assert chosen.shape == (12, 3)
    assert np.array_equal(chosen[[7, 2]], mix.companions(1, np.array([7, 2])))
    assert not np.array_equal(chosen, mix.companions(2, places))
    assert len({tuple(row) for row in chosen.tolist()}) > 6


def test_workers_and_micro_batches_change_no_byte_of_a_mosaic(dataset) -> None:
    plain = samples(next(iter(loader(dataset, micro_batch=4))))
    with loader(dataset, micro_batch=3, workers=1) as windows:
        other = samples(next(iter(windows)))
    assert [image for image, _ in plain] == [image for image, _ in other]


def test_a_broken_companion_is_the_file_that_is_named(dataset, tmp_path) -> None:
    root, records = dataset
    for record in records[1:6]:
        (tmp_path / record.path).write_bytes((root / record.path).read_bytes())
    (tmp_path / "0.png").write_bytes(b"no image")
    mix = EpochMix(records[:6], seed=3, num_companions=3)
    windows = WindowLoader(records[:6], tmp_path, boxes_as_targets, STILL, ShapePlan(((64, 64),)), mix=mix)
    with pytest.raises(DataError, match=r"0\.png"):
        next(windows.windows_from(Position()))
