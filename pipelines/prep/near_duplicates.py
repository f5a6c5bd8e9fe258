"""Pictures of val that training sees in another scan: candidates by perceptual hash, confirmed place by place.

A hash of 256 bits (OpenCV's BlockMeanHash) finds candidates by Hamming distance, the correlation of two tiny pictures
ranks them, and `same_picture` decides. None of them sees through a turn by 90 degrees or a mirror.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import cv2
import numpy as np

from pipelines.dataset import image_size_hw, read_image
from pipelines.errors import DataError
from pipelines.prep.same_picture import FINE_SIDE_PX, SAME_FROM, agreement

MAX_DISTANCE = 56
"""Of 256 bits. Second scans of receipts differ by up to 50 (1 % shift or 1 degree), other pictures by 60 to 130."""
MIN_CORRELATION = 0.8
"""Of tiny pictures; second scans reach .85 and more, a shift by 1 % of a page in fine print a little less."""
MOST_COMPARED = 4000
"""Pairs that are laid over each other, at 20 to 60 ms each; the most alike first."""

_TINY_PX = 32
_NEAREST = 5  # candidates a training image: in one fixture every part is like every other
_ROWS = 128  # training images whose distances are in memory at once
_CHUNK = 8  # comparisons that a process gets at once
_DECODED_PX = 192  # enough to hash
_FLAT_LEVELS = 1.0  # what varies by less is like every other blank sheet, and so like none
_KEPT_PICTURES = 128  # of at most 0.6 MB


@dataclass(frozen=True, eq=False)
class Look:
    """What is kept of a picture to find others like it.

    Attributes:
        bits: uint64 (4,), its hash.
        tiny: float32 (1024,), 32 x 32 grey pixels, blurred, of mean 0 and length 1; all 0 for a blank one.
    """

    bits: np.ndarray
    tiny: np.ndarray


@dataclass(frozen=True)
class NearDuplicate:
    """A training image and one of val that show the same.

    Attributes:
        train: path in the dataset.
        val: path in the dataset.
        similarity: share of the places with any structure at which they agree, up to 1.
    """

    train: str
    val: str
    similarity: float


def look_at(path: Path, size_hw: tuple[int, int]) -> Look:
    """Decode an image of (height, width) as coarsely as finding candidates allows.

    Raises:
        DataError: it can't be decoded.
    """
    reduction = next((factor for factor in (8, 4, 2) if min(size_hw) // factor >= _DECODED_PX), 1)
    return look_of(read_image(path, reduction))


def look_of(image: np.ndarray) -> Look:
    """Of a picture, uint8 (h, w, 3), BGR."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    bits = cv2.img_hash.blockMeanHash(grey, mode=0)
    tiny = cv2.resize(grey, (_TINY_PX, _TINY_PX), interpolation=cv2.INTER_AREA).astype(np.float32)
    # blurred, so that a shift by a hundredth of a page changes little
    tiny = cv2.GaussianBlur(tiny, (0, 0), 1.0)
    is_flat = tiny.std() < _FLAT_LEVELS
    tiny -= tiny.mean()
    tiny = np.zeros_like(tiny) if is_flat else tiny / np.linalg.norm(tiny)
    return Look(np.ascontiguousarray(bits).view(np.uint64)[0], tiny.ravel())


def near_duplicates(
    root: Path, train: Mapping[str, Look], val: Mapping[str, Look], executor: Executor
) -> tuple[list[NearDuplicate], int]:
    """What is the same in the two splits, by path below `root`, the most alike first; and how much was not compared.

    Of each training image its five nearest of val are compared, and of all such pairs the 4000 most alike; the second
    value says how many were left.
    """
    names = list(train), list(val)
    candidates = _candidates(list(train.values()), list(val.values()))
    pairs = [(names[0][i], names[1][j]) for i, j in candidates]
    compared = sorted(pairs[:MOST_COMPARED])  # by image, so that each is decoded about once
    similarities = executor.map(partial(_similarity, root), *zip(*compared, strict=True), chunksize=_CHUNK)
    shares = list(similarities) if compared else []
    same = [
        NearDuplicate(*pair, round(share, 4))
        for pair, share in zip(compared, shares, strict=True)
        if share >= SAME_FROM
    ]
    return sorted(same, key=lambda pair: (-pair.similarity, pair.train, pair.val)), len(pairs) - len(compared)


def _candidates(train: Sequence[Look], val: Sequence[Look]) -> list[tuple[int, int]]:
    """Each training image with its nearest of val, as far as they are near; the nearest pairs first."""
    if not (train and val):
        return []
    val_bits, val_tiny = np.stack([look.bits for look in val]), np.stack([look.tiny for look in val])
    nearest = min(_NEAREST, len(val))
    found = [np.zeros((0, 3))]
    for start in range(0, len(train), _ROWS):
        some = train[start : start + _ROWS]
        bits, tiny = np.stack([look.bits for look in some]), np.stack([look.tiny for look in some])
        distances = np.bitwise_count(bits[:, None] ^ val_bits[None]).sum(axis=2, dtype=np.uint16)
        likeness = np.where(distances <= MAX_DISTANCE, tiny @ val_tiny.T, 0.0)
        columns = np.argsort(-likeness, axis=1, kind="stable")[:, :nearest]
        rows, places = np.nonzero(np.take_along_axis(likeness, columns, axis=1) >= MIN_CORRELATION)
        chosen = columns[rows, places]
        found.append(np.stack([likeness[rows, chosen], start + rows, chosen], axis=1))
    ranked = np.concatenate(found)
    ranked = ranked[np.argsort(-ranked[:, 0], kind="stable")]
    return [(int(row), int(column)) for _, row, column in ranked]


def _similarity(root: Path, train: str, val: str) -> float:
    """`agreement` of two images of a dataset; run by workers."""
    try:
        return agreement(*(_shrunk(path, path.stat().st_mtime_ns) for path in (root / train, root / val)))
    except (DataError, OSError):  # gone since it was looked at
        return 0.0


@lru_cache(maxsize=_KEPT_PICTURES)
def _shrunk(path: Path, _changed_ns: int) -> np.ndarray:
    """An image, as last changed, in grey, its longest side `FINE_SIDE_PX` at most, uint8 (h, w)."""
    longest = max(image_size_hw(path))
    # decoded no finer than needed: an A4 page at 600 dpi costs a tenth so
    reduction = next((factor for factor in (8, 4, 2) if longest // factor >= FINE_SIDE_PX), 1)
    grey = cv2.cvtColor(read_image(path, reduction), cv2.COLOR_BGR2GRAY)
    scale = FINE_SIDE_PX / max(grey.shape)
    return np.asarray(cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) if scale < 1 else grey)
