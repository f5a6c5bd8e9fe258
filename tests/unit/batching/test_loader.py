"""Windows from (seed, epoch, window) alone: the same bytes whatever workers and micro-batch, from any position."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.batching.loader import Window, WindowLoader
from pipelines.batching.order import Position
from pipelines.batching.shapes import ShapePlan
from pipelines.batching.text import TextAugmentation
from pipelines.errors import DataError, UsageError
from pipelines.records import Record, TextAnnotation, TextRegion
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.targets import TextTargets

PLAN = ShapePlan(((96, 96), (64, 128), (128, 64)), whole_page_share=0.2, shape_run=2)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record]]:
    """Eleven small noisy pages with two lines each; the eighth is blank."""
    root, records = tmp_path_factory.mktemp("pages"), []
    rng = np.random.default_rng(0)
    for index in range(11):
        height, width = (int(side) for side in rng.integers(100, 260, 2))
        image = rng.integers(200, 256, (height, width, 3), dtype=np.uint8)
        cv2.imwrite(str(root / f"page_{index}.png"), image)
        lines = [] if index == 7 else [10, 50]
        boxes = [np.array([[8, y], [80, y], [80, y + 14], [8, y + 14]]) for y in lines]
        records.append(Record(f"page_{index}.png", (height, width), TextAnnotation(tuple(map(TextRegion, boxes)))))
    return root, records


def loader(dataset: tuple[Path, list[Record]], **settings) -> WindowLoader:
    root, records = dataset
    augmentation = TextAugmentation(ResizeRule(192).size_hw)
    return WindowLoader(records, root, TextTargets(), augmentation, PLAN, **{"effective_batch": 4, **settings})


def by_source(window: Window) -> dict[str, tuple]:
    """Every sample's bytes by its file."""
    return {
        source: (one.shape_hw, *(array[i].tobytes() for array in (one.images, *one.targets.values())))
        for one in window.micro_batches
        for i, source in enumerate(one.sources)
    }


def test_an_epoch_holds_every_image_once_and_its_last_window_may_be_short(dataset) -> None:
    with loader(dataset) as windows:
        epochs = list(islice(windows, 6))
    for epoch in (0, 1):
        of_epoch = [window for window in epochs if window.epoch == epoch]
        assert [window.num_samples for window in of_epoch] == [4, 4, 3]
        assert [window.is_last_of_epoch for window in of_epoch] == [False, False, True]
        counts = Counter(source for window in of_epoch for source in by_source(window))
        assert counts == Counter(record.path for record in dataset[1])


def test_workers_change_no_byte(dataset) -> None:
    with loader(dataset, workers=0) as one, loader(dataset, workers=2) as two:
        for here, there in zip(islice(one, 4), islice(two, 4), strict=True):
            assert (here.epoch, here.index) == (there.epoch, there.index)
            assert by_source(here) == by_source(there)
            assert [len(batch) for batch in here.micro_batches] == [len(batch) for batch in there.micro_batches]


def test_keeping_decoded_images_changes_no_byte(dataset) -> None:
    kept, fresh = (islice(loader(dataset, cache_bytes=num_bytes), 6) for num_bytes in (2**20, 0))
    for one, other in zip(kept, fresh, strict=True):
        assert by_source(one) == by_source(other)


def test_micro_batch_size_changes_no_byte(dataset) -> None:
    small, large = (islice(loader(dataset, micro_batch=micro_batch), 4) for micro_batch in (1, 4))
    for ones, fours in zip(small, large, strict=True):
        assert by_source(ones) == by_source(fours)
        assert all(len(batch) == 1 for batch in ones.micro_batches)


def test_seed_and_epoch_change_the_bytes(dataset) -> None:
    """The control of the two above."""
    first = next(iter(loader(dataset, seed=0)))
    assert by_source(first) != by_source(next(iter(loader(dataset, seed=1))))
    later = [by_source(window) for window in islice(loader(dataset, start=Position(1, 0)), 3)]
    for source, content in by_source(first).items():
        assert all(window.get(source) != content for window in later)


def test_a_run_goes_on_from_any_position_as_if_it_had_never_stopped(dataset) -> None:
    whole = list(islice(loader(dataset), 5))
    for start in (Position(0, 2), Position(1, 1)):
        resumed = next(iter(loader(dataset, start=start)))
        original = next(one for one in whole if (one.epoch, one.index) == (start.epoch, start.window))
        assert by_source(resumed) == by_source(original)


def test_an_effective_batch_larger_than_the_split_gives_one_short_window(dataset) -> None:
    window = next(iter(loader(dataset, effective_batch=32, micro_batch=4)))
    assert window.num_samples == 11 and window.is_last_of_epoch


def test_importing_batching_and_targets_imports_no_paddle() -> None:
    program = (
        "import sys, pipelines.batching.loader, pipelines.batching.worker, pipelines.text_detection.targets;"
        "sys.exit(any(name.split('.')[0] in ('paddle', 'paddlex', 'paddleocr', 'ppdet') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"micro_batch": 5}, "micro_batch"), ({"micro_batch": 0}, "micro_batch"), ({"workers": -1}, "workers"),
     ({"cache_bytes": -1}, "cache_bytes"),
     ({"targets": lambda *_: None, "workers": 1}, "picklable")],
)  # fmt: skip
def test_impossible_settings_are_refused_by_name(dataset, wrong: dict, words: str) -> None:
    root, records = dataset
    targets = wrong.pop("targets", TextTargets())
    with pytest.raises(UsageError, match=words):
        WindowLoader(records, root, targets, TextAugmentation(ResizeRule(192).size_hw), effective_batch=4, **wrong)


def test_an_empty_split_and_a_position_past_the_epoch_are_refused(dataset) -> None:
    with pytest.raises(DataError, match="no image"):
        WindowLoader([], dataset[0], TextTargets(), TextAugmentation(ResizeRule(192).size_hw))
    with pytest.raises(UsageError, match="3 windows"):
        iter(loader(dataset, start=Position(0, 3)))
