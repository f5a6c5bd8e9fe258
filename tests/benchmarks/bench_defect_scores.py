"""Time of scoring 1000 images with 100 detections each, on one core: gathering, and every figure of `compute`.

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_defect_scores.py

Half of the images are OK, the others have eight defects, each detected once; the other detections are noise.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout that is not installed

from pipelines.evaluation.defects import DefectScorer
from pipelines.records import DefectAnnotation, DefectPrediction

NUM_IMAGES, NUM_DETECTIONS, NUM_OBJECTS, SIZE_HW = 1000, 100, 8, (640, 640)


def boxes(rng: np.random.Generator, num: int) -> np.ndarray:
    """At random places, sides of 5 to 45 px."""
    start = rng.uniform(0, 590, (num, 2))
    return np.concatenate((start, start + rng.uniform(5, 45, (num, 2))), axis=1)


def image(rng: np.random.Generator, num_classes: int) -> tuple[DefectPrediction, DefectAnnotation]:
    """One image as the module's docstring has it."""
    num_objects = NUM_OBJECTS if rng.random() < 0.5 else 0
    objects, class_ids = boxes(rng, num_objects), rng.integers(0, num_classes, NUM_DETECTIONS)
    found = np.concatenate((objects + rng.normal(0, 0.5, objects.shape), boxes(rng, NUM_DETECTIONS - num_objects)))
    annotation = DefectAnnotation(objects, class_ids[:num_objects], np.zeros(num_objects, bool))
    return DefectPrediction(found, class_ids, rng.random(NUM_DETECTIONS)), annotation


def main() -> None:
    """Print a row a case."""
    for num_classes in (6, 1):
        rng = np.random.default_rng(1)
        images = [image(rng, num_classes) for _ in range(NUM_IMAGES)]
        scorer = DefectScorer([f"class {index}" for index in range(num_classes)])
        start = time.process_time()
        for prediction, annotation in images:
            scorer.update(prediction, annotation, SIZE_HW)
        gathered = time.process_time()
        ap_50 = scorer.compute()["ap_50"]
        seconds = f"update {gathered - start:.2f} s, compute {time.process_time() - gathered:.2f} s"
        print(f"{NUM_IMAGES} images x {NUM_DETECTIONS} detections, {num_classes} classes: AP50 {ap_50:.3f}, {seconds}")


if __name__ == "__main__":
    main()
