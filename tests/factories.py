"""Tiny tasks, windows and pages of text that the tests share.

`ToyTask` keeps the Task protocol honest: it has nothing to do with detection, and the engine trains it all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import paddle

from pipelines.records import MicroBatch, Sample, TextAnnotation, TextRegion
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

    @property
    def recomputable(self) -> Sequence[paddle.nn.Layer]:
        return list(self.network.children())

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


@dataclass(frozen=True, eq=False)
class Page:
    """An image of text: uint8 BGR (height, width, 3), with the boxes of its lines, float32 (n, 4, 2) in pixels."""

    name: str
    image: np.ndarray
    boxes_px: np.ndarray


def drawn_page(seed: int, *, size_hw: tuple[int, int] = (480, 480)) -> Page:
    """A page of printed digits and letters on uneven paper, boxes exact by construction."""
    rng = np.random.default_rng(seed)
    image = np.full((*size_hw, 3), 225, np.uint8) - rng.integers(0, 25, (*size_hw, 3), dtype=np.uint8)
    boxes, top = [], 12
    while top < size_hw[0] - 40:
        text = "".join(rng.choice(list("0123456789 TOTALRMSUB.,:-"), rng.integers(6, 22)))
        scale, left = float(rng.uniform(0.5, 0.8)), int(rng.integers(4, 60))
        (width, height), below = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, scale, 1)
        cv2.putText(image, text, (left, top + height), cv2.FONT_HERSHEY_SIMPLEX, scale, (40, 40, 40), 1, cv2.LINE_AA)
        boxes.append(_corners(left - 2, top - 2, left + width + 2, top + height + below))
        top += height + below + int(rng.integers(4, 20))
    return Page(f"drawn_{seed}.png", image, np.array(boxes, np.float32))


def receipt_pages(folder: Path, num_pages: int, *, longest_px: int = 1600) -> list[Page]:
    """The first receipts of the training list that are not scans of thousands of pixels (ICDAR 2019 SROIE layout)."""
    pages: list[Page] = []
    for identifier in (folder / "train.txt").read_text().split():
        image = cv2.imread(str(folder / "img" / f"{identifier}.jpg"))
        if max(image.shape) > longest_px:
            continue
        lines = (folder / "box" / f"{identifier}.csv").read_text(encoding="utf-8", errors="replace").splitlines()
        boxes = [[float(number) for number in line.split(",")[:8]] for line in lines if line.strip()]
        pages.append(Page(f"{identifier}.jpg", image, np.array(boxes, np.float32).reshape(-1, 4, 2)))
        if len(pages) == num_pages:
            return pages
    raise ValueError(f"{folder} holds only {len(pages)} receipts up to {longest_px} px, but {num_pages} are needed")


def text_crops(
    pages: Sequence[Page],
    num_crops: int,
    targets: Callable[[np.ndarray, TextAnnotation, str], Sample],
    *,
    size_hw: tuple[int, int] = (96, 96),
    seed: int = 0,
) -> list[Sample]:
    """Crops around text lines, with their targets, round and round the pages."""
    rng = np.random.default_rng(seed)
    samples = []
    for i in range(num_crops):
        page = pages[i % len(pages)]
        limits = np.array(page.image.shape[1::-1]) - size_hw[::-1]
        middle = page.boxes_px[rng.integers(len(page.boxes_px))].mean(axis=0)
        x, y = np.clip(middle - np.array(size_hw[::-1]) * rng.uniform(0.2, 0.8, 2), 0, limits).astype(int)
        regions = tuple(TextRegion(box - (x, y)) for box in page.boxes_px if _meets(box - (x, y), size_hw))
        crop = np.ascontiguousarray(page.image[y : y + size_hw[0], x : x + size_hw[1]])
        samples.append(targets(crop, TextAnnotation(regions), f"{page.name} at {x},{y}"))
    return samples


def text_free_crops(
    num_crops: int,
    targets: Callable[[np.ndarray, TextAnnotation, str], Sample],
    *,
    size_hw: tuple[int, int] = (96, 96),
    seed: int = 0,
) -> list[Sample]:
    """Paper with a few strokes that are no text."""
    rng = np.random.default_rng(seed)
    samples = []
    for i in range(num_crops):
        image = np.full((*size_hw, 3), 225, np.uint8) - rng.integers(0, 25, (*size_hw, 3), dtype=np.uint8)
        for _ in range(4):
            start, end = rng.integers(0, min(size_hw), (2, 2)).tolist()
            cv2.line(image, start, end, (60, 60, 60), 1, cv2.LINE_AA)
        samples.append(targets(image, TextAnnotation(), f"text_free_{seed}_{i}.png"))
    return samples


def _corners(left: float, top: float, right: float, bottom: float) -> list[tuple[float, float]]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _meets(box_px: np.ndarray, size_hw: tuple[int, int]) -> bool:
    return bool((box_px.max(axis=0) > 0).all() and (box_px.min(axis=0) < size_hw[::-1]).all())
