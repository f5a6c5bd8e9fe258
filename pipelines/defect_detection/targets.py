"""Targets of a sample: its boxes in arrays of one length, so that samples stack. Numpy only: loader workers run it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipelines.errors import DataError
from pipelines.records import DefectAnnotation, Sample

PADDING, DEFECT, IGNORED = 0, 1, 2
"""What a row of the targets is."""


@dataclass(frozen=True)
class DefectTargets:
    """Draws targets.

    Attributes:
        max_boxes: rows of the arrays, at least the most boxes that any image has.
        num_classes: class ids must be below it.
    """

    max_boxes: int
    num_classes: int

    def __call__(self, image: np.ndarray, annotation: DefectAnnotation, source: str) -> Sample:
        """One sample.

        Args:
            image: uint8 (height, width, 3), BGR.
            annotation: in its pixels.
            source: the file, for messages.

        Returns:
            Targets `boxes` float32 (max_boxes, 4) in pixels, `class_ids` int64 and `kinds` int64 (max_boxes,).

        Raises:
            DataError: more boxes than `max_boxes`, or a class that the network does not have.
        """
        num_boxes = len(annotation.boxes_xyxy_px)
        if num_boxes > self.max_boxes:
            raise DataError(f"{source}: {num_boxes} boxes, but at most {self.max_boxes} were announced")
        if num_boxes and not 0 <= annotation.class_ids.min() <= annotation.class_ids.max() < self.num_classes:
            raise DataError(f"{source}: class ids must be below {self.num_classes}, but are {annotation.class_ids}")
        boxes = np.zeros((self.max_boxes, 4), np.float32)
        class_ids, kinds = np.zeros((2, self.max_boxes), np.int64)
        boxes[:num_boxes] = annotation.boxes_xyxy_px
        class_ids[:num_boxes] = annotation.class_ids
        kinds[:num_boxes] = np.where(annotation.is_ignored, IGNORED, DEFECT)
        return Sample(image, {"boxes": boxes, "class_ids": class_ids, "kinds": kinds}, source)
