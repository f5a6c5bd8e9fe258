"""How an image becomes defects: scale, tiles, network, suppression of doubles, merging of tiles.

One definition for training's evaluation, for `predict` and for the exported model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
import paddle

from pipelines.defect_detection.network import STRIDE_PX, Detector
from pipelines.records import DefectPrediction
from pipelines.tiles import merge_tiles, tile_grid
from pipelines.tiles.scale import ScaleRule

Window = tuple[int, int, int, int]
PADDING_GREY = 114
_NMS_TOP_K = 1000


@dataclass(frozen=True)
class Setting:
    """What the network sees of an image, and which of its findings are kept.

    Attributes:
        scale: network pixels per image pixel.
        tile_px: scaled images with a longer side are looked at in tiles of this side, a multiple of 32.
        overlap_px: of neighbouring tiles, at least.
        confidence_floor: findings below it are not kept; metrics over all thresholds need a low one.
        nms_iou: of two findings of one class that overlap more, the less confident goes.
        max_detections: kept in one tile.
    """

    scale: ScaleRule = ScaleRule()  # noqa: RUF009 (frozen)
    tile_px: int = 640
    overlap_px: int = 128
    confidence_floor: float = 0.01
    nms_iou: float = 0.6
    max_detections: int = 100

    def detect(self, network: Detector, image: np.ndarray) -> DefectPrediction:
        """Defects in an image, uint8 BGR (height, width, 3), in its pixels."""
        return self.detect_with(lambda batch: dense_findings(network, batch), image)

    def detect_with(
        self, run: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], image: np.ndarray
    ) -> DefectPrediction:
        """The same with any runtime.

        Args:
            run: uint8 (1, height, width, 3) to boxes (a, 4) in its pixels and scores (c, a).
            image: uint8 BGR (height, width, 3).
        """
        scaled = resized(image, self.scale.of((image.shape[0], image.shape[1])))
        size_hw = (scaled.shape[0], scaled.shape[1])
        windows = tile_grid(size_hw, (self.tile_px, self.tile_px), self.overlap_px)
        found = [self._in_window(run, scaled, window) for window in windows]
        merged = found[0] if len(windows) == 1 else merge_tiles(found, windows, size_hw)
        limits = np.array([image.shape[1], image.shape[0]] * 2, np.float32)
        factors = limits / np.array([size_hw[1], size_hw[0]] * 2, np.float32)
        boxes = np.clip(merged.boxes_xyxy_px * factors, 0, limits)
        return DefectPrediction(boxes, merged.class_ids, merged.confidences)

    def _in_window(
        self, run: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], scaled: np.ndarray, window: Window
    ) -> DefectPrediction:
        left, top, right, bottom = window
        view = padded(scaled[top:bottom, left:right])
        boxes, scores = run(view[None])
        boxes = np.clip(boxes, 0, np.array([right - left, bottom - top] * 2, np.float32))
        return suppressed(boxes, scores, self.confidence_floor, self.nms_iou, self.max_detections)


def resized(image: np.ndarray, scale: float) -> np.ndarray:
    """The image at a scale; smaller by area means, so that thin defects stay visible."""
    if scale == 1.0:
        return image
    size_wh = tuple(max(1, round(side * scale)) for side in (image.shape[1], image.shape[0]))
    return cv2.resize(image, size_wh, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)


def padded(view: np.ndarray) -> np.ndarray:
    """Grey to the right and below, up to sides that are multiples of 32."""
    missing = [-side % STRIDE_PX for side in view.shape[:2]]
    if not any(missing):
        return view
    widths = [(0, missing[0]), (0, missing[1]), (0, 0)]
    return np.pad(view, widths, constant_values=PADDING_GREY)


@paddle.no_grad()
def dense_findings(network: Detector, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (a, 4) in pixels and scores (c, a), float32, of one image (1, height, width, 3)."""
    dense = network(paddle.to_tensor(images))
    scores = dense.scores[0].transpose([1, 0])
    return dense.boxes_px[0].astype("float32").numpy(), scores.astype("float32").numpy()


def suppressed(
    boxes: np.ndarray, scores: np.ndarray, floor: float, iou: float, max_detections: int
) -> DefectPrediction:
    """Non-maximum suppression within each class, the most confident first; the box count stays as it comes."""
    # ppdet's own helper fails under paddle 3's intermediate representation; the kernel itself is fine
    kept, _, _ = paddle._C_ops.multiclass_nms3(
        paddle.to_tensor(boxes[None]),
        paddle.to_tensor(scores[None]),
        None,
        floor,
        _NMS_TOP_K,
        max_detections,
        iou,
        False,  # pixel boxes, not normalised ones
        1.0,
        -1,  # no class is background
    )
    rows = kept.numpy().reshape(-1, 6)
    order = np.argsort(-rows[:, 1], kind="stable")
    rows = rows[order]
    return DefectPrediction(rows[:, 2:], rows[:, 0].astype(np.int64), rows[:, 1])
