"""The values that travel between the parts: typed, checked once, never changed by who receives them.

Coordinates are pixels of the image the value belongs to, (x, y), origin at the top-left corner of the
top-left pixel. Image sizes are (height, width). Images are uint8 BGR, (height, width, 3), as OpenCV and
PaddleOCR have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class TextRegion:
    """One text line.

    Attributes:
        points_px: polygon, float32 (n, 2) with n >= 3, in order around the region.
        transcription: what it says; not used for detection, kept for the user.
        is_ignored: an ignore region; a prediction on it costs and earns nothing.
    """

    points_px: np.ndarray
    transcription: str = ""
    is_ignored: bool = False

    def __post_init__(self) -> None:
        points = np.asarray(self.points_px, dtype=np.float32)
        if points.ndim != 2 or points.shape[0] < 3 or points.shape[1] != 2:
            raise ValueError(f"points_px must have shape (n >= 3, 2), but got shape {points.shape}")
        if not np.isfinite(points).all():
            raise ValueError("points_px must be finite, but holds nan or inf")
        object.__setattr__(self, "points_px", points)


@dataclass(frozen=True)
class TextAnnotation:
    """All text regions of one image."""

    regions: tuple[TextRegion, ...] = ()


@dataclass(frozen=True, eq=False)
class DefectAnnotation:
    """All defects of one image; an OK image has none.

    Attributes:
        boxes_xyxy_px: float32 (n, 4): left, top, right, bottom, each box with an area.
        class_ids: int64 (n,), zero-based positions in the dataset's list of class names.
        is_ignored: bool (n,): ignore regions (crowds, objects that were cut), neither defect nor background.
    """

    boxes_xyxy_px: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.float32))
    class_ids: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    is_ignored: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    def __post_init__(self) -> None:
        boxes = _boxes(self.boxes_xyxy_px)
        object.__setattr__(self, "boxes_xyxy_px", boxes)
        object.__setattr__(self, "class_ids", _one_each(self.class_ids, boxes, np.int64, "class_ids"))
        object.__setattr__(self, "is_ignored", _one_each(self.is_ignored, boxes, bool, "is_ignored"))
        if not (boxes[:, 2:] > boxes[:, :2]).all():
            worst = boxes[int((boxes[:, 2:] - boxes[:, :2]).min(axis=1).argmin())]
            raise ValueError(f"every box needs left < right and top < bottom, but got {worst.tolist()}")

    @property
    def is_ok(self) -> bool:
        """Whether the image is without any defect (it may hold ignore regions)."""
        return bool(self.is_ignored.all())


@dataclass(frozen=True, eq=False)
class DefectPrediction:
    """Defects found in one image, the most confident first.

    Attributes:
        boxes_xyxy_px: float32 (n, 4): left, top, right, bottom in pixels of the source image.
        class_ids: int64 (n,), as in `DefectAnnotation`.
        confidences: float32 (n,), 0 to 1.
    """

    boxes_xyxy_px: np.ndarray
    class_ids: np.ndarray
    confidences: np.ndarray

    def __post_init__(self) -> None:
        boxes = _boxes(self.boxes_xyxy_px)
        object.__setattr__(self, "boxes_xyxy_px", boxes)
        object.__setattr__(self, "class_ids", _one_each(self.class_ids, boxes, np.int64, "class_ids"))
        object.__setattr__(self, "confidences", _one_each(self.confidences, boxes, np.float32, "confidences"))

    def __len__(self) -> int:
        return len(self.boxes_xyxy_px)


def _boxes(values: np.ndarray) -> np.ndarray:
    boxes = np.asarray(values, dtype=np.float32)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes_xyxy_px must have shape (n, 4), but got shape {boxes.shape}")
    if not np.isfinite(boxes).all():
        raise ValueError("boxes_xyxy_px must be finite, but holds nan or inf")
    return boxes


def _one_each(values: np.ndarray, boxes: np.ndarray, dtype: type, name: str) -> np.ndarray:
    array: np.ndarray = np.asarray(values, dtype=dtype)
    if array.shape != (len(boxes),):
        raise ValueError(f"{name} must have shape ({len(boxes)},), one a box, but got shape {array.shape}")
    return array


@dataclass(frozen=True)
class Record:
    """One image of a dataset with its annotation.

    Attributes:
        path: image file, relative to the dataset root, with forward slashes.
        size_hw: (height, width) in pixels.
        annotation: the task's annotation value (`TextAnnotation`, `DefectAnnotation`).
        group: what must not straddle splits (a document, a board, a roll).
        view_xyxy_px: the part of the image that a training sample shows, in its pixels; None: all of it.
    """

    path: str
    size_hw: tuple[int, int]
    annotation: Any
    group: str = ""
    view_xyxy_px: tuple[int, int, int, int] | None = None


@dataclass(frozen=True)
class Fault:
    """One finding about the user's data.

    Attributes:
        file: as the user knows it.
        line: 1-based line of `file`, or None.
        item: what in that line or file ("region 3", "box 12"), or "".
        reason: what is wrong, with what was expected and what came.
        action: "error" (can't be used), "dropped", "repaired" or "warning".
        image: of a dataset's fault the image that it belongs to, relative to the root; "" where it belongs to none.
        repair: what mends it, or "".
    """

    file: str
    reason: str
    action: str
    line: int | None = None
    item: str = ""
    image: str = ""
    repair: str = ""

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        told = f"{where}: {self.item + ': ' if self.item else ''}{self.reason} [{self.action}]"
        return f"{told}; {self.repair}" if self.repair else told


@dataclass(frozen=True, eq=False)
class Sample:
    """One image with its targets after transforms.

    Attributes:
        image: uint8 (height, width, 3), BGR; both sides multiples of 32.
        targets: named arrays, each with the image's height and width first (or task-defined).
        source: the file it came from, for messages.
    """

    image: np.ndarray
    targets: Mapping[str, np.ndarray]
    source: str = ""


@dataclass(frozen=True, eq=False)
class MicroBatch:
    """What one forward and backward sees: samples of one shape, stacked.

    Attributes:
        images: uint8 (n, height, width, 3), BGR.
        targets: named arrays, each with n first.
        sources: the n files, for messages.
    """

    images: np.ndarray
    targets: Mapping[str, np.ndarray] = field(default_factory=dict)
    sources: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.images.shape[0])

    @property
    def shape_hw(self) -> tuple[int, int]:
        return int(self.images.shape[1]), int(self.images.shape[2])

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> MicroBatch:
        """Stack samples that share one shape."""
        shapes = {sample.image.shape for sample in samples}
        if len(shapes) != 1:
            raise ValueError(f"a micro-batch needs samples of one shape, but got {sorted(shapes)}")
        names = samples[0].targets.keys()
        return cls(
            images=np.stack([sample.image for sample in samples]),
            targets={name: np.stack([sample.targets[name] for sample in samples]) for name in names},
            sources=tuple(sample.source for sample in samples),
        )


@dataclass(frozen=True, eq=False)
class TextPrediction:
    """Text found in one image.

    Attributes:
        polygons_px: float32 (k, 2) each, in pixels of the source image.
        confidences: float32 (n,), 0 to 1.
    """

    polygons_px: tuple[np.ndarray, ...]
    confidences: np.ndarray
