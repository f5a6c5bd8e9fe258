"""What light and a line camera make of a surface: uneven light, vignetting, blur, then noise; nothing moves."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

BLUR_REACH_PX = 3
"""Half the blur's kernel: further away than this a pixel changes nothing."""


@dataclass(frozen=True, eq=False)
class Optics:
    """Light and camera of one image.

    Attributes:
        light: factor of every pixel, float32 (height, width), about 0.6 to 1.15.
        blur_px: sigma of the lens, 1 at most.
        read_noise: standard deviation at black, grey levels.
        shot_noise: variance a grey level, so that bright pixels are noisier (photon noise is Poisson).
    """

    light: np.ndarray
    blur_px: float
    read_noise: float
    shot_noise: float

    def exposed(self, scene: np.ndarray, window_xyxy: tuple[int, int, int, int] | None = None) -> np.ndarray:
        """A scene, or a window of it, on the sensor before noise: float32 (height, width, 3), 0 to 255.

        Args:
            scene: float32 (height, width, 3), grey levels under even light; just the window if there is one.
            window_xyxy: where it lies in the image, pixels.
        """
        left, top, right, bottom = window_xyxy or (0, 0, scene.shape[1], scene.shape[0])
        lit = scene * self.light[top:bottom, left:right, None]
        side = 2 * BLUR_REACH_PX + 1
        blurred = cv2.GaussianBlur(lit, (side, side), self.blur_px)
        return np.asarray(np.clip(blurred, 0, 255, out=blurred))

    def sensed(self, rng: np.random.Generator, exposed: np.ndarray) -> np.ndarray:
        """What the camera delivers: noise added, in whole grey levels; uint8 (height, width, 3)."""
        grey = exposed[..., 1]
        noise = rng.standard_normal(grey.shape, dtype=np.float32)
        noise *= np.sqrt(np.float32(self.read_noise**2) + np.float32(self.shot_noise) * grey)
        noisy = exposed + noise[..., None]
        return np.clip(np.rint(noisy, out=noisy), 0, 255, out=noisy).astype(np.uint8)


def draw_optics(rng: np.random.Generator, size_hw: tuple[int, int]) -> Optics:
    """Light and camera of an image of this size."""
    height, width = size_hw
    coarse = 1 + rng.uniform(-0.11, 0.11, (3, 4)).astype(np.float32)
    light = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    y = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    light *= 1 - np.float32(rng.uniform(0.04, 0.16)) * (x * x + y * y)
    # a line camera: every column has the gain of its one pixel, every row the flicker of its moment
    light *= 1 + rng.standard_normal((1, width), dtype=np.float32) * np.float32(0.006)
    light *= 1 + rng.standard_normal((height, 1), dtype=np.float32) * np.float32(0.004)
    return Optics(light, rng.uniform(0.5, 0.95), rng.uniform(1.0, 2.5), rng.uniform(0.01, 0.04))
