"""Mild changes of light and grain: what scanners, cameras and archives do to a page."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np


@dataclass(frozen=True)
class ColourJitter:
    """Strengths; 0 switches a part off.

    Attributes:
        brightness: shift, of full scale, up or down.
        contrast: factor about mid grey, at most 1 + contrast or its inverse.
        gamma: exponent, at most 1 + gamma or its inverse.
        tint: factor of each channel, at most 1 + tint or its inverse.
        blur_share: share of samples blurred, with a Gaussian of 0.4 to 1 px.
        jpeg_share: share of samples stored as JPEG once more, quality 40 to 95.
    """

    brightness: float = 0.08
    contrast: float = 0.2
    gamma: float = 0.2
    tint: float = 0.04
    blur_share: float = 0.1
    jpeg_share: float = 0.1

    def apply(self, image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A changed copy of a uint8 (height, width, 3) image."""
        changed = cv2.LUT(image, self._curves(rng))
        # drawn whether used or not, so that a share changes no other random number
        chance_blur, sigma, chance_jpeg, quality = rng.random(4)
        if chance_blur < self.blur_share:
            changed = cv2.GaussianBlur(changed, (0, 0), 0.4 + 0.6 * sigma)
        if chance_jpeg < self.jpeg_share:
            _, encoded = cv2.imencode(".jpg", changed, [cv2.IMWRITE_JPEG_QUALITY, int(40 + 55 * quality)])
            changed = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
        return changed

    def _curves(self, rng: np.random.Generator) -> np.ndarray:
        """One 256-entry table a channel, uint8 (1, 256, 3)."""
        gamma, contrast = (_factor(rng, limit) for limit in (self.gamma, self.contrast))
        shift = self.brightness * rng.uniform(-1, 1)
        tints = np.array([_factor(rng, self.tint) for _ in range(3)])
        curve = (np.linspace(0, 1, 256) ** gamma - 0.5) * contrast + 0.5 + shift
        return np.rint(np.clip(curve[None, :, None] * tints * 255, 0, 255)).astype(np.uint8)


def _factor(rng: np.random.Generator, limit: float) -> float:
    """Between 1 / (1 + limit) and 1 + limit, even on a log scale."""
    return float((1 + limit) ** rng.uniform(-1, 1))
