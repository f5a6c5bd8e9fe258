"""Surfaces as they leave a machine, without light, camera or defect: brushed, turned, cast, woven, painted.

A surface is a field of grey levels, float32 (height, width), around 60 to 200. Its texture is harmless by
definition, however much it may look like a defect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import cv2
import numpy as np

Draw = Callable[[np.random.Generator, tuple[int, int], float], np.ndarray]


@dataclass(frozen=True, eq=False)
class Surface:
    """One kind of surface.

    Attributes:
        draw: (rng, size_hw, light_radians) to grey levels, float32 (height, width).
        tints_bgr: the colours it comes in, as factors of the grey level.
        is_metal: whether it may be drilled.
    """

    draw: Draw
    tints_bgr: tuple[tuple[float, float, float], ...] = ((1.0, 1.0, 1.0),)
    is_metal: bool = False


def unit_noise(rng: np.random.Generator, size_hw: tuple[int, int], blur_xy_px: tuple[float, float]) -> np.ndarray:
    """Normal noise, blurred by `blur_xy_px` (sigma), of mean 0 and standard deviation 1; float32 (height, width).

    Wide blurs are drawn small and enlarged, which looks the same and costs a fraction.
    """
    shrink_xy = [max(1, int(sigma / 2)) for sigma in blur_xy_px]
    small_hw = (-(-size_hw[0] // shrink_xy[1]) + 2, -(-size_hw[1] // shrink_xy[0]) + 2)
    noise = rng.standard_normal(small_hw, dtype=np.float32)
    sigma_x, sigma_y = (max(sigma / shrink, 1e-3) for sigma, shrink in zip(blur_xy_px, shrink_xy, strict=True))
    noise = cv2.GaussianBlur(noise, (0, 0), sigma_x, sigmaY=sigma_y)
    if small_hw != size_hw:
        noise = cv2.resize(noise, size_hw[::-1], interpolation=cv2.INTER_CUBIC)
    mean, deviation = cv2.meanStdDev(noise)
    return np.asarray((noise - np.float32(mean[0, 0])) / np.float32(max(deviation[0, 0], 1e-6)))


def lit_slopes(height: np.ndarray, light_radians: float) -> np.ndarray:
    """Brightness of a relief under grazing light from `light_radians`: its slope towards the light; float32."""
    slope_x = cv2.Sobel(height, cv2.CV_32F, 1, 0, ksize=3, scale=0.125)
    slope_y = cv2.Sobel(height, cv2.CV_32F, 0, 1, ksize=3, scale=0.125)
    return np.asarray(-slope_x * np.float32(np.cos(light_radians)) - slope_y * np.float32(np.sin(light_radians)))


def offsets_px(size_hw: tuple[int, int], center_xy: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Distances of pixel middles from a point: x as float32 (1, width), y as float32 (height, 1)."""
    x = np.arange(size_hw[1], dtype=np.float32)[None, :] + np.float32(0.5 - center_xy[0])
    y = np.arange(size_hw[0], dtype=np.float32)[:, None] + np.float32(0.5 - center_xy[1])
    return x, y


def draw_brushed(rng: np.random.Generator, size_hw: tuple[int, int], light_radians: float) -> np.ndarray:
    """Streaks of many lengths along one side of the image."""
    is_upright = bool(rng.random() < 0.5)
    drawn_hw = size_hw[::-1] if is_upright else size_hw
    grey = np.full(drawn_hw, rng.uniform(115, 165), dtype=np.float32)
    for length_px, thickness_px, contrast in ((60, 0.4, 5.0), (18, 0.3, 4.0), (120, 2.5, 3.0), (200, 9.0, 3.0)):
        grey += unit_noise(rng, drawn_hw, (length_px, thickness_px)) * np.float32(contrast * rng.uniform(0.6, 1.2))
    return np.ascontiguousarray(grey.T) if is_upright else grey


