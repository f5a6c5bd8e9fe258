"""Defect images as rows of numbers, and random ones, for the tests of this folder."""

from __future__ import annotations

import numpy as np

from pipelines.records import DefectAnnotation, DefectPrediction

Image = tuple[DefectPrediction, DefectAnnotation]
SIZE_HW = (400, 400)


def predicted(*rows: tuple[float, ...]) -> DefectPrediction:
    """Rows of left, top, right, bottom, class, confidence."""
    values = np.array(rows, dtype=np.float64).reshape(-1, 6)
    return DefectPrediction(values[:, :4], values[:, 4], values[:, 5])


def annotated(*rows: tuple[float, ...], ignored: tuple[tuple[float, ...], ...] = ()) -> DefectAnnotation:
    """Rows of left, top, right, bottom, class."""
    values = np.array((*rows, *ignored), dtype=np.float64).reshape(-1, 5)
    is_ignored = np.arange(len(values)) >= len(rows)
    return DefectAnnotation(values[:, :4], values[:, 4].astype(np.int64), is_ignored)


def random_images(seed: int, num_images: int = 40, num_classes: int = 3) -> list[Image]:
    """Half of the images are OK; detections are objects a few pixels off, now and then of another class, and noise."""
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(num_images):
        num_objects = int(rng.integers(1, 9)) if rng.random() < 0.5 else 0
        start = rng.uniform(0, 300, (num_objects, 2))
        boxes = np.concatenate((start, start + rng.uniform(10, 110, (num_objects, 2))), axis=1)
        class_ids = rng.integers(0, num_classes, num_objects)
        annotation = DefectAnnotation(boxes, class_ids, rng.random(num_objects) < 0.2)

        copies = np.repeat(np.arange(num_objects), 2)
        near = boxes[copies] + rng.normal(0, 5, (len(copies), 4))
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 1)
        noise_start = rng.uniform(0, 300, (6, 2))
        noise = np.concatenate((noise_start, noise_start + rng.uniform(5, 90, (6, 2))), axis=1)
        is_confused = rng.random(len(copies)) < 0.15
        found_as = np.where(is_confused, rng.integers(0, num_classes, len(copies)), class_ids[copies])
        prediction = DefectPrediction(
            np.concatenate((near, noise)),
            np.concatenate((found_as, rng.integers(0, num_classes, 6))),
            np.concatenate((rng.random(len(copies)), 0.5 * rng.random(6))),
        )
        images.append((prediction, annotation))
    return images
