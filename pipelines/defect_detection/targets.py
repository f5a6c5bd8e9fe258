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
        max_boxes: at least the most boxes that any image has; rows of the arrays, which have one even if it is 0
            (ppdet's assigner has another form of answer for none).
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
            Targets, m = max(max_boxes, 1): `boxes` float32 (m, 4) in pixels, `class_ids` and `kinds` int64 (m,).

        Raises:
            DataError: more boxes than `max_boxes`, or a class that the network does not have.
        """
        num_boxes = len(annotation.boxes_xyxy_px)
        if num_boxes > self.max_boxes:
            raise DataError(f"{source}: {num_boxes} boxes, but at most {self.max_boxes} were announced")
        if num_boxes and not 0 <= annotation.class_ids.min() <= annotation.class_ids.max() < self.num_classes:
            ids = annotation.class_ids.tolist()
            raise DataError(f"{source}: class ids must be 0 to {self.num_classes - 1}, but are {ids}")
        num_rows = max(self.max_boxes, 1)
        boxes = np.zeros((num_rows, 4), np.float32)
        class_ids, kinds = np.zeros((2, num_rows), np.int64)
        boxes[:num_boxes] = annotation.boxes_xyxy_px
        class_ids[:num_boxes] = annotation.class_ids
        kinds[:num_boxes] = np.where(annotation.is_ignored, IGNORED, DEFECT)
        return Sample(image, {"boxes": boxes, "class_ids": class_ids, "kinds": kinds}, source)
