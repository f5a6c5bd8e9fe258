"""The shape of every sample of a window, and the grouping of samples into micro-batches of one shape.

A window mixes crops of several shapes and whole pages; since the engine's gradient does not depend on how a
window is cut, shapes may change within it. Crops come in runs of one shape so that micro-batches fill.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.batching.order import shape_rng
from pipelines.errors import UsageError
from pipelines.records import MicroBatch, Sample

STRIDE_PX = 32
ShapeHW = tuple[int, int]
SizeOf = Callable[[ShapeHW], int]
"""Samples in a micro-batch, by their (height, width)."""

# About 0.4 megapixels each, so that one micro-batch size fits all.
DEFAULT_CROP_SHAPES = (
    (640, 640), (512, 800), (800, 512), (448, 896), (896, 448), (576, 704), (704, 576), (416, 960),
)  # fmt: skip


@dataclass(frozen=True)
class ShapeChoice:
    """What one sample shall look like.

    Attributes:
        crop_hw: (height, width) of the crop; of the stand-in crop if the whole page turns out too large.
        is_page: take the whole page.
    """

    crop_hw: tuple[int, int]
    is_page: bool = False


@dataclass(frozen=True)
class ShapePlan:
    """The mix of shapes.

    Attributes:
        crop_shapes: (height, width) each, multiples of 32.
        whole_page_share: of the samples, 0 to 1.
        shape_run: consecutive crops that share a shape; a multiple of the micro-batch size fills micro-batches.
    """

    crop_shapes: tuple[tuple[int, int], ...] = DEFAULT_CROP_SHAPES
    whole_page_share: float = 0.0
    shape_run: int = 4

    def __post_init__(self) -> None:
        shapes = tuple((int(height), int(width)) for height, width in self.crop_shapes)
        if not shapes or any(side < STRIDE_PX or side % STRIDE_PX for shape in shapes for side in shape):
            raise UsageError(f"crop_shapes must be (height, width) in multiples of {STRIDE_PX}, but got {shapes}")
        if not 0 <= self.whole_page_share <= 1:
            raise UsageError(f"whole_page_share must lie between 0 and 1, but got {self.whole_page_share}")
        if self.shape_run < 1:
            raise UsageError(f"shape_run must be at least 1, but got {self.shape_run}")
        object.__setattr__(self, "crop_shapes", shapes)

    def choices(self, seed: int, epoch: int, window: int, num_samples: int) -> list[ShapeChoice]:
        """The shapes of one window's samples, in order."""
        rng = shape_rng(seed, epoch, window)
        # rounded up or down at random: a share below 1 / num_samples still comes true over many windows
        num_pages = int(self.whole_page_share * num_samples + rng.random())
        pages = set(rng.permutation(num_samples)[:num_pages].tolist())
        shapes = (shape for shape in self._dealt(rng) for _ in range(self.shape_run))
        stand_in = max(self.crop_shapes, key=lambda shape: shape[0] * shape[1])
        return [
            ShapeChoice(stand_in, is_page=True) if position in pages else ShapeChoice(next(shapes))
            for position in range(num_samples)
        ]

    def shares(self) -> dict[ShapeChoice, float]:
        """Of the samples, on average."""
        crops = (1 - self.whole_page_share) / len(self.crop_shapes)
        pages = {ShapeChoice(max(self.crop_shapes, key=math.prod), is_page=True): self.whole_page_share}
        return {**{ShapeChoice(shape): crops for shape in self.crop_shapes}, **(pages if self.whole_page_share else {})}

    def most_of(self, shape_hw: ShapeHW, num_samples: int) -> int:
        """How many samples of a shape a window of `num_samples` may hold: any number of crops, few pages."""
        if shape_hw in self.crop_shapes:
            return num_samples
        return min(num_samples, int(self.whole_page_share * num_samples) + 1)

    def _dealt(self, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
        """Shapes as from a shuffled deck: none comes again before all have come."""
        while True:
            for index in rng.permutation(len(self.crop_shapes)):
                yield self.crop_shapes[index]


def group_by_shape(samples: Sequence[Sample], size_of: SizeOf) -> list[MicroBatch]:
    """All samples, each once, in micro-batches of one shape and at most `size_of` it; order kept within a shape."""
    by_shape: dict[tuple[int, ...], list[Sample]] = {}
    for sample in samples:
        by_shape.setdefault(sample.image.shape, []).append(sample)
    sizes = {shape: size_of((shape[0], shape[1])) for shape in by_shape}
    return [
        MicroBatch.of(group[start : start + sizes[shape]])
        for shape, group in by_shape.items()
        for start in range(0, len(group), sizes[shape])
    ]
