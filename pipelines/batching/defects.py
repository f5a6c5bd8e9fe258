"""Factory images: from a source image and the part of it to show to a sample's, by one affine map, then colour.

The map is made of scale, shift, flips and quarter turns only: boxes stay upright and exact. A turn by any other angle
would leave a box around the turned box, and the network would learn boxes that are too large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from pipelines.batching.colour import ColourJitter
from pipelines.batching.shapes import ShapeChoice
from pipelines.batching.views import quarter_turn, warp, window_view
from pipelines.errors import DataError, UsageError
from pipelines.geometry import transform_boxes
from pipelines.records import DefectAnnotation, Record
from pipelines.tiles import view_boxes

_TRIES = 4


@dataclass(frozen=True)
class DefectAugmentation:
    """An `Augmentation` for defects: how a sample may differ from what evaluation would see of the same tile.

    A sample stays what it was drawn for: if moving and scaling would bring a defect into an OK tile, or leave a
    defective tile without any, other draws are tried, and at last the tile is shown as it lies. So the share of OK
    samples is the one that was asked for. What lies outside the image has the colour of its margins.

    Attributes:
        scale: network pixels per image pixel, or "fit": the whole view is resized to the sample's shape.
        scale_jitter: smallest and largest factor of the scale.
        horizontal_flip: half of the samples are mirrored, left to right.
        vertical_flip: half of the samples are mirrored, top to bottom.
        quarter_turns: samples are turned by 0, 1, 2 or 3 quarters.
        shift_share: how far the view may move inside the image, of its own width and height.
        min_visible: defects of which less is visible become ignore regions (see `view_boxes`).
        min_side_px: so do those that a cut leaves thinner than this, in sample pixels.
        colour: changes of light and grain, or None.
    """

    scale: float | Literal["fit"] = 1.0
    scale_jitter: tuple[float, float] = (0.9, 1.1)
    horizontal_flip: bool = True
    vertical_flip: bool = False
    quarter_turns: bool = False
    shift_share: float = 0.1
    min_visible: float = 0.6
    min_side_px: float = 4.0
    colour: ColourJitter | None = field(default_factory=ColourJitter)

    def __post_init__(self) -> None:
        low, high = self.scale_jitter
        if not 0 < low <= high:
            raise UsageError(f"scale_jitter must be two factors, smaller first, but got {self.scale_jitter}")
        if self.scale != "fit" and not (isinstance(self.scale, float | int) and self.scale > 0):
            raise UsageError(f"scale must be above 0, or fit for the whole view, but got {self.scale}")
        for name in ("shift_share", "min_visible"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} must lie between 0 and 1, but got {getattr(self, name)}")

    def apply(
        self, image: np.ndarray, record: Record, choice: ShapeChoice, rng: np.random.Generator
    ) -> tuple[np.ndarray, DefectAnnotation]:
        """Make one sample's image and boxes.

        Args:
            image: uint8 (height, width, 3), BGR; not changed.
            record: its defects in the image's pixels, and its view: the tile to show, or None for the whole image.
            choice: the shape asked for.
            rng: the sample's randomness.

        Returns:
            uint8 image of `choice.crop_hw`, and the boxes in its pixels; none of them on an OK sample.

        Raises:
            DataError: the image is not of the size that the dataset says, so its boxes can't be trusted.
            UsageError: a whole page was asked for; whole images are `scale` "fit".
        """
        if image.shape[:2] != record.size_hw:
            raise DataError(
                f"{record.path}: the image is {image.shape[0]} x {image.shape[1]} (height x width), but the dataset"
                f" says {record.size_hw[0]} x {record.size_hw[1]}; prepare the dataset again"
            )
        if choice.is_page:
            raise UsageError("whole_page_share is for text; to show whole images set it to 0 and scale to fit")
        turn = self._turn(rng)
        still = self._view(record, choice.crop_hw, turn, 1.0, np.zeros(2))
        is_ok = self._seen(record, still, choice.crop_hw).is_ok
        moved = self._moved_views(record, choice.crop_hw, turn, rng)
        matrix = next((one for one in moved if self._seen(record, one, choice.crop_hw).is_ok == is_ok), still)
        shown = warp(image, matrix, choice.crop_hw)
        return (self.colour.apply(shown, rng) if self.colour else shown), self._seen(record, matrix, choice.crop_hw)

    def _turn(self, rng: np.random.Generator) -> np.ndarray:
        """Flips and quarter turns, 2 x 2; everything is drawn, used or not, so that no switch changes another's."""
        quarters, mirrored = int(rng.integers(4)), rng.random(2) < 0.5
        flips = np.where(mirrored & (self.horizontal_flip, self.vertical_flip), -1.0, 1.0)
        return np.diag(flips) @ quarter_turn(quarters if self.quarter_turns else 0)

    def _moved_views(
        self, record: Record, crop_hw: tuple[int, int], turn: np.ndarray, rng: np.random.Generator
    ) -> Iterator[np.ndarray]:
        for _ in range(_TRIES):
            jitter = math.exp(rng.uniform(*np.log(self.scale_jitter)))
            yield self._view(record, crop_hw, turn, jitter, rng.uniform(-1, 1, 2))

    def _view(
        self, record: Record, crop_hw: tuple[int, int], turn: np.ndarray, jitter: float, shift: np.ndarray
    ) -> np.ndarray:
        """The map, 2 x 3, at a factor of the scale and a shift of -1 to 1 of what is allowed, (x, y)."""
        source_wh = np.array(record.size_hw[::-1], np.float64)
        view = np.array(record.view_xyxy_px or (0, 0, *source_wh), np.float64)
        view_wh = view[2:] - view[:2]
        extent = view_wh if self.scale == "fit" else np.abs(turn).T @ np.array(crop_hw[::-1]) / self.scale
        extent = extent / jitter
        reach = self.shift_share * view_wh + np.maximum(view_wh - extent, 0) / 2
        # inside the image, or, where it shows more than the image, with the whole image inside
        low, high = np.sort([extent / 2, source_wh - extent / 2], axis=0)
        centre = np.clip((view[:2] + view[2:]) / 2 + shift * reach, low, high)
        start = np.rint(centre - extent / 2)  # between pixels, a view at scale 1 would be blurred
        return window_view(start + extent / 2, extent, crop_hw, turn)

    def _seen(self, record: Record, matrix: np.ndarray, crop_hw: tuple[int, int]) -> DefectAnnotation:
        annotation: DefectAnnotation = record.annotation
        boxes = transform_boxes(annotation.boxes_xyxy_px, matrix)
        window = (0, 0, crop_hw[1], crop_hw[0])
        return view_boxes(replace(annotation, boxes_xyxy_px=boxes), window, self.min_visible, self.min_side_px)
