"""Average precision as COCO defines it, computed by pycocotools, without its prints and its -1."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from pipelines.records import DefectAnnotation, DefectPrediction

SIZES = ("small", "medium", "large")
"""By box area: under 32², up to 96², and above; px² of the image."""


@dataclass(frozen=True)
class AveragePrecision:
    """AP over 101 recall levels; None where there is no object of the kind.

    Attributes:
        ap_50: at IoU 0.5, mean over the classes that have objects.
        map: mean over IoU 0.5, 0.55 … 0.95 as well.
        map_by_size: the same for objects of each of `SIZES`.
        class_ap_50: at IoU 0.5, one a class.
        class_map: mean over IoU 0.5 … 0.95, one a class.
    """

    ap_50: float | None
    map: float | None
    map_by_size: dict[str, float | None]
    class_ap_50: tuple[float | None, ...]
    class_map: tuple[float | None, ...]


def average_precision(
    images: Sequence[tuple[DefectPrediction, DefectAnnotation]], num_classes: int, max_detections: int = 100
) -> AveragePrecision:
    """COCO's AP of detections; ignore regions are its crowds.

    Args:
        images: what was predicted and what is there, in pixels of the image.
        num_classes: ids are 0 to num_classes - 1.
        max_detections: the most confident ones of a class and image that count; COCO's is 100.

    Returns:
        The figures.
    """
    objects = [row for index, (_, annotation) in enumerate(images) for row in _objects(annotation, index)]
    detections = [row for index, (prediction, _) in enumerate(images) for row in _detections(prediction, index)]
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(*(_coco(rows, len(images), num_classes) for rows in (objects, detections)), "bbox")
        evaluation.params.maxDets = [max_detections]
        evaluation.evaluate()
        evaluation.accumulate()
    # (IoU, recall, class, size, maxDets), -1 where there is no object; sizes are all, small, medium, large.
    precision = evaluation.eval["precision"][..., 0]
    return AveragePrecision(
        ap_50=_mean(precision[0, :, :, 0]),
        map=_mean(precision[:, :, :, 0]),
        map_by_size={size: _mean(precision[..., index]) for index, size in enumerate(SIZES, start=1)},
        class_ap_50=tuple(_mean(precision[0, :, index, 0]) for index in range(num_classes)),
        class_map=tuple(_mean(precision[:, :, index, 0]) for index in range(num_classes)),
    )


def _mean(precision: np.ndarray) -> float | None:
    defined = precision[precision > -1]
    return float(defined.mean()) if defined.size else None


def _coco(rows: list[dict[str, Any]], num_images: int, num_classes: int) -> Any:
    # Ids from 1: pycocotools takes a match with id 0 for no match.
    annotations = [{**row, "id": index} for index, row in enumerate(rows, start=1)]
    images = [{"id": index} for index in range(num_images)]
    coco = COCO()
    coco.dataset = {"images": images, "annotations": annotations, "categories": [{"id": i} for i in range(num_classes)]}
    coco.createIndex()
    return coco


def _objects(annotation: DefectAnnotation, image_id: int) -> list[dict[str, Any]]:
    rows = _rows(annotation.boxes_xyxy_px, annotation.class_ids, image_id)
    is_ignored = annotation.is_ignored.tolist()
    return [{**row, "iscrowd": int(ignored)} for row, ignored in zip(rows, is_ignored, strict=True)]


def _detections(prediction: DefectPrediction, image_id: int) -> list[dict[str, Any]]:
    rows = _rows(prediction.boxes_xyxy_px, prediction.class_ids, image_id)
    return [{**row, "score": score} for row, score in zip(rows, prediction.confidences.tolist(), strict=True)]


def _rows(boxes_xyxy: np.ndarray, class_ids: np.ndarray, image_id: int) -> list[dict[str, Any]]:
    boxes = boxes_xyxy.astype(np.float64)
    boxes[:, 2:] -= boxes[:, :2]
    return [
        {"image_id": image_id, "category_id": class_id, "bbox": box, "area": box[2] * box[3]}
        for box, class_id in zip(boxes.tolist(), class_ids.tolist(), strict=True)
    ]
