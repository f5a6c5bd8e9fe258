"""Tiny tasks, windows and drawn images that the tests share.

`ToyTask` keeps the Task protocol honest: it has nothing to do with detection, and the engine trains it all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import paddle

from pipelines.records import MicroBatch, Sample
from pipelines.task import ExactMethod

Statistics = dict[str, paddle.Tensor]

LAYOUTS: dict[str, tuple[int, ...]] = {
    "16x2": (2,) * 16,
    "8x4": (4,) * 8,
    "32x1": (1,) * 32,
    "ragged": (3, 5, 2, 1, 7, 4, 6, 4),
    "a micro-batch split in two": (4, 4, 2, 2, 4, 4, 1, 3, 4, 4),
    "short last window": (2, 2, 1),
}
"""Ways to cut a window into micro-batches: number of samples each."""


@dataclass(frozen=True)
class ToyLoss:
    """A loss as the engine sees one: sums over pixels, and what to make of them."""

    exact_by: ExactMethod
    statistics: Callable[[paddle.Tensor, paddle.Tensor], Statistics]
    combine: Callable[[Statistics], Statistics]
    labels: Callable[[paddle.Tensor], Statistics] = field(default=lambda mask: {})
    divisor: str = ""


def _counts(mask: paddle.Tensor) -> Statistics:
    return {"positives": mask.sum(), "negatives": (1 - mask).sum()}


def _cross_entropy_sums(logits: paddle.Tensor, mask: paddle.Tensor) -> Statistics:
    error = paddle.nn.functional.softplus(logits) - logits * mask
    return {"positive_error": (error * mask).sum(), "negative_error": (error * (1 - mask)).sum(), **_counts(mask)}


def _balanced_cross_entropy(totals: Statistics) -> Statistics:
    positive = totals["positive_error"] / totals["positives"].clip(min=1.0)
    negative = totals["negative_error"] / totals["negatives"].clip(min=1.0)
    return {"loss": 2.0 * positive + negative, "loss_positive": positive}


def _quality_sums(logits: paddle.Tensor, mask: paddle.Tensor) -> Statistics:
    score = paddle.nn.functional.sigmoid(logits)
    return {
        "classification": ((score - mask).square()).sum(),
        "localisation": ((logits - 2.0).abs() * mask).sum(),
        "score_sum": (score * mask).sum().detach(),
    }


def _by_score_sum(totals: Statistics) -> Statistics:
    divisor = totals["score_sum"].clip(min=1.0)
    return {"loss": totals["classification"] / divisor + 2.5 * totals["localisation"] / divisor}


def _overlap_sums(logits: paddle.Tensor, mask: paddle.Tensor) -> Statistics:
    score = paddle.nn.functional.sigmoid(logits)
    return {"overlap": (score * mask).sum(), "area": score.sum(), "positives": mask.sum()}


def _dice(totals: Statistics) -> Statistics:
    return {"loss": 1.0 - 2.0 * totals["overlap"] / (totals["area"] + totals["positives"] + 1e-6)}


LOSSES: dict[str, ToyLoss] = {
    "labels": ToyLoss("labels", _cross_entropy_sums, _balanced_cross_entropy, _counts),
    "rescale": ToyLoss("rescale", _quality_sums, _by_score_sum, divisor="score_sum"),
    "replay": ToyLoss("replay", _overlap_sums, _dice),
}
"""One loss for each way to be exact."""


class ToyNetwork(paddle.nn.Layer):
    """Two convolutions over images of any size, with a BatchNorm and a dropout in between if asked for."""

    def __init__(self, *, has_batch_norm: bool = False, dropout: float = 0.0):
        super().__init__()
        self.first = paddle.nn.Conv2D(3, 4, 3, padding=1)
        self.norm = paddle.nn.BatchNorm2D(4) if has_batch_norm else paddle.nn.Identity()
        self.dropout = paddle.nn.Dropout(dropout)
        self.last = paddle.nn.Conv2D(4, 1, 3, padding=1)

    def forward(self, images: paddle.Tensor) -> paddle.Tensor:
        return self.last(self.dropout(paddle.tanh(self.norm(self.first(images)))))


class ToyTask:
    """A Task: which pixels of an image are marked (see `pipelines.task.Task`)."""

    def __init__(self, loss: ToyLoss, network: paddle.nn.Layer, dtype: str):
        self.network = network.to(dtype=dtype)
        self.exact_by, self.divisor = loss.exact_by, loss.divisor
        self._loss, self._dtype = loss, dtype

    def targets(self, image: np.ndarray, annotation: Any, source: str) -> Sample:
        return Sample(image, {"mask": np.asarray(annotation)}, source)

    def statistics(self, micro_batch: MicroBatch) -> Statistics:
        images = paddle.to_tensor(micro_batch.images).astype(self._dtype).transpose([0, 3, 1, 2]) / 255.0
        return self._loss.statistics(self.network(images).squeeze(1), self._mask(micro_batch))

    def label_statistics(self, micro_batch: MicroBatch) -> Statistics:
        return self._loss.labels(self._mask(micro_batch))

    def combine(self, totals: Statistics) -> Statistics:
        return self._loss.combine(totals)

    def predict(self, images: Sequence[np.ndarray]) -> list[Any]:
        raise NotImplementedError("the engine never asks for predictions")

    def _mask(self, micro_batch: MicroBatch) -> paddle.Tensor:
        return paddle.to_tensor(micro_batch.targets["mask"]).astype(self._dtype)


def toy_task(exact_by: str, *, dtype: str = "float64", seed: int = 7, **network: Any) -> ToyTask:
    """The toy task that is exact by `exact_by`, with seeded weights."""
    paddle.seed(seed)
    return ToyTask(LOSSES[exact_by], ToyNetwork(**network), dtype)


def toy_samples(num_samples: int, *, size_hw: tuple[int, int] = (12, 16), seed: int = 0) -> list[Sample]:
    """Noise with a bright, marked rectangle: every fourth image has none, the others from a few pixels to half."""
    rng = np.random.default_rng(seed)
    samples = []
    for i in range(num_samples):
        image = rng.integers(0, 128, (*size_hw, 3), dtype=np.uint8)
        mask = np.zeros(size_hw, np.uint8)
        if i % 4 != 3:
            height, width = rng.integers(1, size_hw[0] // 2 + 1), rng.integers(1, size_hw[1] + 1)
            mask[:height, :width] = 1
        image[mask == 1] += 100
        samples.append(Sample(image, {"mask": mask}, f"image_{seed}_{i}.png"))
    return samples


def blank_samples(num_samples: int, *, size_hw: tuple[int, int] = (12, 16), seed: int = 1) -> list[Sample]:
    """Noise with nothing marked."""
    samples = toy_samples(num_samples, size_hw=size_hw, seed=seed)
    return [Sample(s.image, {"mask": np.zeros_like(s.targets["mask"])}, s.source) for s in samples]


def split(samples: Sequence[Sample], sizes: Sequence[int]) -> list[MicroBatch]:
    """The samples, in order, as micro-batches of these sizes."""
    if sum(sizes) != len(samples):
        raise ValueError(f"sizes {sizes} add up to {sum(sizes)}, but there are {len(samples)} samples")
    ends = np.cumsum(sizes)
    return [MicroBatch.of(samples[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def toy_window(layout: str, **samples: Any) -> list[MicroBatch]:
    """A window cut as `LAYOUTS[layout]` says."""
    return split(toy_samples(sum(LAYOUTS[layout]), **samples), LAYOUTS[layout])
