"""Text: from a source image with its regions to a sample's: one map, applied once, then colour.

Training sees text at the scale that evaluation sees: the evaluation's own resize rule gives each image's scale, and
the jitter is around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pipelines.batching.colour import ColourJitter
from pipelines.batching.jitter import check_scale_jitter, check_shares, scale_factor
from pipelines.batching.shapes import STRIDE_PX, ShapeChoice
from pipelines.batching.views import Look, crop_view, page_view, tilted, view_annotation
from pipelines.errors import UsageError
from pipelines.geometry import equivalent_height
from pipelines.records import Record, TextAnnotation

SizeRule = Callable[[tuple[int, int]], tuple[int, int]]

_CLEARANCE_PX = 4.0  # between an anchored line and the crop's edge


@dataclass(frozen=True)
class TextAugmentation:
    """An `Augmentation` for text: how a sample may differ from what evaluation would see.

    Attributes:
        evaluation_size: the evaluation's rule, source (height, width) to resized; picklable.
        scale_jitter: smallest and largest factor of the scale.
        rotation_degrees: largest turn to either side.
        perspective: how much nearer or farther than the centre the corners of an image may come, as in a photograph
            from the side. 0: not at all, and the map is affine.
        text_share: share of crops placed to show text; the others lie anywhere.
        min_visible: regions of which less is visible are ignored (see `view_annotation`).
        page_max_pixels: larger pages are cropped instead.
        colour: changes of light and grain, or None.
    """

    evaluation_size: SizeRule
    scale_jitter: tuple[float, float] = (0.8, 1.25)
    rotation_degrees: float = 1.0
    perspective: float = 0.0
    text_share: float = 0.9
    min_visible: float = 0.7
    page_max_pixels: int = 1664 * 1280
    colour: ColourJitter | None = field(default_factory=ColourJitter)

    def __post_init__(self) -> None:
        check_scale_jitter(self.scale_jitter)
        check_shares(self, "text_share", "min_visible")
        if not 0 <= self.perspective <= 0.5:
            raise UsageError(f"perspective must lie between 0 and 0.5, but got {self.perspective}")

    def apply(
        self, look: Look, record: Record, choice: ShapeChoice, rng: np.random.Generator
    ) -> tuple[np.ndarray, TextAnnotation]:
        """Make one sample's image and regions.

        Args:
            look: shows the record's image through a view.
            record: the image with its regions; all of it is shown from, text records have no view.
            choice: the shape asked for.
            rng: the sample's randomness.

        Returns:
            uint8 image with sides that are multiples of 32, and the regions in its pixels.
        """
        annotation: TextAnnotation = record.annotation
        source_hw = record.size_hw
        jitter = scale_factor(self.scale_jitter, rng)
        angle = self.rotation_degrees * rng.uniform(-1, 1)
        lean_xy = self.perspective * rng.uniform(-1, 1, 2) if self.perspective else None
        tilt = None if lean_xy is None else tilted(source_hw, lean_xy)
        page_hw = self._page_hw(source_hw, jitter) if choice.is_page else None
        if page_hw is not None:
            size_hw, matrix = page_hw, page_view(source_hw, page_hw, angle, tilt)
        else:
            scale = jitter * self.evaluation_scale(source_hw)
            anchor = self._anchor(annotation, scale, rng)
            size_hw = choice.crop_hw
            matrix = crop_view(source_hw, size_hw, scale, angle, rng, anchor, tilt)
        seen = look(matrix, size_hw)
        regions = view_annotation(annotation, matrix, size_hw, self.min_visible)
        return (self.colour.apply(seen, rng) if self.colour else seen), regions

    def largest_shape(self, record: Record, choice: ShapeChoice) -> tuple[int, int]:
        page_hw = self._page_hw(record.size_hw, self.scale_jitter[1]) if choice.is_page else None
        return page_hw or choice.crop_hw

    def evaluation_scale(self, source_hw: tuple[int, int]) -> float:
        """Evaluation pixels per source pixel, from the areas: the rule rounds each side to 32 px."""
        height, width = self.evaluation_size(source_hw)
        return math.sqrt(height * width / (source_hw[0] * source_hw[1]))

    def _page_hw(self, source_hw: tuple[int, int], jitter: float) -> tuple[int, int] | None:
        """Shape of the whole page, or None if it exceeds the budget even at its least scale."""
        sides = self.evaluation_size(source_hw)
        fitting = math.sqrt(self.page_max_pixels / (sides[0] * sides[1]))
        if fitting < self.scale_jitter[0]:
            return None
        scaled = [side * min(jitter, fitting) / STRIDE_PX for side in sides]
        strides = [max(round(side), 1) for side in scaled]
        if math.prod(strides) * STRIDE_PX**2 > self.page_max_pixels:
            strides = [max(math.floor(side), 1) for side in scaled]
        return strides[0] * STRIDE_PX, strides[1] * STRIDE_PX

    def _anchor(
        self, annotation: TextAnnotation, scale: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, float] | None:
        """A point on a random text line, with room for the line's height; None for a crop placed anywhere."""
        regions = [region for region in annotation.regions if not region.is_ignored]
        chance, pick, place = rng.random(3)
        if not regions or chance >= self.text_share:
            return None
        points = regions[int(pick * len(regions))].points_px.astype(np.float64)
        centre = points.mean(axis=0)
        corner = points[int(place * len(points))]
        margin = scale * equivalent_height(points) / 2 + _CLEARANCE_PX
        return centre + 0.8 * rng.random() * (corner - centre), margin
