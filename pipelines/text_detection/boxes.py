"""DB post-processing: from a probability map to text polygons in source-image pixels.

Agrees box for box with `DBPostProcess` of paddlex 3.7 (score mode fast), which is what an exported model
meets in use, down to its roundings: the kernel's corners lose their fraction before the expansion and the
result is rounded to whole source pixels, halves to even.

Source: Liao et al., "Real-time Scene Text Detection with Differentiable Binarization", AAAI 2020, section
"Deformable convolution/Label generation": a kernel is expanded by area * unclip_ratio / perimeter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import pyclipper

from pipelines.errors import UsageError
from pipelines.records import TextPrediction

_MIN_KERNEL_SIDE_PX = 3  # of the map; smaller kernels are noise
_MIN_BOX_SIDE_PX = 5  # of the map, after the expansion
_POLYGON_TOLERANCE = 0.002  # of the contour's length, for approxPolyDP


@dataclass(frozen=True)
class PostProcess:
    """Settings of DB's post-processing.

    Attributes:
        binary_threshold: pixels above it belong to a kernel.
        box_threshold: kernels whose mean probability is below it are dropped.
        unclip_ratio: how far a kernel is expanded, times its area / perimeter.
        max_candidates: contours looked at, in OpenCV's order.
        box_type: "quad" (rotated rectangles) or "poly".
    """

    binary_threshold: float = 0.3
    box_threshold: float = 0.6
    unclip_ratio: float = 1.5
    max_candidates: int = 1000
    box_type: Literal["quad", "poly"] = "quad"

    def __post_init__(self) -> None:
        for name in ("binary_threshold", "box_threshold"):
            if not 0 < getattr(self, name) < 1:
                raise UsageError(f"{name} must lie between 0 and 1, but got {getattr(self, name)}")
        if self.unclip_ratio <= 0 or self.max_candidates < 1:
            raise UsageError(
                f"unclip_ratio and max_candidates must be positive, but got {self.unclip_ratio}, {self.max_candidates}"
            )
        if self.box_type not in ("quad", "poly"):
            raise UsageError(f"box_type must be quad or poly, but got {self.box_type!r}")

    def __call__(self, probability_map: np.ndarray, source_size_hw: tuple[int, int]) -> TextPrediction:
        """Find text.

        Args:
            probability_map: float32 (height, width), 0 to 1.
            source_size_hw: (height, width) of the image that the polygons are wanted in.

        Returns:
            Polygons in source pixels, clipped to the image, whole numbers; confidence is the kernel's mean.
        """
        find = self._quad if self.box_type == "quad" else self._polygon
        kernels = (probability_map > self.binary_threshold).view(np.uint8)
        contours, _ = cv2.findContours(kernels, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        found = [find(contour, probability_map) for contour in contours[: self.max_candidates]]
        kept = [one for one in found if one is not None]
        height, width = probability_map.shape
        scale_xy = np.array([source_size_hw[1] / width, source_size_hw[0] / height])
        limit_xy = np.array([source_size_hw[1], source_size_hw[0]], np.float64)
        return TextPrediction(
            polygons_px=tuple(_to_source(polygon, scale_xy, limit_xy) for polygon, _ in kept),
            confidences=np.array([confidence for _, confidence in kept], np.float32),
        )

    def _quad(self, contour: np.ndarray, probability_map: np.ndarray) -> tuple[np.ndarray, float] | None:
        if _is_thin(contour):
            return None
        kernel, side = _min_area_quad(contour)
        if side < _MIN_KERNEL_SIDE_PX:
            return None
        confidence = _mean_inside(probability_map, kernel)
        if self.box_threshold > confidence:
            return None
        pieces = _expand(kernel, self.unclip_ratio)
        if not pieces:
            return None
        quad, side = _min_area_quad(np.concatenate(pieces).reshape(-1, 1, 2))
        return None if side < _MIN_BOX_SIDE_PX else (quad, confidence)

    def _polygon(self, contour: np.ndarray, probability_map: np.ndarray) -> tuple[np.ndarray, float] | None:
        outline = cv2.approxPolyDP(contour, _POLYGON_TOLERANCE * cv2.arcLength(contour, True), True).reshape(-1, 2)
        if len(outline) < 4:
            return None
        confidence = _mean_inside(probability_map, outline)
        if self.box_threshold > confidence:
            return None
        pieces = _expand(outline, self.unclip_ratio)
        if len(pieces) != 1:  # a hole or a pinched outline: deployed code drops it too
            return None
        _, side = _min_area_quad(pieces[0].reshape(-1, 1, 2))
        return None if side < _MIN_BOX_SIDE_PX else (pieces[0], confidence)


def _is_thin(contour: np.ndarray) -> bool:
    """Quick and safe refusal of noise: within 2 px of extent no rectangle of 3 px short side fits.

    The smallest-area rectangle has at most the bounding box's area, 2 w, so a 3 px short side needs w >= 4.5,
    while its diagonal must still span w: 9 + (2 w / 3)^2 >= w^2, so w <= 4.02.
    """
    _, _, width, height = cv2.boundingRect(contour)  # counts pixels: the extent is one less
    return min(width, height) <= _MIN_KERNEL_SIDE_PX


def _min_area_quad(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Corners of the rotated rectangle of least area, clockwise from the top left, and its short side."""
    rectangle = cv2.minAreaRect(points)
    corners = cv2.boxPoints(rectangle)
    corners = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = corners[:2], corners[2:]
    top_left, bottom_left = left if left[1, 1] > left[0, 1] else left[::-1]
    top_right, bottom_right = right if right[1, 1] > right[0, 1] else right[::-1]
    return np.array([top_left, top_right, bottom_right, bottom_left]), min(rectangle[1])


def _mean_inside(probability_map: np.ndarray, outline: np.ndarray) -> float:
    """Mean probability over the pixels of an outline in map pixels."""
    height, width = probability_map.shape
    low, high = outline.min(axis=0), outline.max(axis=0)
    x0, y0 = max(0, min(int(np.floor(low[0])), width - 1)), max(0, min(int(np.floor(low[1])), height - 1))
    x1, y1 = max(0, min(int(np.ceil(high[0])), width - 1)), max(0, min(int(np.ceil(high[1])), height - 1))
    mask = np.zeros((y1 - y0 + 1, x1 - x0 + 1), np.uint8)
    local = outline - np.array([x0, y0], outline.dtype)
    cv2.fillPoly(mask, [local.astype(np.int32)], 1)
    return float(cv2.mean(probability_map[y0 : y1 + 1, x0 : x1 + 1], mask)[0])


def _expand(outline: np.ndarray, unclip_ratio: float) -> list[np.ndarray]:
    """Offset an outline outwards; a list of int64 (k, 2), empty where there is nothing to expand."""
    perimeter = cv2.arcLength(outline, True)
    if perimeter <= 0:
        return []
    distance = cv2.contourArea(outline) * unclip_ratio / perimeter
    offset = pyclipper.PyclipperOffset()
    try:
        offset.AddPath(outline, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    except pyclipper.ClipperException:  # fewer than three distinct points after truncation
        return []
    return [np.array(piece) for piece in offset.Execute(distance)]


def _to_source(polygon: np.ndarray, scale_xy: np.ndarray, limit_xy: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(polygon * scale_xy), 0, limit_xy).astype(np.float32)
