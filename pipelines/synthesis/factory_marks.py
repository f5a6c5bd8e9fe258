"""Marks on a surface, defects and harmless ones: each a small patch that says how its pixels change.

Grey levels and pixels throughout. A mark reaches zero at the border of its patch, so nothing ends abruptly.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from pipelines.synthesis.factory_surfaces import lit_slopes, offsets_px, unit_noise

EDGE_PX = 6
"""Room around a drawn line, so that its flank and softness stay in the patch."""


@dataclass(frozen=True)
class Stage:
    """Where a mark is drawn.

    Attributes:
        size_hw: of the image.
        light_radians: where the light comes from; it decides which rim of a hollow shines.
        strength: grey levels that stand out clearly from this surface's texture.
        reach: 1, or less to draw large marks smaller where room is short.
    """

    size_hw: tuple[int, int]
    light_radians: float
    strength: float
    reach: float = 1.0


@dataclass(frozen=True, eq=False)
class Mark:
    """A change of some pixels: new = old x gain + offset.

    Attributes:
        left_px, top_px: of the patch in the image; it may stick out.
        offset: grey levels, float32 (height, width).
        gain_bgr: factors, float32 (height, width, 3), or None for 1.
    """

    left_px: int
    top_px: int
    offset: np.ndarray
    gain_bgr: np.ndarray | None = None

    def window_xyxy(self, size_hw: tuple[int, int], margin_px: int = 0) -> tuple[int, int, int, int]:
        """The part of the image that the patch and a margin cover; may be empty."""
        height, width = self.offset.shape
        left, top = max(self.left_px - margin_px, 0), max(self.top_px - margin_px, 0)
        right = min(self.left_px + width + margin_px, size_hw[1])
        bottom = min(self.top_px + height + margin_px, size_hw[0])
        return left, top, max(right, left), max(bottom, top)

    def draw_on(self, scene: np.ndarray, origin_xy: tuple[int, int] = (0, 0)) -> None:
        """Change `scene`, float32 (height, width, 3), whose first pixel is `origin_xy` of the image."""
        height, width = scene.shape[:2]
        left, top = self.left_px - origin_xy[0], self.top_px - origin_xy[1]
        rows = slice(max(top, 0), min(top + self.offset.shape[0], height))
        columns = slice(max(left, 0), min(left + self.offset.shape[1], width))
        if rows.start >= rows.stop or columns.start >= columns.stop:
            return
        own = (slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left))
        target = scene[rows, columns]
        if self.gain_bgr is not None:
            target *= self.gain_bgr[own]
        target += self.offset[own][..., None]


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform: small ones are common, large ones not rare."""
    return float(low * (max(high, low) / low) ** rng.random())


def draw_scratch(rng: np.random.Generator, stage: Stage) -> Mark:
    """A thin curved line with a lit and a shaded flank, fading at its ends; from 24 px to most of the image."""
    height, width = stage.size_hw
    length = log_uniform(rng, 24, 0.85 * max(height, width) * stage.reach)
    num_points = max(8, int(length / 6))
    bend = np.cumsum(rng.normal(0, 0.5, num_points)) / num_points + np.linspace(0, rng.normal(0, 0.8), num_points)
    heading = rng.uniform(0, 2 * np.pi) + bend
    steps = np.stack([np.cos(heading), np.sin(heading)], axis=1) * (length / num_points)
    points = np.cumsum(steps, axis=0)
    points += rng.uniform(0.1, 0.9, 2) * (width, height) - points.mean(axis=0)
    origin = np.floor(points.min(axis=0)).astype(int) - EDGE_PX
    size_wh = np.ceil(points.max(axis=0)).astype(int) + EDGE_PX - origin
    line = _faded_line(rng, points - origin, (int(size_wh[1]), int(size_wh[0])), rng.uniform(1.0, 2.6))
    sign = 1 if rng.random() < 0.6 else -1
    flank = cv2.warpAffine(line, _shift(stage.light_radians, 1.6), (line.shape[1], line.shape[0]))
    offset = (line - np.float32(0.45) * flank) * np.float32(sign * stage.strength * rng.uniform(1.3, 2.2))
    return Mark(int(origin[0]), int(origin[1]), offset)


def _faded_line(
    rng: np.random.Generator, points: np.ndarray, size_hw: tuple[int, int], thickness_px: float
) -> np.ndarray:
    """Coverage 0 to 1 of a polyline of (n, 2) points, weaker towards its ends; float32 (height, width)."""
    num_lines = len(points) - 1
    along = (np.arange(num_lines) + 0.5) / num_lines
    fading = np.minimum(1, 4 * np.minimum(along, 1 - along) + 0.35) * rng.uniform(0.7, 1.0, num_lines)
    line = np.zeros(size_hw, dtype=np.uint8)
    ends = np.rint((points - 0.5) * 16).astype(int).tolist()  # cv2 counts from pixel middles, 4 bits below the pixel
    thickness = 2 if thickness_px > 1.9 else 1
    for start, end, weight in zip(ends[:-1], ends[1:], fading.tolist(), strict=True):
        cv2.line(line, start, end, round(255 * weight), thickness, cv2.LINE_AA, 4)
    soft = cv2.GaussianBlur(line.astype(np.float32), (5, 5), 0.35 * thickness_px)
    return np.asarray(soft / soft.max())


def _shift(radians: float, distance_px: float) -> np.ndarray:
    """The 2 x 3 map that moves an image away from the light."""
    return np.array([[1, 0, -distance_px * np.cos(radians)], [0, 1, -distance_px * np.sin(radians)]])


