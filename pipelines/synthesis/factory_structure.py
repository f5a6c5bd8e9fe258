"""What a good part shows as well: dust, feed marks, haze, drilled holes. None of it is a defect."""

from __future__ import annotations

import numpy as np

from pipelines.synthesis.factory_marks import Stage
from pipelines.synthesis.factory_surfaces import Surface, offsets_px, unit_noise

SPECK_SIDE_PX = 2
"""The largest dust speck; a defect is larger."""


def add_structure(rng: np.random.Generator, scene: np.ndarray, surface: Surface, stage: Stage) -> np.ndarray:
    """Change `scene`, float32 (height, width), grey levels, by what is harmless on this surface.

    Returns:
        bool (height, width): where there is no surface that could have a defect.
    """
    _add_haze(rng, scene)
    is_hole = np.zeros(scene.shape, dtype=bool)
    if surface.is_metal and rng.random() < 0.3:
        _add_hole(rng, scene, is_hole, stage.light_radians)
    if rng.random() < 0.4:
        _add_feed_marks(rng, scene, stage.strength)
    _add_dust(rng, scene, stage.strength)
    return is_hole


def _add_haze(rng: np.random.Generator, scene: np.ndarray) -> None:
    """Wide clouds too faint to be a stain."""
    height, width = scene.shape
    scene += unit_noise(rng, (height, width), (40, 40)) * np.float32(rng.uniform(0.5, 2.5))


def _add_hole(rng: np.random.Generator, scene: np.ndarray, is_hole: np.ndarray, light_radians: float) -> None:
    """A drilled hole with a chamfer: round, sharp and larger than any pit."""
    height, width = scene.shape
    radius = rng.uniform(15, 24)
    center = (rng.uniform(0.1, 0.9) * width, rng.uniform(0.1, 0.9) * height)
    left, top = (max(int(value - radius - 10), 0) for value in center)
    right, bottom = int(center[0] + radius + 10), int(center[1] + radius + 10)
    patch = scene[top:bottom, left:right]
    x, y = offsets_px((patch.shape[0], patch.shape[1]), (center[0] - left, center[1] - top))
    distance = np.sqrt(x * x + y * y)
    bore = np.clip(radius - distance + 0.5, 0, 1)
    chamfer = np.clip(radius + 4 - distance, 0, 1) - bore
    facing = (x * np.cos(light_radians) + y * np.sin(light_radians)) / np.maximum(distance, 1)
    patch += chamfer * (20 - 45 * facing)
    patch *= 1 - bore * 0.78
    is_hole[top:bottom, left:right] = distance < radius + 5


def _add_feed_marks(rng: np.random.Generator, scene: np.ndarray, strength: float) -> None:
    """Straight, evenly spaced lines from border to border, as a worn tool leaves them."""
    height, width = scene.shape
    lines = scene.T if rng.random() < 0.5 else scene
    pitch = rng.uniform(0.12, 0.3) * min(height, width)
    start = rng.uniform(0, pitch)
    rows = np.arange(start, len(lines), pitch)[: int(rng.integers(2, 6))].astype(int)
    lines[rows] += np.float32(strength * rng.uniform(-0.7, 0.7))


def _add_dust(rng: np.random.Generator, scene: np.ndarray, strength: float) -> None:
    """Specks of a pixel or two."""
    height, width = scene.shape
    for _ in range(int(rng.poisson(8 * height * width / 65536))):
        rows, columns = rng.integers(1, SPECK_SIDE_PX + 1, 2)
        top, left = int(rng.integers(0, height - rows)), int(rng.integers(0, width - columns))
        scene[top : top + rows, left : left + columns] += np.float32(strength * rng.uniform(-3.0, 2.4))
