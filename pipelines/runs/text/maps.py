"""Probability maps of images at the size of deployment or, where the memory is not there, at the largest that fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from pipelines.dataset import read_image
from pipelines.engine.retry import Refusal, tried, tried_twice
from pipelines.errors import OutOfMemoryError
from pipelines.runs.reporter import Reporter
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.task import TextDetection

_LEAST_SIDE_PX = 320
_STRIDE_PX = 32


class FittingMaps:
    """Maps of one image after the other; what did not fit is told, counted and remembered by its resized shape.

    Args:
        task: its network makes the maps.
        reporter: hears of the first image that is evaluated smaller.
    """

    def __init__(self, task: TextDetection, reporter: Reporter):
        self._task, self._reporter = task, reporter
        self._caps: dict[tuple[int, int], int] = {}

    def __call__(self, file: Path, size_hw: tuple[int, int], resize: ResizeRule) -> tuple[np.ndarray, bool]:
        """The map of an image.

        Args:
            file: the image.
            size_hw: its (height, width), pixels.
            resize: the size that deployment gives it.

        Returns:
            float32 (height, width) of the resized image, and whether that is smaller than in deployment.

        Raises:
            OutOfMemoryError: the smallest size is refused too.
        """
        shape = resize.size_hw(size_hw)
        if shape in self._caps:
            return self._smaller(file, shape, resize, self._caps[shape])
        probability = tried_twice(partial(self._map, file, resize))
        if not isinstance(probability, Refusal):
            return probability, False
        return self._smaller(file, shape, resize, _next_side(max(shape)))

    def _smaller(self, file: Path, shape: tuple[int, int], resize: ResizeRule, side: int) -> tuple[np.ndarray, bool]:
        for cap in sides_down_from(side):
            rule = replace(resize, limit_side=cap, limit_type="max")
            probability = tried(partial(self._map, file, rule))
            if not isinstance(probability, Refusal):
                self._remember(file, shape, cap)
                return probability, True
        raise OutOfMemoryError(
            f"{file}: evaluation at {shape[1]} x {shape[0]} px found no memory, nor did any longest side down to"
            f" {_LEAST_SIDE_PX} px: free memory on the device (wholebatch doctor tells who else uses it) or lower"
            " evaluate.setting.limit_side"
        )

    def _map(self, file: Path, resize: ResizeRule) -> np.ndarray:
        return self._task.probability_map(read_image(file), resize)

    def _remember(self, file: Path, shape: tuple[int, int], cap: int) -> None:
        if not self._caps:
            self._reporter.warn(
                f"{file}: evaluation at {shape[1]} x {shape[0]} px found no memory, twice; it was done with a longest"
                f" side of {cap} px, and so are all images of that shape. Other shapes may follow: capped_images in the"
                " metrics counts them. These numbers are not those of deployment: free memory on the device, or lower"
                " evaluate.setting.limit_side"
            )
        self._caps[shape] = cap


def sides_down_from(side_px: int) -> Iterator[int]:
    """Longest sides to try, multiples of 32, each about four fifths of the one before, down to 320."""
    while side_px >= _LEAST_SIDE_PX:
        yield side_px
        side_px = _next_side(side_px)


def _next_side(side_px: int) -> int:
    """The largest multiple of 32 that is at most four fifths; what is left above 320 ends there."""
    smaller = side_px * 4 // 5 // _STRIDE_PX * _STRIDE_PX
    return max(smaller, _LEAST_SIDE_PX) if side_px > _LEAST_SIDE_PX else 0
