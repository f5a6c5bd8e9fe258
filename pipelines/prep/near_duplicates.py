"""Pictures of val that training sees in another scan: candidates by perceptual hash, confirmed by their pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from pipelines.dataset import read_image

SIDE_PX = 192
"""Of the thumbnails that are compared."""

MIN_SIMILARITY = 0.85
"""Second scans of a page, turned by a degree, darker and at half the resolution, reach .90; pages of one form .45."""

_COARSE_PX = 64  # where thumbnails are brought to overlap first
_BLOCK_PX = 16
_LEAST_BLOCKS = 4  # of less ink than that, nothing can be said
_WORST_BLOCKS = 3
_MAX_DISTANCE = 21  # of the 64 bits: a turn by a degree changes up to 21
_NEAREST = 3  # candidates a training image
_ROWS = 1024  # training images whose distances are in memory at once
_COARSE_SIMILARITY = 0.8  # second scans: .97
_CHUNK = 32  # comparisons that a process gets at once
_LEAST_CONTRAST = 2.0  # grey levels


@dataclass(frozen=True, eq=False)
class Look:
    """What two pictures are compared by.

    Attributes:
        thumbnail: uint8 (192, 192), grey, the picture's aspect lost.
        bits: float32 (64,), -1 or 1: the signs of its lowest frequencies (pHash, `cv2.img_hash`).
    """

    thumbnail: np.ndarray
    bits: np.ndarray


@dataclass(frozen=True)
class NearDuplicate:
    """A training image and one of val that show the same, as far as thumbnails tell.

    Attributes:
        train: path in the dataset.
        val: path in the dataset.
        similarity: correlation where they are least alike, up to 1.
    """

    train: str
    val: str
    similarity: float


def look_at(path: Path, size_hw: tuple[int, int]) -> Look:
    """Decode an image of (height, width) as coarsely as comparing it allows.

    Raises:
        DataError: it can't be decoded.
    """
    reduction = next((factor for factor in (8, 4, 2) if min(size_hw) // factor >= SIDE_PX), 1)
    return look_of(read_image(path, reduction))


def look_of(image: np.ndarray) -> Look:
    """Of a picture, uint8 (h, w, 3), BGR."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    thumbnail = _reduced(grey, SIDE_PX)
    bits = np.unpackbits(cv2.img_hash.pHash(thumbnail).ravel())
    return Look(thumbnail, bits.astype(np.float32) * 2 - 1)


def _reduced(grey: np.ndarray, side_px: int) -> np.ndarray:
    """To (side, side), by means of areas: anything else makes waves of ruled lines, and waves fit anywhere."""
    return np.asarray(cv2.resize(grey, (side_px, side_px), interpolation=cv2.INTER_AREA))


def near_duplicates(train: Mapping[str, Look], val: Mapping[str, Look], executor: Executor) -> list[NearDuplicate]:
    """What is alike of the two splits, by path in the dataset; the most alike first.

    Of each training image its three nearest of val are compared, so that forms, which all are near each other, cost
    no more than other pictures.
    """
    if not (train and val):
        return []
    names = list(train), list(val)
    candidates = _candidates(list(train.values()), list(val.values()))
    pairs = [(names[0][i], names[1][j]) for i, j in candidates]
    firsts, seconds = [train[path] for path, _ in pairs], [val[path] for _, path in pairs]
    similarities = executor.map(similarity, firsts, seconds, chunksize=_CHUNK)
    found = [NearDuplicate(*pair, value) for pair, value in zip(pairs, similarities, strict=True)]
    alike = [pair for pair in found if pair.similarity >= MIN_SIMILARITY]
    return sorted(alike, key=lambda pair: (-pair.similarity, pair.train, pair.val))


def _candidates(train: Sequence[Look], val: Sequence[Look]) -> Iterator[tuple[int, int]]:
    """Each training image with its nearest of val, by Hamming distance, as far as that is small."""
    val_bits = np.stack([look.bits for look in val])
    nearest = min(_NEAREST, len(val))
    for start in range(0, len(train), _ROWS):
        bits = np.stack([look.bits for look in train[start : start + _ROWS]])
        # of signs, a product of vectors is equal bits minus differing ones
        distances = (bits.shape[1] - bits @ val_bits.T) / 2
        columns = np.argpartition(distances, nearest - 1, axis=1)[:, :nearest]
        rows, places = np.nonzero(np.take_along_axis(distances, columns, axis=1) <= _MAX_DISTANCE)
        yield from zip((start + rows).tolist(), columns[rows, places].tolist(), strict=True)


