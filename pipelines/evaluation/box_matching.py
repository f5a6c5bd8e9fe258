"""Which detection found which object: COCO's rule at one IoU, and the pairs of other classes that it leaves.

The rule is that of pycocotools' `COCOeval.evaluateImg`: the most confident detection first, each takes the free
object of its class with the highest IoU, if that is at least the threshold. A detection without an object, of which
at least that share of its own area lies in an ignore region of its class, costs and earns nothing. A match depends
only on more confident detections, so one matching holds for every confidence threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.evaluation.overlap import iou_matrix
from pipelines.geometry import box_areas, box_intersections
from pipelines.records import DefectAnnotation, DefectPrediction


@dataclass(frozen=True, eq=False)
class ImageMatch:
    """One image after matching; detections are in falling order of confidence.

    Attributes:
        confidences: float64 (n,).
        class_ids: int64 (n,), of the detections.
        found: int64 (n,), the object of the same class that a detection found, -1 for none.
        is_ignored: bool (n,), no object, but an ignore region.
        object_class_ids: int64 (m,), of the objects that are not ignored.
        near_pairs: int64 (k, 2), (detection, object) of any classes with enough IoU, by detection, the best IoU first.
        num_ignored_regions: how many.
    """

    confidences: np.ndarray
    class_ids: np.ndarray
    found: np.ndarray
    is_ignored: np.ndarray
    object_class_ids: np.ndarray
    near_pairs: np.ndarray
    num_ignored_regions: int = 0

    @property
    def is_ok(self) -> bool:
        """Whether the image has no object."""
        return len(self.object_class_ids) == 0


def match_image(prediction: DefectPrediction, annotation: DefectAnnotation, iou_threshold: float) -> ImageMatch:
    """Match the detections of one image to its objects.

    Args:
        prediction: in pixels of the image, in any order.
        annotation: may be empty: then every detection is a false one.
        iou_threshold: 0 to 1.

    Returns:
        The match.
    """
    order = np.argsort(-prediction.confidences, kind="stable")
    boxes = prediction.boxes_xyxy_px[order].astype(np.float64)
    class_ids = prediction.class_ids[order]
    is_object = ~annotation.is_ignored
    object_class_ids = annotation.class_ids[is_object]

    shared = box_intersections(boxes[:, None], annotation.boxes_xyxy_px[None].astype(np.float64))
    areas, object_areas = box_areas(boxes), box_areas(annotation.boxes_xyxy_px.astype(np.float64))
    iou = iou_matrix(shared, areas, object_areas)[:, is_object]
    detection, target = np.nonzero(iou >= iou_threshold)
    by_iou = np.lexsort((-target, -iou[detection, target], detection))  # of equals COCO takes the last object
    pairs = np.stack((detection, target), axis=1)[by_iou]

    is_same = class_ids[pairs[:, 0]] == object_class_ids[pairs[:, 1]]
    found = first_free(pairs[is_same], len(boxes))
    is_inside = (shared >= iou_threshold * areas[:, None]) & (shared > 0) & annotation.is_ignored
    is_inside &= class_ids[:, None] == annotation.class_ids
    return ImageMatch(
        confidences=prediction.confidences[order].astype(np.float64),
        class_ids=class_ids,
        found=found,
        is_ignored=is_inside.any(axis=1) & (found < 0),
        object_class_ids=object_class_ids,
        near_pairs=pairs,
        num_ignored_regions=int(annotation.is_ignored.sum()),
    )


def first_free(pairs: np.ndarray, num_detections: int) -> np.ndarray:
    """The object of each detection, when each in turn takes its first one that is still free.

    Args:
        pairs: int (k, 2), (detection, object), in the order of choice.
        num_detections: how many there are.

    Returns:
        int64 (num_detections,), -1 for none.
    """
    found = np.full(num_detections, -1, dtype=np.int64)
    taken: set[int] = set()
    for detection, target in pairs.tolist():
        if found[detection] < 0 and target not in taken:
            found[detection] = target
            taken.add(target)
    return found


@dataclass(frozen=True, eq=False)
class PooledDetections:
    """The detections of all images that count, and how many objects there were to find.

    Attributes:
        confidences: float64 (n,).
        class_ids: int64 (n,).
        is_true: bool (n,), whether it found an object of its class.
        num_objects: int64 (num_classes,).
    """

    confidences: np.ndarray
    class_ids: np.ndarray
    is_true: np.ndarray
    num_objects: np.ndarray

    @classmethod
    def of(cls, matches: Sequence[ImageMatch], num_classes: int) -> PooledDetections:
        """Pool all images, without the detections that are ignored."""
        # The empty array in front is what no image at all leaves.
        is_counted = ~np.concatenate([np.zeros(0, bool), *(match.is_ignored for match in matches)])
        objects = np.concatenate([np.zeros(0, np.int64), *(match.object_class_ids for match in matches)])
        return cls(
            confidences=np.concatenate([np.zeros(0), *(match.confidences for match in matches)])[is_counted],
            class_ids=np.concatenate([np.zeros(0, np.int64), *(match.class_ids for match in matches)])[is_counted],
            is_true=np.concatenate([np.zeros(0, bool), *(match.found >= 0 for match in matches)])[is_counted],
            num_objects=np.bincount(objects, minlength=num_classes),
        )
