"""Places that look like lines of text and lie in no label: a guess, good enough to show a person where to look."""

from __future__ import annotations

import cv2
import numpy as np

_HEIGHT_PX = 12
"""The page is shrunk until its text has this height: then letters join to lines, and dust is gone."""
_DARKER_BY = 15
_HEIGHTS = (0.6, 1.7)
_LEAST_WIDTH = 2.0
_FILLS = (0.2, 0.75)
_MARGIN = 0.35
_MOST = 50
_LEAST_STROKES = 3
_STROKES_A_SQUARE = 0.5
_LEAST_HIGH_SHARE = 0.4
_LEAST_LEVELS = 12.0  # standard deviation of grey levels: print has 14 and more, stained paper 8


def unlabelled_text(grey: np.ndarray, boxes_xyxy_px: np.ndarray, line_px: float) -> np.ndarray:
    """Boxes round what looks like a line of text outside all labels, the largest first.

    Dark marks are joined sideways, as letters are to words; what then has about the height of the labelled text, is
    wider than high, is neither solid nor mostly empty, and has several strokes side by side is taken for text. So are
    rows of asterisks and barcodes: the model will find them too.

    Args:
        grey: uint8 (h, w).
        boxes_xyxy_px: float32 (n, 4), all labels, ignore regions too.
        line_px: the usual height of text.

    Returns:
        float32 (m, 4), at most 50; pixels of the image.
    """
    scale = min(1.0, _HEIGHT_PX / line_px)
    height = line_px * scale
    small = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA) if scale < 1 else grey
    ink = _ink_outside(small, boxes_xyxy_px * scale, height)
    joined = cv2.morphologyEx(ink, cv2.MORPH_CLOSE, np.ones((1, max(3, round(height))), np.uint8))
    _, places, stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    left, top, wide, high = (stats[:, column].astype(np.float32) for column in range(4))
    num_ink = np.bincount(places.ravel(), weights=(ink.ravel() > 0), minlength=len(stats))
    fill = num_ink / (wide * high)
    is_text = (high >= _HEIGHTS[0] * height) & (high <= _HEIGHTS[1] * height) & (wide >= _LEAST_WIDTH * height)
    is_text &= (fill >= _FILLS[0]) & (fill <= _FILLS[1])
    is_text[0] = False  # the paper
    at_edge = (top == 0) | (top + high == small.shape[0])
    is_text &= ~(at_edge & (wide > small.shape[1] / 2))  # the dark border of a scan
    found = np.flatnonzero(is_text)
    found = found[np.argsort(-wide[found] * high[found], kind="stable")][:_MOST]
    found = np.array([i for i in found if _is_written(ink, small, stats[i])], np.int64)
    return np.stack([left, top, left + wide, top + high], axis=1)[found] / np.float32(scale)


def _is_written(ink: np.ndarray, small: np.ndarray, stats: np.ndarray) -> bool:
    """Whether a place has the strokes of letters: several side by side, many of them about as high as the line.

    A slanted rule and a shade have one stroke a row, or low ones.
    """
    left, top, wide, high = stats[:4].tolist()
    place = (slice(top, top + high), slice(left, left + wide))
    marks = np.pad(ink[place] > 0, ((0, 0), (1, 0)))
    strokes = (marks[:, 1:] & ~marks[:, :-1]).sum(axis=1)
    inked = marks[:, marks.any(axis=0)]
    extents = high - inked.argmax(axis=0) - inked[::-1].argmax(axis=0)
    is_high = (extents >= high / 2).mean() >= _LEAST_HIGH_SHARE
    least = max(_LEAST_STROKES, _STROKES_A_SQUARE * wide / high)
    return bool(is_high and np.median(strokes[strokes > 0]) >= least and small[place].std() >= _LEAST_LEVELS)


def _ink_outside(small: np.ndarray, boxes: np.ndarray, height: float) -> np.ndarray:
    """uint8 (h, w), 255 where a pixel is darker than its surroundings and in no label."""
    block = 2 * round(1.5 * height) + 1
    ink = cv2.adaptiveThreshold(small, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, block, _DARKER_BY)
    for left, top, right, bottom in boxes.tolist():
        margin = _MARGIN * height  # a tight label leaves the ends of letters outside
        rows = slice(max(0, int(top - margin)), max(0, int(np.ceil(bottom + margin))))
        ink[rows, max(0, int(left - margin)) : max(0, int(np.ceil(right + margin)))] = 0
    return np.asarray(ink)
