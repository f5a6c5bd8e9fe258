"""Which samples make an epoch: OK samples at a chosen share, rare classes more often.

Pure functions of (seed, epoch), and every epoch of a run is of one length, so a run can stop and go on anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipelines.batching.order import companion_rng, pool_rng, repeat_rng
from pipelines.errors import DataError, UsageError
from pipelines.records import DefectAnnotation, Record
from pipelines.tiles import training_tiles, view_boxes


def tile_records(records: Sequence[Record], tile_hw: tuple[int, int], overlap_px: int) -> list[Record]:
    """One record a training tile, with the tile as its view; an image that fits a tile stays whole.

    Args:
        records: with defects in the pixels of their images, as they stay.
        tile_hw: (height, width) in image pixels: the sample's shape divided by the scale.
        overlap_px: what neighbours share, image pixels.

    Returns:
        In the order of `records`; every defect that fits a tile is whole in one at least.
    """
    return [
        record if window == (0, 0, *record.size_hw[::-1]) else replace(record, view_xyxy_px=window)
        for record in records
        for window in training_tiles(record.size_hw, tile_hw, overlap_px, record.annotation)
    ]


def repeat_factors(classes_shown: Sequence[np.ndarray], threshold: float) -> np.ndarray:
    """How often each sample shall come in an epoch so that rare classes are seen.

    A class shown by a share f of the samples gets max(1, sqrt(threshold / f)), a sample the largest factor of its
    classes: repeat-factor sampling, Gupta, Dollar, Girshick, "LVIS" (CVPR 2019), appendix B.2.

    Args:
        classes_shown: the class ids of each sample's defects.
        threshold: classes shown by a smaller share of the samples are repeated.

    Returns:
        float64 (n,), each at least 1.
    """
    shown = [np.unique(class_ids) for class_ids in classes_shown]
    classes, counts = np.unique(np.concatenate([*shown, np.zeros(0, np.int64)]), return_counts=True)
    factors = np.maximum(1.0, np.sqrt(threshold * len(shown) / counts))
    return np.array([factors[np.searchsorted(classes, ids)].max(initial=1.0) for ids in shown])


@dataclass(frozen=True)
class Composition:
    """What some samples show, as they are drawn for an epoch.

    Attributes:
        num_samples: all of them.
        num_ok: those without any defect.
        objects_by_class: number of defects by class id; classes without any are absent.
    """

    num_samples: int
    num_ok: int
    objects_by_class: dict[int, int]

    def describe(self, class_names: Sequence[str]) -> str:
        """One line for a log, every class named."""
        objects = ", ".join(f"{name} {self.objects_by_class.get(i, 0)}" for i, name in enumerate(class_names))
        return (
            f"{self.num_samples} samples: {self.num_samples - self.num_ok} with defects, {self.num_ok} OK ({objects})"
        )


class EpochMix:
    """A `Mix` of defective and OK samples.

    Defective samples come by their repeat factors, every one at least once. OK samples fill the rest of the epoch:
    each epoch goes on in the shuffled pool where the last one ended, so none comes again before all have come.

    Factors are rounded up or down at random, to their mean over the epochs, but together: the length of an epoch is
    their sum, made whole by stretching them all by less than one sample.

    Args:
        records: images, or tiles (`tile_records`).
        ok_share: share of an epoch's samples that show no defect, 0 up to but not 1; None: every OK sample once.
        repeat_threshold: see `repeat_factors`, taken over the defective samples; None: every one once.
        seed: of the run.
        min_visible: what makes a defect at a tile's edge one of the tile (see `view_boxes`); as the augmentation's.
        min_side_px: the same for slivers, in image pixels.
        num_companions: records that share a sample with each, OK ones among them by `ok_share` (see `mosaic`).

    Raises:
        UsageError: an impossible share or threshold.
        DataError: no record, or none of a kind that `ok_share` needs.
    """

    def __init__(
        self,
        records: Sequence[Record],
        ok_share: float | None = None,
        repeat_threshold: float | None = None,
        seed: int = 0,
        *,
        min_visible: float = 0.6,
        min_side_px: float = 4.0,
        num_companions: int = 0,
    ):
        _check_shares(ok_share, repeat_threshold)
        self._seed, self._num_companions = seed, num_companions
        shown = [_shown(record, min_visible, min_side_px) for record in records]
        self._class_ids = [annotation.class_ids[~annotation.is_ignored] for annotation in shown]
        is_ok = np.array([annotation.is_ok for annotation in shown], bool)
        self._defective, self._ok = np.flatnonzero(~is_ok), np.flatnonzero(is_ok)
        _check_pools(len(self._defective), len(self._ok), ok_share)
        classes = [self._class_ids[index] for index in self._defective]
        self._factors = repeat_factors(classes, repeat_threshold or 0.0)
        num_defective = math.ceil(self._factors.sum() - 1e-9)
        self._num_ok = len(self._ok) if ok_share is None else round(num_defective * ok_share / (1 - ok_share))
        self.num_samples = num_defective + self._num_ok

    def indices(self, epoch: int) -> np.ndarray:
        """Positions in `records`, int64 (num_samples,): defective samples first, each kind in random order."""
        rng = repeat_rng(self._seed, epoch)
        shuffled = rng.permutation(len(self._defective))
        counts = _rounded_together(self._factors[shuffled], self.num_samples - self._num_ok, rng.random())
        return np.concatenate([self._defective[np.repeat(shuffled, counts)], self._ok_of(epoch)])

    def companions(self, epoch: int, places: np.ndarray) -> np.ndarray:
        drawn = [self._drawn(companion_rng(self._seed, epoch, int(place))) for place in places]
        return np.array(drawn, np.int64).reshape(len(places), self._num_companions)

    def _drawn(self, rng: np.random.Generator) -> list[int]:
        """Companions of one sample: each OK as often as the epoch's samples are."""
        is_ok = rng.random(self._num_companions) < self._num_ok / self.num_samples
        return [int(rng.choice(self._ok if ok else self._defective)) for ok in is_ok]

    def composition(self, indices: np.ndarray | None = None) -> Composition:
        """What the samples at these positions show; None: all records once, the pool that epochs draw from."""
        chosen = range(len(self._class_ids)) if indices is None else indices
        class_ids = [self._class_ids[index] for index in chosen]
        classes, counts = np.unique(np.concatenate([*class_ids, np.zeros(0, np.int64)]), return_counts=True)
        num_ok = sum(len(ids) == 0 for ids in class_ids)
        return Composition(len(class_ids), num_ok, dict(zip(classes.tolist(), counts.tolist(), strict=True)))

    def _ok_of(self, epoch: int) -> np.ndarray:
        """An epoch's stretch of the endless row of shuffled pools."""
        start, pool = epoch * self._num_ok, max(len(self._ok), 1)
        turns = range(start // pool, -(-(start + self._num_ok) // pool))
        row = [self._ok[pool_rng(self._seed, turn).permutation(len(self._ok))] for turn in turns]
        skipped = start % pool
        return np.concatenate([*row, np.zeros(0, np.int64)])[skipped : skipped + self._num_ok]


def _shown(record: Record, min_visible: float, min_side_px: float) -> DefectAnnotation:
    annotation: DefectAnnotation = record.annotation
    if record.view_xyxy_px is None:
        return annotation
    return view_boxes(annotation, record.view_xyxy_px, min_visible, min_side_px)


def _rounded_together(factors: np.ndarray, total: int, chance: float) -> np.ndarray:
    """Whole numbers of exactly this sum, each the floor or ceiling of its stretched factor, right in the mean.

    Systematic sampling (Madow, 1949): whole numbers are counted along the running sum from a random start.
    """
    if len(factors) == 0:
        return np.zeros(0, np.int64)
    reached = np.cumsum(factors) * (total / factors.sum())
    reached[-1] = total
    return np.diff(np.floor(reached + chance), prepend=0).astype(np.int64)


def _check_shares(ok_share: float | None, repeat_threshold: float | None) -> None:
    if ok_share is not None and not 0 <= ok_share < 1:
        raise UsageError(f"ok_share must lie from 0 up to but not 1, but got {ok_share}")
    if repeat_threshold is not None and not 0 <= repeat_threshold <= 1:
        raise UsageError(f"repeat_threshold must lie between 0 and 1, but got {repeat_threshold}")


def _check_pools(num_defective: int, num_ok: int, ok_share: float | None) -> None:
    if num_defective + num_ok == 0:
        raise DataError("the training split holds no image")
    if ok_share is not None and num_defective == 0:
        raise DataError(
            f"ok_share {ok_share} mixes OK samples with defective ones, but none of the {num_ok} samples shows a"
            " defect; check the annotations and the class list"
        )
    if ok_share and num_ok == 0:
        raise DataError(
            f"ok_share {ok_share} asks for OK samples, but each of the {num_defective} samples shows a defect; add OK"
            " images, cut large images into tiles, or leave ok_share out"
        )
