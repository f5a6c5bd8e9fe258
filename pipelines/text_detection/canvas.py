"""The target maps of one image while they are drawn, region by region."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from pipelines.text_detection.outlines import Outlines

# The threshold map rises from 0.3 to 0.7 towards an outline, as in the DB paper; here times 255, halves rounded up.
_PEAK_BYTE, _RISE_BYTES = 0.7 * 255 + 1e-3, 0.4 * 255
_FAR = float(np.nextafter(np.float32(1), np.float32(2)))
_FRACTION_BITS = 6  # of a pixel, for cv2.fillPoly


class Canvas:
    """Four maps of (height, width); see `targets.DrawnTargets`."""

    def __init__(self, size_hw: tuple[int, int]):
        self._shrink_map = np.zeros(size_hw, np.uint8)
        self._shrink_mask = np.ones(size_hw, np.uint8)
        self._threshold_mask = np.zeros(size_hw, np.uint8)
        # squared distance to the nearest outline, in widths of its border zone; float32, just above 1 outside all zones
        self._farness = np.full(size_hw, _FAR, np.float32)

    def maps(self) -> dict[str, np.ndarray]:
        """What was drawn, uint8 (height, width) by name."""
        return {
            "shrink_map": self._shrink_map,
            "shrink_mask": self._shrink_mask,
            "threshold_map": cv2.convertScaleAbs(cv2.sqrt(self._farness), alpha=-_RISE_BYTES, beta=_PEAK_BYTE),
            "threshold_mask": self._threshold_mask | (self._farness <= 1),
        }

    def mask_out(self, points: np.ndarray) -> None:
        """Let nothing be learnt where the region is, (m, 2); the hull, as the outline may cross itself."""
        hull = cv2.convexHull(points.astype(np.float32)).reshape(-1, 2)
        _fill(self._shrink_mask, hull, 0)

    def draw(self, outlines: Outlines, distances: np.ndarray, kernels: Sequence[np.ndarray]) -> None:
        """Draw regions.

        Args:
            outlines: of the labels.
            distances: the widths of their border zones, (k,), pixels.
            kernels: their kernels, (m, 2) each.
        """
        for points, kernel in zip(outlines.split(outlines.points), kernels, strict=True):
            _fill(self._shrink_map, kernel, 1)
            _fill(self._threshold_mask, points, 1)
        self._draw_borders(outlines, outlines.spread(distances)[:, None])

    def _draw_borders(self, outlines: Outlines, distances: np.ndarray) -> None:
        """Note how far pixels are from the edges; `distances` are the widths of the zones around them, (n, 1).

        The nearest edge of all is what counts, so each is drawn by itself in the small box that its zone reaches.
        """
        height, width = self._farness.shape
        ends = outlines.points + outlines.edges
        low = np.floor(np.minimum(outlines.points, ends) - distances)
        high = np.ceil(np.maximum(outlines.points, ends) + distances) + 1
        boxes = np.clip(np.hstack([low, high]), 0, (width, height, width, height)).astype(int)
        forms, half_lengths = _edge_forms(outlines, distances)
        y, x = (np.stack([np.arange(side), np.ones(side)]).astype(np.float32) for side in (height, width))
        for (x0, y0, x1, y1), form, half_length in zip(boxes.tolist(), forms, half_lengths.tolist(), strict=True):
            if x0 < x1 and y0 < y1:
                squared = _squared_distances(y.T[y0:y1], x[:, x0:x1], form, half_length)
                part = self._farness[y0:y1, x0:x1]
                cv2.min(part, squared, dst=part)


def _edge_forms(outlines: Outlines, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a pixel is along each edge, from its middle, and across it, in widths of its zone.

    Both are (y, 1) F (x, 1)' with a 2 x 2 matrix F, and so a product of thin matrices on any box of pixels, which is
    quicker than numpy's broadcasting.

    Returns:
        float32 (n, 2, 2, 2): for each edge F along and F across; and half the lengths of the edges, (n,).
    """
    lengths = outlines.lengths[:, None]
    along = outlines.edges / (lengths * distances)
    units = np.stack([along, np.stack([-along[:, 1], along[:, 0]], axis=1)], axis=1)  # edge, along or across, x or y
    middles = outlines.points + outlines.edges / 2
    forms = np.zeros((len(units), 2, 2, 2), np.float32)
    forms[:, :, 1, 0], forms[:, :, 0, 1] = units[..., 0], units[..., 1]
    forms[:, :, 1, 1] = -(units * middles[:, None]).sum(axis=2)
    return forms, (lengths / distances / 2)[:, 0]


def _squared_distances(y: np.ndarray, x: np.ndarray, form: np.ndarray, half_length: float) -> np.ndarray:
    """Squared distance to an edge, float32 (h, w), of pixels at (h, 2) and (2, w); along it only beyond its ends."""
    parts = np.matmul(y, form).reshape(-1, 2).dot(x)
    beyond = parts[: len(y)]
    np.abs(beyond, out=beyond)
    beyond -= half_length
    np.maximum(beyond, 0, out=beyond)
    np.square(parts, out=parts)
    beyond += parts[len(y) :]
    return beyond


def _fill(target: np.ndarray, outline: np.ndarray, value: int) -> None:
    units = np.rint(outline * 2**_FRACTION_BITS).astype(np.int32)
    cv2.fillPoly(target, [units], value, shift=_FRACTION_BITS)
