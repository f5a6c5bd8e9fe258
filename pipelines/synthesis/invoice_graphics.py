"""What is on an invoice and is no text: logo, bar code, signature."""

from __future__ import annotations

import cv2
import numpy as np

from pipelines.synthesis.canvas import Color


def draw_logo(image: np.ndarray, left: int, top: int, side_px: int, color: Color, rng: np.random.Generator) -> None:
    """A filled shape with a cut-out, in place; shapes that no one reads as letters."""
    half = side_px // 2
    center = (left + half, top + half)
    light = tuple(int(255 - (255 - channel) * 0.45) for channel in color)
    kind = rng.integers(4)
    if kind == 0:
        cv2.circle(image, center, half, color, -1, cv2.LINE_AA)
        cv2.ellipse(image, center, (round(half * 0.7), round(half * 0.3)), 35, 0, 360, (255, 255, 255), -1, cv2.LINE_AA)
    elif kind == 1:
        cv2.rectangle(image, (left, top), (left + side_px, top + side_px), light, -1)
        corners = [(left, top + side_px), (left + half, top + half // 2), (left + side_px, top + side_px)]
        cv2.fillPoly(image, [np.array(corners)], color, cv2.LINE_AA)
    elif kind == 2:
        for ring, shade in ((1.0, color), (0.7, light), (0.4, color)):
            diamond = np.array([[0, -1], [1, 0], [0, 1], [-1, 0]]) * half * ring + center
            cv2.fillPoly(image, [diamond.round().astype(int)], shade, cv2.LINE_AA)
    else:
        for bar in range(4):
            x = left + bar * side_px // 4
            height = round(side_px * (0.4 + 0.2 * bar))
            cv2.rectangle(image, (x, top + side_px - height), (x + side_px // 6, top + side_px), color, -1)


def draw_barcode(image: np.ndarray, left_top: tuple[int, int], height_px: int, rng: np.random.Generator) -> None:
    """Bars of one to three modules, in place, as wide as five times their height."""
    left, top = left_top
    module = max(1, height_px // 20)
    x = left
    while x < left + 5 * height_px:
        bar, gap = (int(value) * module for value in rng.integers(1, 4, 2))
        image[top : top + height_px, x : x + bar] = 25
        x += bar + gap


def draw_signature(image: np.ndarray, left_top: tuple[int, int], width_px: int, rng: np.random.Generator) -> None:
    """A looping pen stroke, in place: looks written, says nothing."""
    left, top = left_top
    phase = np.linspace(0, rng.uniform(4, 6) * np.pi, 120)
    height = width_px * 0.16 * (0.5 + 0.5 * np.abs(np.sin(phase * rng.uniform(0.2, 0.4))))
    x = left + phase / phase[-1] * width_px * 0.85 + np.cos(phase) * width_px * 0.06
    y = top + width_px * 0.16 + np.sin(phase + rng.uniform(0, 3)) * height
    stroke = np.stack([x, y], axis=1).round().astype(np.int32)
    cv2.polylines(image, [stroke], False, (120, 60, 30), max(1, width_px // 90), cv2.LINE_AA)
