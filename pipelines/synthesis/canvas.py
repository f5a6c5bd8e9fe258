"""A page that knows where its text is: every string drawn leaves a region around its ink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import cv2
import numpy as np

from pipelines.records import TextRegion
from pipelines.synthesis.fonts import load_font

Color = tuple[int, int, int]
Align = Literal["left", "center", "right"]


@dataclass(frozen=True)
class TextStyle:
    """How a string looks.

    Attributes:
        font: font file.
        size_px: em size.
        color: BGR.
        tracking_px: extra space after each letter.
    """

    font: Path
    size_px: int
    color: Color = (30, 30, 30)
    tracking_px: int = 0


@dataclass(frozen=True, eq=False)
class Ink:
    """Drawn pixels of a string, cut to what is not blank.

    Attributes:
        coverage: uint8 (height, width); the first and last row and column hold ink.
        left_px: of the first column, from the pen's start.
        top_px: of the first row, from the baseline; negative is above.
    """

    coverage: np.ndarray
    left_px: int
    top_px: int


@lru_cache(maxsize=4096)
def ink_of(text: str, font: Path, size_px: int, tracking_px: int = 0) -> Ink:
    """The ink of a string, measured on the rendered pixels (font metrics leave room around it).

    Args:
        text: one line.
        font: font file.
        size_px: em size.
        tracking_px: extra space after each letter.

    Returns:
        Cached and shared, so read-only.

    Raises:
        ValueError: nothing to see in `text`.
    """
    face = load_font(font, size_px)
    pieces = [text] if tracking_px == 0 else list(text)
    placed, pen = [], 0.0
    for piece in pieces:
        mask, (left, top) = face.getmask2(piece, mode="L", anchor="ls")
        if mask.size[0] and mask.size[1]:
            coverage = np.frombuffer(bytes(mask), dtype=np.uint8).reshape(mask.size[1], mask.size[0])
            placed.append((coverage, round(pen) + left, top))
        pen += face.getlength(piece) + tracking_px
    if not any(coverage.any() for coverage, _, _ in placed):
        raise ValueError(f"text must have visible ink, but got {text!r}")
    return _joined(placed)


def _joined(placed: list[tuple[np.ndarray, int, int]]) -> Ink:
    """One ink of pieces at (left, top), trimmed."""
    left, top = min(x for _, x, _ in placed), min(y for _, _, y in placed)
    right = max(x + coverage.shape[1] for coverage, x, _ in placed)
    bottom = max(y + coverage.shape[0] for coverage, _, y in placed)
    whole = np.zeros((bottom - top, right - left), dtype=np.uint8)
    for coverage, x, y in placed:
        window = whole[y - top : y - top + coverage.shape[0], x - left : x - left + coverage.shape[1]]
        np.maximum(window, coverage, out=window)
    rows, columns = np.flatnonzero(whole.any(axis=1)), np.flatnonzero(whole.any(axis=0))
    trimmed = whole[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    trimmed.flags.writeable = False  # it is shared by the cache
    return Ink(trimmed, left + int(columns[0]), top + int(rows[0]))


def label_margin_px(size_px: float) -> int:
    """The space a careful labeller leaves around the ink: a pixel, two from 14 px letters on, a tenth of large ones."""
    return max(1 if size_px < 14 else 2, round(size_px / 12))


class Canvas:
    """A page being drawn, uint8 BGR, with the regions of its text in page pixels."""

    def __init__(self, size_hw: tuple[int, int], paper: Color = (255, 255, 255)) -> None:
        self.image = np.full((*size_hw, 3), paper, dtype=np.uint8)
        self.regions: list[TextRegion] = []

    def fitted(self, text: str, style: TextStyle, max_width_px: float) -> str:
        """`text` without the last words, then letters, that don't fit; at least one letter."""
        while len(text) > 1 and self.width_px(text, style) > max_width_px + 0.5:  # widths are sums of floats
            text = text.rpartition(" ")[0].rstrip(" ,&-:") or text[:-1].rstrip()
        return text

    def width_px(self, text: str, style: TextStyle) -> int:
        """Width of the ink."""
        return int(ink_of(text, style.font, style.size_px, style.tracking_px).coverage.shape[1])

    def text(self, text: str, x: float, baseline: float, style: TextStyle, align: Align = "left") -> None:
        """Draw a string whose ink starts, is centred or ends at x, and remember its region.

        Args:
            text: one line.
            x: of the ink's left end, middle or right end, page pixels.
            baseline: y of the baseline, page pixels.
            style: how it looks.
            align: which of these `x` is.

        Raises:
            ValueError: the ink would leave the page, so that its label could not be right.
        """
        ink = ink_of(text, style.font, style.size_px, style.tracking_px)
        height, width = ink.coverage.shape
        left = round(x - {"left": 0, "center": width / 2, "right": width}[align])
        top = round(baseline) + ink.top_px
        page_height, page_width = self.image.shape[:2]
        if left < 0 or top < 0 or left + width > page_width or top + height > page_height:
            raise ValueError(f"{text!r} at ({left}, {top}) must lie on the {page_width} x {page_height} page")
        _blend(self.image[top : top + height, left : left + width], ink.coverage, style.color)
        self._remember(text, left, top, width, height, label_margin_px(style.size_px))

    def turned_text(
        self, text: str, center: tuple[float, float], style: TextStyle, degrees: float, frame_px: int = 0
    ) -> None:
        """Draw a string turned about `center`, as a stamp, with a rectangle around it if `frame_px` > 0."""
        ink = ink_of(text, style.font, style.size_px, style.tracking_px)
        height, width = ink.coverage.shape
        margin = label_margin_px(style.size_px)
        room = margin + 4 * frame_px
        stamp = np.pad(ink.coverage, room)
        if frame_px:
            far = (stamp.shape[1] - 1 - frame_px, stamp.shape[0] - 1 - frame_px)
            cv2.rectangle(stamp, (frame_px, frame_px), far, 255, frame_px)
        turn = cv2.getRotationMatrix2D((0, 0), degrees, 1.0)
        turn[:, 2] = np.asarray(center) - turn[:, :2] @ (np.array(stamp.shape[::-1]) / 2)
        self._blend_turned(stamp, turn, style.color)
        corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float64) + room
        corners += np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * margin
        self.regions.append(TextRegion(corners @ turn[:, :2].T + turn[:, 2], text))

    def _blend_turned(self, coverage: np.ndarray, turn: np.ndarray, color: Color) -> None:
        """Paint a mask through a 2 x 3 map of corner-origin pixels, in the part of the page that it reaches."""
        height, width = coverage.shape
        corners = np.array([[0, 0], [width, 0], [width, height], [0, height]]) @ turn[:, :2].T + turn[:, 2]
        page_wh = np.array(self.image.shape[1::-1])
        left, top = np.clip(np.floor(corners.min(axis=0)).astype(int) - 1, 0, page_wh)
        right, bottom = np.clip(np.ceil(corners.max(axis=0)).astype(int) + 1, 0, page_wh)
        # Labels have their origin at the corner of the first pixel, cv2 at its middle: half a pixel apart.
        by_centers = turn.copy()
        by_centers[:, 2] += turn[:, :2] @ (0.5, 0.5) - 0.5 - (left, top)
        window = self.image[top:bottom, left:right]
        _blend(window, cv2.warpAffine(coverage, by_centers, window.shape[1::-1], flags=cv2.INTER_LINEAR), color)

    def redraw_as_ignored(self, index: int, change: Callable[[np.ndarray], np.ndarray]) -> None:
        """Change the pixels of a region so that nobody can read it, and make it an ignore region."""
        region = self.regions[index]
        left, top = np.maximum(np.floor(region.points_px.min(axis=0)).astype(int), 0)
        right, bottom = np.ceil(region.points_px.max(axis=0)).astype(int)
        window = self.image[top:bottom, left:right]
        window[:] = change(window)
        self.regions[index] = replace(region, transcription="###", is_ignored=True)

    def _remember(self, text: str, left: int, top: int, width: int, height: int, margin: int) -> None:
        page_height, page_width = self.image.shape[:2]
        x0, y0 = max(left - margin, 0), max(top - margin, 0)
        x1, y1 = min(left + width + margin, page_width), min(top + height + margin, page_height)
        self.regions.append(TextRegion(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=np.float32), text))


def _blend(window: np.ndarray, coverage: np.ndarray, color: Color) -> None:
    """Paint `color` into `window` (a view of the page) as far as `coverage` says."""
    alpha = coverage[..., None].astype(np.float32) / 255
    window[:] = np.rint(window * (1 - alpha) + np.asarray(color, dtype=np.float32) * alpha).astype(np.uint8)
