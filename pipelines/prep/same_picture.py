"""Whether two pictures show one and the same thing: laid over each other and compared place by place.

A second scan, a copy that was saved smaller, darker or coarser is the same picture. Two invoices on one form, or two
parts in one fixture, are not: they agree nearly everywhere, and somewhere they don't.
"""

from __future__ import annotations

import cv2
import numpy as np

COARSE_SIDE_PX, FINE_SIDE_PX = 384, 768
"""At the coarse side most pairs are told apart at a fifth of the price; at the fine side digits of a page are."""
SAME_FROM = 0.998
"""Share of agreeing places. Second scans have 1; receipts of one shop that differ in date, number and sum .993."""
_COARSE_FROM = 0.95
_WINDOW_PX = 11
_AGREES_FROM = 0.5
_LEAST_LEVELS = 6.0
"""Grey levels (standard deviation) that a place must vary by: what varies less is paper, light and noise."""
_LEAST_STRUCTURE = 0.005
_LEAST_SIDE_PX = 4 * _WINDOW_PX
_ASPECT_TOLERANCE = 0.06


def agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Share of the places with any structure at which two pictures agree, 0 to 1; 0 where that can't be said.

    The second is laid over the first by the affine map of the highest correlation (Evangelidis and Psarakis 2008,
    OpenCV's `findTransformECC`). A place is a window of 11 px; it agrees where the correlation of the two is 0.5 or
    more, so that light, contrast and sharpness do not count. The margin, where a second scan may show another part, is
    left out.

    Args:
        first: uint8 (h, w), at least `FINE_SIDE_PX` on its longest side if there is so much.
        second: uint8 (h', w') of about the same aspect ratio.
    """
    height, width = first.shape
    if abs(np.log(width / height * second.shape[0] / second.shape[1])) > _ASPECT_TOLERANCE:
        return 0.0
    longest = min(FINE_SIDE_PX, max(height, width))
    matrix: np.ndarray = np.eye(2, 3, dtype=np.float32)
    shared = 0.0
    # From coarse to fine: each map starts where the last one ended, and most pairs end at the first.
    for side in sorted({min(COARSE_SIDE_PX, longest), longest}):
        size_wh = tuple(max(1, round(s * side / max(height, width))) for s in (width, height))
        if min(size_wh) < _LEAST_SIDE_PX:
            continue
        pair = [cv2.resize(one, size_wh, interpolation=cv2.INTER_AREA) for one in (first, second)]
        found = _aligned(pair[0], pair[1], matrix, side)
        if found is None:
            return 0.0
        matrix = found
        shared = _agreeing_share(pair[0], _laid_over(pair[1], matrix, side))
        if shared < _COARSE_FROM:
            return shared
    return shared


def _aligned(first: np.ndarray, second: np.ndarray, matrix: np.ndarray, side: int) -> np.ndarray | None:
    """The map of units of the longest side that lays `second` over `first`, from a first guess; None if none is."""
    # Half size is enough: the maximum is found to a tenth of a pixel.
    halves = [cv2.resize(one, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for one in (first, second)]
    guess = matrix.copy()
    guess[:, 2] *= side / 2
    stop = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 30, 1e-4)
    try:
        _, found = cv2.findTransformECC(halves[0], halves[1], guess, cv2.MOTION_AFFINE, stop, None, 5)
    except cv2.error:  # does not converge: nothing in common, or nothing to see
        return None
    result: np.ndarray = found.copy()
    result[:, 2] /= side / 2
    return result


def _laid_over(picture: np.ndarray, matrix: np.ndarray, side: int) -> np.ndarray:
    in_px = matrix.copy()
    in_px[:, 2] *= side
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpAffine(picture, in_px, picture.shape[::-1], flags=flags, borderMode=cv2.BORDER_REPLICATE))


def _agreeing_share(first: np.ndarray, second: np.ndarray) -> float:
    """Of all windows with structure in either picture, those whose correlation is high; 0 where there are too few."""
    a, b = (cv2.GaussianBlur(one.astype(np.float32), (0, 0), 1.0) for one in (first, second))

    def mean(values: np.ndarray) -> np.ndarray:
        return np.asarray(cv2.boxFilter(values, -1, (_WINDOW_PX, _WINDOW_PX)))

    mean_a, mean_b = mean(a), mean(b)
    variance_a, variance_b = mean(a * a) - mean_a**2, mean(b * b) - mean_b**2
    covariance = mean(a * b) - mean_a * mean_b
    has_structure = np.maximum(variance_a, variance_b) > _LEAST_LEVELS**2
    agrees = covariance >= _AGREES_FROM * np.sqrt(np.maximum(variance_a, 1) * np.maximum(variance_b, 1))
    margin = max(_WINDOW_PX, round(0.03 * max(first.shape)))
    inner = (slice(margin, -margin), slice(margin, -margin))
    structured = int(has_structure[inner].sum())
    if structured < _LEAST_STRUCTURE * has_structure.size:
        return 0.0
    return float((agrees & has_structure)[inner].sum() / structured)
