"""How an image becomes defects: scale, tiles, network, suppression of doubles, merging of tiles.

One definition for training's evaluation, for `predict` and for the exported model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

import cv2
import numpy as np
import paddle

from pipelines.defect_detection.network import STRIDE_PX, Detector
from pipelines.records import DefectPrediction
from pipelines.tiles import merge_tiles, tile_grid
from pipelines.tiles.scale import ScaleRule

Find = Callable[[np.ndarray], DefectPrediction]
"""From a view, uint8 BGR (height, width, 3) with sides that are multiples of 32, to what is in it, in its pixels."""
PADDING_GREY = 114
_NMS_TOP_K = 1000
_VIEW_NAMES = ("tile", "overlap", "confidence_floor", "nms_iou", "max_detections")
"""Of the fields after `scale`, in their order."""


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

    @classmethod
    def from_view(cls, values: Mapping[str, Any]) -> Setting:
        """From the names that a configuration's `evaluate.view` and an exported model have for it.

        Raises:
            KeyError: a name is missing.
        """
        scale = ScaleRule(values["scale"], values["longest_side"])
        return cls(scale, *(values[name] for name in _VIEW_NAMES))

    def to_view(self) -> dict[str, Any]:
        """What `from_view` takes."""
        scale = {"scale": self.scale.scale, "longest_side": self.scale.longest_side_px}
        return {**scale, **dict(zip(_VIEW_NAMES, astuple(self)[1:], strict=True))}

    @property
    def side_px(self) -> int:
        """Longest side of what the network sees at once."""
        return min(self.tile_px, self.scale.longest_side_px or self.tile_px)

    def detect(self, network: Detector, image: np.ndarray) -> DefectPrediction:
        """Defects in an image, uint8 BGR (height, width, 3), in its pixels."""
        return self.detect_with(self.finder(network), image)

    def detect_with(self, find: Find, image: np.ndarray) -> DefectPrediction:
        """The same with any runtime."""
        scaled = resized(image, self.scale.of((image.shape[0], image.shape[1])))
        size_hw = (scaled.shape[0], scaled.shape[1])
        windows = tile_grid(size_hw, (self.tile_px, self.tile_px), self.overlap_px)
        found = [in_view(find, scaled[top:bottom, left:right]) for left, top, right, bottom in windows]
        merged = found[0] if len(windows) == 1 else merge_tiles(found, windows, size_hw)
        limits = np.array([image.shape[1], image.shape[0]] * 2, np.float32)
        factors = limits / np.array([size_hw[1], size_hw[0]] * 2, np.float32)
        boxes = np.clip(merged.boxes_xyxy_px * factors, 0, limits)
        return DefectPrediction(boxes, merged.class_ids, merged.confidences)

    def view_shapes(self, size_hw: tuple[int, int]) -> list[tuple[int, int]]:
        """(height, width) of everything the network sees of an image of this size, padding included."""
        scale = self.scale.of(size_hw)
        scaled = size_hw if scale == 1.0 else tuple(max(1, round(side * scale)) for side in size_hw)
        windows = tile_grid((scaled[0], scaled[1]), (self.tile_px, self.tile_px), self.overlap_px)
        sizes = [(int(bottom - top), int(right - left)) for left, top, right, bottom in windows]
        return [(height + -height % STRIDE_PX, width + -width % STRIDE_PX) for height, width in sizes]

    def finder(self, network: Detector) -> Find:
        """The network with its suppression of doubles."""

        @paddle.no_grad()
        def find(view: np.ndarray) -> DefectPrediction:
            dense = network(paddle.to_tensor(view[None]))
            rows, _ = self.suppressed(dense.boxes_px.astype("float32"), dense.scores.astype("float32"))
            return as_prediction(rows.numpy())

        return find

    def suppressed(self, boxes_px: paddle.Tensor, scores: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        """Non-maximum suppression within each class.

        Args:
            boxes_px: float32 (n, a, 4).
            scores: float32 (n, a, c).

        Returns:
            Rows (k, 6) of all n images: class id, confidence, left, top, right, bottom; and int32 (n,), rows of each.
        """
        # ppdet's own helper fails under paddle 3's intermediate representation; the kernel itself is fine
        rows, _, counts = paddle._C_ops.multiclass_nms3(
            boxes_px,
            scores.transpose([0, 2, 1]),
            None,
            self.confidence_floor,
            _NMS_TOP_K,
            self.max_detections,
            self.nms_iou,
            True,  # sides are coordinates, not the last pixel: a width is right - left, at any scale
            1.0,
            -1,  # no class is background
        )
        return rows, counts


def in_view(find: Find, view: np.ndarray) -> DefectPrediction:
    """What is found in one view, uint8 BGR (height, width, 3); boxes end at its sides, those in the padding go."""
    found = find(padded(view))
    boxes = np.clip(found.boxes_xyxy_px, 0, np.array([view.shape[1], view.shape[0]] * 2, np.float32))
    kept = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    return DefectPrediction(boxes[kept], found.class_ids[kept], found.confidences[kept])


def as_prediction(rows: np.ndarray) -> DefectPrediction:
    """Rows of one image as `Setting.suppressed` gives them, the most confident first."""
    rows = rows.reshape(-1, 6)
    rows = rows[np.argsort(-rows[:, 1], kind="stable")]
    return DefectPrediction(rows[:, 2:], rows[:, 0].astype(np.int64), rows[:, 1])


def resized(image: np.ndarray, scale: float) -> np.ndarray:
    """The image at a scale; smaller by area means, so that thin defects stay visible."""
    if scale == 1.0:
        return image
    size_wh = tuple(max(1, round(side * scale)) for side in (image.shape[1], image.shape[0]))
    return cv2.resize(image, size_wh, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)


def padded(view: np.ndarray, side_px: int | None = None) -> np.ndarray:
    """Grey to the right and below, up to a square of `side_px`, or up to sides that are multiples of 32."""
    missing = [-side % STRIDE_PX if side_px is None else side_px - side for side in view.shape[:2]]
    if not any(missing):
        return view
    widths = [(0, missing[0]), (0, missing[1]), (0, 0)]
    return np.pad(view, widths, constant_values=PADDING_GREY)
