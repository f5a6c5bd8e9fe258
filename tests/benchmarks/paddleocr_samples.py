"""Run by bench_samples.py in PaddleOCR's own environment: milliseconds of each operator of its detection pipeline.

python paddleocr_samples.py JOB.json RESULT.json
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

import cv2
import numpy as np
from ppocr.data.imaug import create_operators, transform

# configs/det/ch_PP-OCRv4/ch_PP-OCRv4_det_student.yml of PaddleOCR 2.10
PIPELINE = [
    {"DecodeImage": {"img_mode": "BGR", "channel_first": False}},
    {"DetLabelEncode": None},
    {
        "IaaAugment": {
            "augmenter_args": [
                {"type": "Fliplr", "args": {"p": 0.5}},
                {"type": "Affine", "args": {"rotate": [-10, 10]}},
                {"type": "Resize", "args": {"size": [0.5, 3]}},
            ]
        }
    },
    {"EastRandomCropData": {"size": [640, 640], "max_tries": 50, "keep_ratio": True}},
    {"MakeBorderMap": {"shrink_ratio": 0.4, "thresh_min": 0.3, "thresh_max": 0.7}},
    {"MakeShrinkMap": {"shrink_ratio": 0.4, "min_text_size": 8}},
    {
        "NormalizeImage": {
            "scale": "1./255.",
            "mean": [0.485, 0.456, 0.406],
            "std": [0.229, 0.224, 0.225],
            "order": "hwc",
        }
    },
    {"ToCHWImage": None},
]


def main() -> None:
    """Time every operator on every image of a job, in rounds."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    cv2.setNumThreads(1)
    names = [next(iter(entry)) for entry in PIPELINE]
    operators = create_operators(PIPELINE, {})
    seconds: dict[str, list[list[float]]] = {}
    for group, images in job["groups"].items():
        seconds[group] = []
        for number in range(job["rounds"]):
            random.seed(number)
            np.random.seed(number)
            seconds[group] += [timed(operators, path, label) for path, label in images]
    Path(sys.argv[2]).write_text(json.dumps({"names": names, "seconds": seconds}), encoding="utf-8")


def timed(operators: list[object], path: str, label: str) -> list[float]:
    data = {"label": label}
    started = time.process_time()
    data["image"] = Path(path).read_bytes()
    found = []
    for operator in operators:
        data = transform(data, [operator])
        if data is None:
            raise SystemExit(f"{path}: {operator} gave no sample")
        now = time.process_time()
        found.append(now - started)
        started = now
    return found


if __name__ == "__main__":
    main()
