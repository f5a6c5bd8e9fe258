"""The one resize rule that training scale, evaluation, export and prediction share.

It equals, bit for bit, what `paddleocr.TextDetection` does with an exported model folder
(`DetResizeForTest` of paddlex 3.7). What that reads from `inference.yml` under
`PreProcess.transform_ops: - DetResizeForTest:` is easily misread, so it is written down here:

- `resize_long: N` becomes the limit side, used with limit type **max** (never enlarges) for the PP-OCR
  model names; nothing else about the size is taken from the file.
- `limit_side_len` and `limit_type` in the file are ignored; both exist as arguments of `TextDetection(...)`.
- `max_side_limit` is always 4000, whatever the file says; `image_shape` would distort the aspect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np

from pipelines.errors import UsageError

LimitType = Literal["max", "min", "resize_long"]

_STRIDE_PX = 32  # the deepest stage of every DBNet sees one cell per 32 pixels
_DEPLOYED_MAX_SIDE_PX = 4000  # paddlex's constant


@dataclass(frozen=True)
class ResizeRule:
    """Size that the network sees for a source image of a given size.

    Attributes:
        limit_side: pixels that `limit_type` speaks about.
        limit_type: "max": the longest side is at most `limit_side`; "min": the shortest is at least
            `limit_side`; "resize_long": the longest is `limit_side`, enlarged if need be.
        max_side: ceiling of the longest side after that, pixels.
    """

    limit_side: int = 960
    limit_type: LimitType = "max"
    max_side: int = _DEPLOYED_MAX_SIDE_PX

    def __post_init__(self) -> None:
        if self.limit_type not in ("max", "min", "resize_long"):
            raise UsageError(f"limit_type must be max, min or resize_long, but got {self.limit_type!r}")
        for name in ("limit_side", "max_side"):
            if getattr(self, name) < _STRIDE_PX:
                raise UsageError(f"{name} must be at least {_STRIDE_PX} pixels, but got {getattr(self, name)}")

    def size_hw(self, source_hw: tuple[int, int]) -> tuple[int, int]:
        """Resized (height, width), multiples of 32, of a source image of (height, width)."""
        height, width = _padded_hw(source_hw)
        ratio = self._ratio(height, width)
        height, width = int(height * ratio), int(width * ratio)
        if max(height, width) > self.max_side:
            ratio = float(self.max_side) / max(height, width)
            height, width = int(height * ratio), int(width * ratio)
        return _to_stride(height), _to_stride(width)

    def apply(self, image: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
        """Resize one image.

        Args:
            image: uint8 (height, width, channels).

        Returns:
            The resized uint8 image (the same object if nothing changes) and (x, y) resized / source.
        """
        source_hw = (int(image.shape[0]), int(image.shape[1]))
        if _padded_hw(source_hw) != source_hw:
            image = _pad(image)
        height, width = self.size_hw(source_hw)
        scale_xy = (width / float(image.shape[1]), height / float(image.shape[0]))
        if (height, width) != image.shape[:2]:
            image = cv2.resize(image, (width, height))  # linear, as deployed; area would change what text looks like
        return image, scale_xy

    def to_inference_yml(self) -> dict[str, int]:
        """The `DetResizeForTest` entry of `inference.yml` under which paddleocr applies this very rule.

        Returns:
            {"resize_long": limit side}.

        Raises:
            UsageError: the rule can't be said in that file.
        """
        if self.limit_type != "max" or self.max_side != _DEPLOYED_MAX_SIDE_PX:
            raise UsageError(
                f"paddleocr reads only the limit side from inference.yml (limit type max, max side"
                f" {_DEPLOYED_MAX_SIDE_PX}), but the rule has limit type {self.limit_type} and max side"
                f" {self.max_side}; use limit type max, or pass limit_type and limit_side_len to TextDetection by hand"
            )
        return {"resize_long": self.limit_side}

    def _ratio(self, height: int, width: int) -> float:
        longest, shortest = max(height, width), min(height, width)
        if self.limit_type == "max":
            return float(self.limit_side) / longest if longest > self.limit_side else 1.0
        if self.limit_type == "min":
            return float(self.limit_side) / shortest if shortest < self.limit_side else 1.0
        return float(self.limit_side) / longest


def _to_stride(side: int) -> int:
    # round() takes halves to the even multiple, as the deployed code does
    return max(round(side / _STRIDE_PX) * _STRIDE_PX, _STRIDE_PX)


def _padded_hw(source_hw: tuple[int, int]) -> tuple[int, int]:
    height, width = source_hw
    return (max(_STRIDE_PX, height), max(_STRIDE_PX, width)) if height + width < 2 * _STRIDE_PX else source_hw


def _pad(image: np.ndarray) -> np.ndarray:
    """Black at the right and bottom, up to 32 x 32: what the deployed code does with tiny images."""
    height, width = _padded_hw((image.shape[0], image.shape[1]))
    padded = np.zeros((height, width, *image.shape[2:]), np.uint8)
    padded[: image.shape[0], : image.shape[1]] = image
    return padded
