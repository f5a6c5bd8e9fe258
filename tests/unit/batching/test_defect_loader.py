"""Windows of factory images through the loader: the mix comes out as asked, whatever workers and micro-batch."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.batching.defects import DefectAugmentation
from pipelines.batching.loader import Window, WindowLoader
from pipelines.batching.mix import EpochMix, tile_records
from pipelines.batching.order import Position
from pipelines.batching.shapes import ShapePlan
from pipelines.records import DefectAnnotation, Record, Sample

PLAN = ShapePlan(((64, 64), (96, 96)), shape_run=2)


def count_objects(image: np.ndarray, annotation: DefectAnnotation, source: str) -> Sample:
    """Targets of the simplest kind; a function of this module, for workers."""
    return Sample(image, {"num_objects": np.array((~annotation.is_ignored).sum())}, source)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record]]:
    """Ten boards with a defect of class 0, the last of them one of class 1 too, and forty OK boards."""
    root, records = tmp_path_factory.mktemp("boards"), []
    rng = np.random.default_rng(0)
    for index in range(50):
        path = f"{'defect' if index < 10 else 'ok'}_{index}.png"
        cv2.imwrite(str(root / path), rng.integers(0, 256, (64, 64, 3), dtype=np.uint8))
        boxes = np.array([[20, 24, 40, 36], [30, 40, 40, 50]], np.float32)[: (index < 10) + (index == 9)]
        records.append(Record(path, (64, 64), DefectAnnotation(boxes, np.arange(len(boxes)), np.zeros(len(boxes)))))
    return root, records


def loader(dataset: tuple[Path, list[Record]], mix: EpochMix | None, **settings) -> WindowLoader:
    root, records = dataset
    augmentation = DefectAugmentation(quarter_turns=True)
    settings = {"effective_batch": 8, **settings}
    return WindowLoader(records, root, count_objects, augmentation, PLAN, mix=mix, **settings)


def content(window: Window) -> list[tuple]:
    """Every sample's file, bytes and number of objects, sorted: micro-batches may be cut anywhere."""
    return sorted(
        (source, one.images[i].tobytes(), int(one.targets["num_objects"][i]))
        for one in window.micro_batches
        for i, source in enumerate(one.sources)
    )


@pytest.mark.parametrize(("ok_share", "num_ok"), [(None, 40), (0.0, 0), (0.5, 10), (0.8, 40)])
def test_every_epoch_shows_the_share_of_ok_samples_that_was_asked_for(dataset, ok_share, num_ok: int) -> None:
    windows = loader(dataset, EpochMix(dataset[1], ok_share), micro_batch=4)
    assert windows.windows_per_epoch == -(-(10 + num_ok) // 8)
    for epoch in range(2):
        samples = [
            one for window in islice(windows.windows_from(Position(epoch)), windows.windows_per_epoch)
            for one in content(window)
        ]  # fmt: skip
        assert sum(num_objects == 0 for *_, num_objects in samples) == num_ok
        assert sum(name.startswith("ok") for name, *_ in samples) == num_ok
        assert len(samples) == 10 + num_ok


def test_composition_of_a_window_can_be_told_before_it_is_made(dataset) -> None:
    mix = EpochMix(dataset[1], 0.5)
    windows = loader(dataset, mix)
    for window in islice(windows, 3):
        told = mix.composition(windows.record_indices(Position(window.epoch, window.index)))
        num_objects = [num_objects for *_, num_objects in content(window)]
        assert told.num_samples == window.num_samples and told.num_ok == num_objects.count(0)
        assert sum(told.objects_by_class.values()) == sum(num_objects)


def test_workers_and_micro_batch_size_change_no_byte(dataset) -> None:
    mix = EpochMix(dataset[1], 0.5, repeat_threshold=0.9)
    plain = [content(window) for window in islice(loader(dataset, mix), 4)]
    with loader(dataset, mix, workers=2, micro_batch=8) as other:
        assert [content(window) for window in islice(other, 4)] == plain
    assert [content(window) for window in islice(loader(dataset, mix, seed=1), 4)] != plain  # the control


def test_a_record_that_comes_twice_in_an_epoch_looks_different_each_time(dataset) -> None:
    mix = EpochMix(dataset[1], 0.0, repeat_threshold=0.9)  # class 1: sqrt(0.9 / 0.1) = 3
    assert mix.num_samples == 12
    (window,) = islice(loader(dataset, mix, effective_batch=12), 1)
    counts = Counter(name for name, *_ in content(window))
    assert counts == {**{f"defect_{index}.png": 1 for index in range(9)}, "defect_9.png": 3}
    assert len({image for name, image, _ in content(window) if name == "defect_9.png"}) == 3


def test_a_window_of_ok_images_only(dataset) -> None:
    root, records = dataset
    ok_only = records[10:]
    windows = loader((root, ok_only), EpochMix(ok_only), micro_batch=2)
    window = next(iter(windows))
    assert window.num_samples == 8
    assert all(num_objects == 0 for *_, num_objects in content(window))
    assert all(0 < len(one) <= 2 for one in window.micro_batches)


def test_a_run_goes_on_from_any_position_as_if_it_had_never_stopped(dataset) -> None:
    mix = EpochMix(dataset[1], 0.5)
    whole = list(islice(loader(dataset, mix), 5))
    resumed = next(iter(loader(dataset, EpochMix(dataset[1], 0.5), start=Position(1, 1))))
    assert (whole[4].epoch, whole[4].index) == (1, 1)
    assert content(resumed) == content(whole[4])


def test_tiles_of_a_large_image_are_samples_of_their_own(tmp_path: Path) -> None:
    """The red of each pixel tells its column, so each sample tells where it was cut."""
    columns = np.broadcast_to(np.arange(160, dtype=np.uint8), (64, 160))
    cv2.imwrite(str(tmp_path / "bar.png"), cv2.merge([columns * 0, columns * 0, columns]))
    defect = DefectAnnotation(np.array([[104, 20, 124, 40]]), [0], [False])
    tiles = tile_records([Record("bar.png", (64, 160), defect)], (64, 64), overlap_px=16)
    still = DefectAugmentation(scale_jitter=(1.0, 1.0), horizontal_flip=False, shift_share=0.0, colour=None)
    windows = WindowLoader(tiles, tmp_path, count_objects, still, ShapePlan(((64, 64),)), effective_batch=3)
    (batch, tail) = next(iter(windows)).micro_batches
    shown = {int(image[0, 0, 2]): int(count) for one in (batch, tail)
             for image, count in zip(one.images, one.targets["num_objects"], strict=True)}  # fmt: skip
    assert shown == {0: 0, 48: 0, 96: 1}  # 8 of the defect's 20 columns are left in the second