def draw_pit(rng: np.random.Generator, stage: Stage) -> Mark:
    """A small dark hollow of uneven outline whose far rim catches the light; radius 3.5 to 11 px."""
    radius = log_uniform(rng, 3.5, 11)
    x, y, side, (left, top) = _square(rng, stage, 1.6 * radius + 3)
    outline = _outline(rng, x, y, radius, 0.16)
    hollow = 1 / (1 + np.exp((outline - 1) * np.float32(2.2 * radius)))
    away = -(x * np.float32(np.cos(stage.light_radians)) + y * np.float32(np.sin(stage.light_radians)))
    rim = np.exp(-(((outline - 1.12) * np.float32(radius / 1.1)) ** 2)) * np.clip(away / np.float32(radius), 0, 1)
    depth, shine = stage.strength * rng.uniform(1.5, 2.6), stage.strength * rng.uniform(0.7, 1.6)
    floor = unit_noise(rng, (side, side), (0.8, 0.8)) * np.float32(0.12)
    offset = (rim * np.float32(shine) - hollow * (1 + floor) * np.float32(depth)) * _fade_out(x, y, side)
    return Mark(left, top, offset.astype(np.float32))


def draw_stain(rng: np.random.Generator, stage: Stage) -> Mark:
    """A dried drop or a smear of oil: a soft-edged change of colour, often darker at its rim; 16 px to a third."""
    radius = log_uniform(rng, 9, max(14.0, 0.16 * min(stage.size_hw) * stage.reach))
    x, y, side, (left, top) = _square(rng, stage, 1.9 * radius + 4)
    lobes = unit_noise(rng, (side, side), (0.35 * radius, 0.35 * radius)) * np.float32(rng.uniform(0.05, 0.16))
    outline = (
        _outline(rng, x * np.float32(rng.uniform(1, 1.5)), y * np.float32(rng.uniform(1, 1.5)), radius, 0.12) + lobes
    )
    body = 1 / (1 + np.exp((outline - 1) * np.float32(rng.uniform(6, 14))))
    rim = np.exp(-(((outline - 0.95) / np.float32(0.1)) ** 2)) * np.float32(rng.uniform(0, 0.5))
    colours = ((1.25, 1.0, 0.75), (0.8, 0.95, 1.1), (1.0, 1.0, 1.0))
    colour = np.array(colours[rng.integers(3)], dtype=np.float32)
    sign = -1 if rng.random() < 0.8 else 0.7
    depth = np.float32(min(0.55, sign * sign * stage.strength * rng.uniform(1.0, 1.7) / 130))
    cover = np.clip(body + rim, 0, 1.3) * _fade_out(x, y, side)
    gain = 1 + np.float32(np.sign(sign)) * depth * cover[..., None] * colour
    return Mark(left, top, np.zeros((side, side), np.float32), gain.astype(np.float32))


def draw_dent(rng: np.random.Generator, stage: Stage) -> Mark:
    """A shallow dish: bright on the slope that faces the light, dark on the other; radius 7 px to a tenth."""
    radius = log_uniform(rng, 7, max(10.0, 0.09 * min(stage.size_hw) * stage.reach))
    x, y, _, (left, top) = _square(rng, stage, 2.4 * radius + 3)
    turn = rng.uniform(0, np.pi)
    long, wide = x * np.cos(turn) + y * np.sin(turn), (y * np.cos(turn) - x * np.sin(turn)) * rng.uniform(1.0, 1.5)
    dish = -np.exp(-(((long * long + wide * wide) / np.float32(radius * radius)) ** np.float32(1.6)))
    slopes = lit_slopes(dish.astype(np.float32), stage.light_radians)
    return Mark(left, top, slopes * np.float32(stage.strength * rng.uniform(1.3, 2.2) / float(np.abs(slopes).max())))


def _square(
    rng: np.random.Generator, stage: Stage, half_px: float
) -> tuple[np.ndarray, np.ndarray, int, tuple[int, int]]:
    """A square patch somewhere on the image: x and y from its middle, its side, its left-top pixel."""
    height, width = stage.size_hw
    side = 2 * int(np.ceil(half_px)) + 1
    middle = (rng.uniform(0.06, 0.94) * width, rng.uniform(0.06, 0.94) * height)
    left, top = (int(value) - side // 2 for value in middle)
    x, y = offsets_px((side, side), (side / 2 + rng.uniform(-0.5, 0.5), side / 2 + rng.uniform(-0.5, 0.5)))
    return x, y, side, (left, top)


def _outline(rng: np.random.Generator, x: np.ndarray, y: np.ndarray, radius: float, unevenness: float) -> np.ndarray:
    """1 on an uneven closed line about the middle, less inside; float32 (height, width)."""
    distance = np.sqrt(x * x + y * y) / np.float32(radius)
    angle = np.arctan2(y, x)
    waves = sum(
        np.cos(number * angle + np.float32(rng.uniform(0, 2 * np.pi)))
        * np.float32(rng.uniform(0, 2 * unevenness / number))
        for number in (2, 3, 4, 5)
    )
    return np.asarray(distance * (1 + waves), dtype=np.float32)


def _fade_out(x: np.ndarray, y: np.ndarray, side: int) -> np.ndarray:
    """1 in the middle of a square patch, 0 from its border on."""
    distance = np.maximum(np.abs(x), np.abs(y)) * np.float32(2 / side)
    return np.asarray(np.clip((np.float32(0.97) - distance) * 8, 0, 1))