def draw_turned(rng: np.random.Generator, size_hw: tuple[int, int], light_radians: float) -> np.ndarray:
    """Rings of a lathe tool about a centre in or outside the image, with the two sheens that they throw."""
    height, width = size_hw
    x, y = offsets_px(size_hw, (rng.uniform(-0.6, 1.6) * width, rng.uniform(-0.6, 1.6) * height))
    square = x * x + y * y + 1
    radius = np.sqrt(square)
    rings = unit_noise(rng, (1, 2 * int(radius.max()) + 8), (0.8, 0))[0] * np.float32(rng.uniform(4, 8))
    feed_px = rng.uniform(5, 12)
    rings += np.sin(np.arange(len(rings), dtype=np.float32) * np.float32(np.pi / feed_px)) * np.float32(
        rng.uniform(3, 7)
    )
    # cos and sin of twice the angle, without an arctangent
    twice = (x * x - y * y) * np.float32(np.cos(2 * light_radians)) + 2 * x * y * np.float32(np.sin(2 * light_radians))
    sheen = np.float32(rng.uniform(12, 28)) * twice / square
    return np.asarray(np.float32(rng.uniform(110, 150)) + rings[(2 * radius).astype(np.int32)] + sheen)


def draw_cast(rng: np.random.Generator, size_hw: tuple[int, int], light_radians: float) -> np.ndarray:
    """Grains of several sizes under grazing light."""
    grey = np.full(size_hw, rng.uniform(85, 125), dtype=np.float32)
    relief = unit_noise(rng, size_hw, (1.1, 1.1)) + 2.5 * unit_noise(rng, size_hw, (3.0, 3.0))
    shade = lit_slopes(relief, light_radians)
    grey += shade * np.float32(rng.uniform(7, 11) / float(shade.std()))
    grey += unit_noise(rng, size_hw, (14, 14)) * np.float32(rng.uniform(2, 4))
    return grey


def draw_woven(rng: np.random.Generator, size_hw: tuple[int, int], light_radians: float) -> np.ndarray:
    """A plain weave: threads go over and under by turns, none quite straight, none quite like its neighbour."""
    height, width = size_hw
    pitch_px = rng.uniform(6, 10)
    x, y = offsets_px(size_hw, (-rng.uniform(0, pitch_px), -rng.uniform(0, pitch_px)))
    sway = [unit_noise(rng, size_hw, (25, 25)) * np.float32(0.06) for _ in range(2)]
    across, down = x / np.float32(pitch_px) + sway[0], y / np.float32(pitch_px) + sway[1]
    column, row = np.floor(across).astype(np.int32), np.floor(down).astype(np.int32)
    # how far from the thread's middle, -1 to 1, and its round profile
    warp, weft = (1 - (2 * (part - whole) - 1) ** 2 for part, whole in ((across, column), (down, row)))
    is_warp_up = (column + row) % 2 == 0
    profile = np.where(is_warp_up, 0.45 + 0.55 * warp * (0.55 + 0.45 * weft), 0.35 + 0.6 * weft * (0.55 + 0.45 * warp))
    gains = [
        1 + rng.standard_normal(length // 4 + 8, dtype=np.float32) * np.float32(0.04) for length in (width, height)
    ]
    gain = np.where(is_warp_up, np.take(gains[0], column, mode="clip"), np.take(gains[1], row, mode="clip"))
    grey = np.float32(rng.uniform(120, 165)) * profile * gain
    return np.asarray(grey + unit_noise(rng, size_hw, (0.6, 0.6)) * np.float32(4), dtype=np.float32)


def draw_painted(rng: np.random.Generator, size_hw: tuple[int, int], light_radians: float) -> np.ndarray:
    """Paint with its orange peel."""
    peel = lit_slopes(unit_noise(rng, size_hw, (3.5, 3.5)), light_radians)
    grey = np.float32(rng.uniform(105, 190)) + peel * np.float32(rng.uniform(1.2, 3) / float(peel.std()))
    return np.asarray(grey + unit_noise(rng, size_hw, (45, 45)) * np.float32(rng.uniform(1, 4)))


_STEELS = ((1.0, 1.0, 1.0), (1.03, 1.0, 0.97), (0.94, 0.99, 1.03))
SURFACES: Mapping[str, Surface] = MappingProxyType({
    "brushed": Surface(draw_brushed, _STEELS, is_metal=True),
    "turned": Surface(draw_turned, _STEELS, is_metal=True),
    "cast": Surface(draw_cast, ((1.0, 1.0, 1.0), (0.93, 0.98, 1.04))),
    "woven": Surface(draw_woven, ((1.0, 1.0, 1.0), (0.85, 0.95, 1.05), (1.1, 0.98, 0.85))),
    "painted": Surface(draw_painted, ((1.0, 1.0, 1.0), (1.15, 0.95, 0.75), (0.9, 1.05, 0.85), (0.7, 0.85, 1.15))),
})  # fmt: skip