def similarity(first: Look, second: Look) -> float:
    """Correlation of the least similar blocks with ink, after laying one over the other; 0 where nothing fits.

    Pages of one form correlate well as a whole. What tells them apart is where they do not: so the three worst
    blocks of 12 x 12 are what counts.
    """
    coarse, moved = (_detail(_reduced(look.thumbnail, _COARSE_PX)) for look in (first, second))
    warp = _aligned(coarse, moved, _shift(coarse, moved))
    if _correlation(coarse, _warped(moved, warp)) < _COARSE_SIMILARITY:
        return 0.0
    warp[:, 2] *= SIDE_PX / _COARSE_PX
    fine, moved = (_detail(look.thumbnail) for look in (first, second))
    warp = _aligned(fine, moved, warp)
    is_covered = _blocks(_warped(np.ones_like(moved), warp)).min(axis=1) > 0
    return _worst_correlation(_blocks(fine)[is_covered], _blocks(_warped(moved, warp))[is_covered])


def _worst_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Mean correlation of the three least similar pairs of blocks, (n, pixels) each, that have ink; 0 if hardly any."""
    first, second = (blocks - blocks.mean(axis=1, keepdims=True) for blocks in (first, second))
    energies = [np.square(blocks).mean(axis=1) for blocks in (first, second)]
    inked = np.maximum(*energies)
    has_ink = inked > max(_LEAST_CONTRAST**2, 0.15 * float(np.median(inked)) if len(inked) else 0.0)
    if has_ink.sum() < _LEAST_BLOCKS:
        return 0.0
    products = (first * second).mean(axis=1) / np.sqrt(energies[0] * energies[1] + 1e-6)
    return round(float(np.sort(products[has_ink])[:_WORST_BLOCKS].mean()), 3)


def _detail(thumbnail: np.ndarray) -> np.ndarray:
    """float32: lighting and paper taken out, noise and the last fraction of a pixel smoothed away."""
    grey = cv2.GaussianBlur(thumbnail.astype(np.float32), (0, 0), 0.8)
    return np.asarray(grey - cv2.GaussianBlur(grey, (0, 0), 8))


def _shift(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """float32 (2, 3): how far `second` is moved, by phase correlation; nowhere if that is beyond belief."""
    (x, y), _ = cv2.phaseCorrelate(first, second, cv2.createHanningWindow(first.shape[::-1], cv2.CV_32F))
    warp = np.eye(2, 3, dtype=np.float32)
    if max(abs(x), abs(y)) < first.shape[0] / 10:
        warp[:, 2] = x, y
    return warp


def _aligned(first: np.ndarray, second: np.ndarray, warp: np.ndarray) -> np.ndarray:
    """The affine map, from there on, under which `second` fits best (ECC, Evangelidis and Psarakis 2008)."""
    criteria = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 30, 1e-4)
    try:
        return np.asarray(cv2.findTransformECC(first, second, warp.copy(), cv2.MOTION_AFFINE, criteria, None, 3)[1])
    except cv2.error:  # it does not converge: they have nothing in common, or no ink
        return warp


def _warped(image: np.ndarray, warp: np.ndarray) -> np.ndarray:
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpAffine(image, warp, image.shape[::-1], flags=flags))


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    return float((first * second).sum() / np.sqrt(np.square(first).sum() * np.square(second).sum() + 1e-6))


def _blocks(image: np.ndarray) -> np.ndarray:
    """A square image cut into blocks of 16 x 16 px, (n, 256)."""
    number = image.shape[0] // _BLOCK_PX
    cut = image.reshape(number, _BLOCK_PX, number, _BLOCK_PX).swapaxes(1, 2)
    return cut.reshape(number * number, _BLOCK_PX**2)
