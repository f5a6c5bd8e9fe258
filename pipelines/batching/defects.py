"""Factory images: from a source image and the part of it to show to a sample's, by one affine map, then colour.

The map is made of scale, shift, flips and quarter turns only: boxes stay upright and exact. A turn by any other angle
would leave a box around the turned box, and the network would learn boxes that are too large.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from pipelines.batching.colour import ColourJitter
from pipelines.batching.jitter import check_scale_jitter, check_shares, scale_factor
from pipelines.batching.shapes import ShapeChoice
from pipelines.batching.views import Look, quarter_turn, window_view
from pipelines.errors import UsageError
from pipelines.geometry import transform_boxes
from pipelines.records import DefectAnnotation, Record
from pipelines.tiles import view_boxes
from pipelines.tiles.scale import ScaleRule

_TRIES = 4


@dataclass(frozen=True)
class DefectAugmentation:
    """An `Augmentation` for defects: how a sample may differ from what evaluation would see of the same tile.

    A sample stays what it was drawn for: if moving and scaling would bring a defect into an OK tile, or leave a
    defective tile without any, it is drawn again, and at last an OK tile is shown as it lies, a defective one about a
    defect. So the share of OK samples is the one that was asked for.

    What lies outside the image has the colour of its margins.

    Attributes:
        scale: network pixels per image pixel, as evaluation has them.
        scale_jitter: smallest and largest factor of the scale.
        horizontal_flip: half of the samples are mirrored, left to right.
        vertical_flip: half of the samples are mirrored, top to bottom.
        quarter_turns: samples are turned by 0, 1, 2 or 3 quarters.
        shift_share: how far the view may move inside the image, of its own width and height.
        min_visible: defects of which less is visible become ignore regions (see `view_boxes`).
        min_side_px: so do those that a cut leaves thinner than this, in sample pixels.
        colour: changes of light and grain, or None.
    """

    scale: ScaleRule = ScaleRule()  # noqa: RUF009 (frozen)
    scale_jitter: tuple[float, float] = (0.9, 1.1)
    horizontal_flip: bool = True
    vertical_flip: bool = False
    quarter_turns: bool = False
    shift_share: float = 0.1
    min_visible: float = 0.6
    min_side_px: float = 4.0
    colour: ColourJitter | None = field(default_factory=ColourJitter)

    def __post_init__(self) -> None:
        check_scale_jitter(self.scale_jitter)
        check_shares(self, "shift_share", "min_visible")

    def largest_shape(self, record: Record, choice: ShapeChoice) -> tuple[int, int]:
        return choice.crop_hw

    def apply(
        self, look: Look, record: Record, choice: ShapeChoice, rng: np.random.Generator
    ) -> tuple[np.ndarray, DefectAnnotation]:
        """Make one sample's image and boxes.

        Args:
            look: shows the record's image through a view.
            record: its defects in the image's pixels, and its view: the tile to show, or None for the whole image.
            choice: the shape asked for.
            rng: the sample's randomness.

        Returns:
            uint8 image of `choice.crop_hw`, and the boxes in its pixels; none of them on an OK sample.

        Raises:
            UsageError: a whole page was asked for; whole images are a matter of `scale`.
        """
        if choice.is_page:
            raise UsageError("whole_page_share is for text; to show whole images set it to 0 and give a longest side")
        matrix = self._view(record, choice.crop_hw, rng)
        shown, annotation = look(matrix, choice.crop_hw), self._seen(record, matrix, choice.crop_hw)
        return (self.colour.apply(shown, rng) if self.colour else shown), annotation

    def _view(self, record: Record, crop_hw: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        """The map of a sample that stays what it was drawn for, 2 x 3, source to sample."""
        turn, tile = self._turn(rng), _corners(record)
        middle = tile.mean(axis=0)
        whole = window_view(middle, tile[1] - tile[0], crop_hw, turn)
        drawn_for = self._seen(record, whole, crop_hw)
        for _ in range(_TRIES):
            matrix = self._moved(record, crop_hw, turn, rng)
            if self._seen(record, matrix, crop_hw).is_ok == drawn_for.is_ok:
                return matrix
        if not drawn_for.is_ok:
            first = drawn_for.boxes_xyxy_px[~drawn_for.is_ignored][0].astype(np.float64)
            middle = np.linalg.solve(whole[:, :2], (first[:2] + first[2:]) / 2 - whole[:, 2])
        return self._around(record, middle, crop_hw, turn, 1.0)

    def _turn(self, rng: np.random.Generator) -> np.ndarray:
        """Flips and quarter turns, 2 x 2; everything is drawn, used or not, so that no switch changes another's."""
        quarters, mirrored = int(rng.integers(4)), rng.random(2) < 0.5
        flips = np.where(mirrored & (self.horizontal_flip, self.vertical_flip), -1.0, 1.0)
        return np.diag(flips) @ quarter_turn(quarters if self.quarter_turns else 0)

    def _moved(
        self, record: Record, crop_hw: tuple[int, int], turn: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Scaled and moved at random; a sample that shows less than its tile lies anywhere in it."""
        tile, jitter = _corners(record), scale_factor(self.scale_jitter, rng)
        tile_wh = tile[1] - tile[0]
        slack = np.maximum(tile_wh - self._extent(record, crop_hw, turn, jitter), 0)
        shift = rng.uniform(-1, 1, 2) * (self.shift_share * tile_wh + slack / 2)
        return self._around(record, tile.mean(axis=0) + shift, crop_hw, turn, jitter)

    def _around(
        self, record: Record, middle: np.ndarray, crop_hw: tuple[int, int], turn: np.ndarray, jitter: float
    ) -> np.ndarray:
        """The map that shows what lies around a point, as far as the image goes."""
        source_wh = np.array(record.size_hw[::-1])
        extent = self._extent(record, crop_hw, turn, jitter)
        # inside the image, or, where it shows more than the image, with the whole image inside
        low, high = np.sort([extent / 2, source_wh - extent / 2], axis=0)
        start = np.rint(np.clip(middle, low, high) - extent / 2)  # between pixels, scale 1 would blur
        return window_view(start + extent / 2, extent, crop_hw, turn)

    def _extent(self, record: Record, crop_hw: tuple[int, int], turn: np.ndarray, jitter: float) -> np.ndarray:
        """(width, height) of what a sample shows, source pixels."""
        return np.abs(turn).T @ np.array(crop_hw[::-1]) / (self.scale.of(record.size_hw) * jitter)

    def _seen(self, record: Record, matrix: np.ndarray, crop_hw: tuple[int, int]) -> DefectAnnotation:
        annotation: DefectAnnotation = record.annotation
        boxes = transform_boxes(annotation.boxes_xyxy_px, matrix)
        window = (0, 0, crop_hw[1], crop_hw[0])
        return view_boxes(replace(annotation, boxes_xyxy_px=boxes), window, self.min_visible, self.min_side_px)


def _corners(record: Record) -> np.ndarray:
    """Top left and bottom right of the tile, (2, 2), source pixels; of the image where there is no tile."""
    view = record.view_xyxy_px or (0, 0, *record.size_hw[::-1])
    return np.array(view, np.float64).reshape(2, 2)
