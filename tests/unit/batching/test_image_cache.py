"""Decoded images are kept as far as they fit, the latest ones, and nobody can change them."""

from __future__ import annotations

import pickle
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.batching.image_cache import ImageCache
from pipelines.dataset import read_image
from pipelines.errors import DataError

IMAGE_BYTES = 40 * 64 * 3


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three noisy pictures of 40 x 64 px."""
    paths = [tmp_path / f"{index}.jpg" for index in range(3)]
    for index, path in enumerate(paths):
        cv2.imwrite(str(path), np.random.default_rng(index).integers(0, 256, (40, 64, 3), dtype=np.uint8))
    return paths


def test_an_image_is_decoded_once_and_each_reduction_is_an_image_of_its_own(files: list[Path]) -> None:
    cache = ImageCache(4 * IMAGE_BYTES)
    first = cache(files[0], 1)
    assert np.array_equal(first, read_image(files[0]))
    assert cache(files[0], 2).shape == (20, 32, 3)
    assert cache(files[0], 1) is first
    files[0].unlink()
    assert cache(files[0], 1) is first


def test_the_image_asked_for_least_recently_makes_room(files: list[Path]) -> None:
    cache = ImageCache(2 * IMAGE_BYTES)
    one, two = cache(files[0], 1), cache(files[1], 1)
    assert cache(files[0], 1) is one
    cache(files[2], 1)  # now the second is the oldest
    assert cache(files[0], 1) is one
    assert cache(files[1], 1) is not two


@pytest.mark.parametrize("max_bytes", [0, IMAGE_BYTES - 1])
def test_without_room_nothing_is_kept(files: list[Path], max_bytes: int) -> None:
    cache = ImageCache(max_bytes)
    assert cache(files[0], 1) is not cache(files[0], 1)
    assert len(cache._kept) == 0 and cache._num_bytes == 0


def test_shared_images_cannot_be_written_to(files: list[Path]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        ImageCache()(files[0], 1)[0, 0] = 0


def test_a_copy_for_a_worker_starts_empty_with_the_same_room(files: list[Path]) -> None:
    cache = ImageCache(2 * IMAGE_BYTES)
    cache(files[0], 1)
    copy = pickle.loads(pickle.dumps(cache))
    assert (len(cache._kept), len(copy._kept), copy._max_bytes) == (1, 0, 2 * IMAGE_BYTES)


def test_a_file_that_cannot_be_read_is_refused_and_not_kept(tmp_path: Path, files: list[Path]) -> None:
    cache = ImageCache()
    with pytest.raises(DataError, match=r"late\.jpg"):
        cache(tmp_path / "late.jpg", 1)
    (tmp_path / "late.jpg").write_bytes(files[0].read_bytes())
    assert cache(tmp_path / "late.jpg", 1).shape == (40, 64, 3)
