"""What a scanner or a phone does to a page: geometry first, then light, blur, noise and compression."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from pipelines.records import TextRegion

JPEG_QUALITY_RANGE = (60, 93)


@dataclass(frozen=True)
class ScanEffects:
    """How far a scan may be from the clean page.

    Attributes:
        max_rotation_degrees: either way, about the middle.
        max_perspective: how far a corner may move, as a share of the sides.
        strength: 0 leaves light, sharpness and noise as they are; 1 is an ordinary scan.
    """

    max_rotation_degrees: float = 3.0
    max_perspective: float = 0.008
    strength: float = 1.0


def draw_homography(rng: np.random.Generator, size_hw: tuple[int, int], effects: ScanEffects) -> np.ndarray:
    """A 3 x 3 map of page pixels to scan pixels, corner origin: perspective, then rotation about the middle."""
    height, width = size_hw
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], dtype=np.float32)
    moved = corners + rng.uniform(-1, 1, (4, 2)) * effects.max_perspective * np.array([width, height])
    perspective = cv2.getPerspectiveTransform(corners, moved.astype(np.float32))
    degrees = float(rng.uniform(-1, 1)) * effects.max_rotation_degrees
    rotation = np.vstack([cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.0), [0, 0, 1]])
    return np.asarray(rotation @ perspective)


def project_points(points: np.ndarray, homography: np.ndarray) -> np.ndarray:
    """(n, 2) points through a 3 x 3 map, float64."""
    projected = np.column_stack([points, np.ones(len(points))]) @ homography.T
    return np.asarray(projected[:, :2] / projected[:, 2:])


def keep_inside(homography: np.ndarray, points: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """The map, shrunk about the middle of the frame just so far that all `points` land inside it."""
    middle = np.array(size_hw[::-1]) / 2
    reach = np.abs(project_points(points, homography) - middle).max(axis=0) / middle
    scale = min(1.0, 0.999 / float(reach.max()))  # not to the very edge: float32 may round beyond it
    shrink = np.array([[scale, 0, middle[0] * (1 - scale)], [0, scale, middle[1] * (1 - scale)], [0, 0, 1]])
    return np.asarray(shrink @ homography)


def warp(
    image: np.ndarray, regions: list[TextRegion], homography: np.ndarray, border: tuple[int, int, int]
) -> tuple[np.ndarray, list[TextRegion]]:
    """Page and regions through the same map, onto a frame of the page's size.

    Args:
        image: uint8 (height, width, 3).
        regions: in page pixels.
        homography: 3 x 3, corner origin.
        border: colour beyond the page's edge.

    Returns:
        The moved page, and its regions in pixels of the frame.
    """
    # cv2 counts from the middle of the first pixel, labels from its corner.
    to_corner = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    by_centers = np.linalg.inv(to_corner) @ homography @ to_corner
    size_wh = (image.shape[1], image.shape[0])
    warped = cv2.warpPerspective(image, by_centers, size_wh, flags=cv2.INTER_CUBIC, borderValue=border)
    moved = [replace(region, points_px=project_points(region.points_px, homography)) for region in regions]
    return warped, moved


def age(image: np.ndarray, rng: np.random.Generator, strength: float) -> np.ndarray:
    """Paper tint, uneven light, blur, grain and JPEG losses; uint8 BGR, nothing moves."""
    height, width = image.shape[:2]
    tint = 1 - strength * rng.uniform(0, 1, 3).astype(np.float32) * np.array([0.14, 0.07, 0.05], dtype=np.float32)
    light = 1 - strength * rng.uniform(0, 0.16, (3, 3)).astype(np.float32)
    shade = cv2.resize(light, (width, height), interpolation=cv2.INTER_CUBIC)
    sigma = strength * rng.uniform(0.2, 0.75) * max(1.0, min(height, width) / 700)
    blurred = cv2.GaussianBlur(image, (0, 0), sigma) if sigma > 0 else image
    grain = rng.standard_normal((height, width), dtype=np.float32) * (strength * rng.uniform(2, 8))
    aged = blurred.astype(np.float32)
    aged *= tint
    aged *= shade[..., None]
    aged += grain[..., None]
    quality = round(100 - strength * (100 - int(rng.integers(*JPEG_QUALITY_RANGE))))
    return through_jpeg(np.clip(aged, 0, 255, out=aged).astype(np.uint8), quality)


def through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    """The image after JPEG compression at `quality` (1 to 100)."""
    _, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR))


def smear(window: np.ndarray) -> np.ndarray:
    """A line wiped along its direction until nobody can read it; uint8, same shape."""
    height, width = window.shape[:2]
    return cv2.blur(window, (max(3, min(width, 3 * height)) | 1, 3))
