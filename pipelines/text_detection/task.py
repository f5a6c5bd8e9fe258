"""Text detection with DBNet as a Task: targets, statistics, loss and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import paddle

from pipelines.records import MicroBatch, Sample, TextAnnotation, TextPrediction
from pipelines.task import ExactMethod
from pipelines.text_detection.boxes import PostProcess
from pipelines.text_detection.network import DBNet, normalise
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.statistics import db_loss, db_statistics
from pipelines.text_detection.targets import TextTargets

_THRESHOLD_MAP_UNIT = 255.0


@dataclass(frozen=True)
class Setting:
    """How an image becomes boxes: the one definition for training, evaluation and the exported model."""

    resize: ResizeRule
    post_process: PostProcess


class TextDetection:
    """DBNet as a Task (see `pipelines.task.Task`); every loss term is a ratio of sums, so `replay` it is."""

    exact_by: ExactMethod = "replay"
    divisor = ""

    def __init__(self, network: DBNet, setting: Setting, targets: TextTargets):
        self.network = network
        self.setting = setting
        self._targets = targets

    @property
    def recomputable(self) -> list[paddle.nn.Layer]:
        return self.network.recomputable

    def targets(self, image: np.ndarray, annotation: TextAnnotation, source: str) -> Sample:
        return self._targets(image, annotation, source)

    def statistics(self, micro_batch: MicroBatch) -> dict[str, paddle.Tensor]:
        dtype = self._dtype
        images = normalise(paddle.to_tensor(micro_batch.images), dtype)
        maps = self.network.forward_maps(images)
        targets = {name: paddle.to_tensor(value).astype(dtype) for name, value in micro_batch.targets.items()}
        targets["threshold_map"] = targets["threshold_map"] / _THRESHOLD_MAP_UNIT
        probability, threshold, binary = (single.squeeze(1) for single in maps)
        return db_statistics((probability, threshold, binary), targets)

    def label_statistics(self, micro_batch: MicroBatch) -> dict[str, paddle.Tensor]:
        return {}

    def combine(self, totals: dict[str, paddle.Tensor]) -> dict[str, paddle.Tensor]:
        return db_loss(totals)

    def predict(self, images: Sequence[np.ndarray]) -> list[TextPrediction]:
        return [
            self.setting.post_process(self.probability_map(image, self.setting.resize), image.shape[:2])
            for image in images
        ]

    @paddle.no_grad()
    def probability_map(self, image: np.ndarray, resize: ResizeRule) -> np.ndarray:
        """What the network sees in one image: float32 (height, width) of the resized image."""
        resized, _ = resize.apply(image)
        probability = self.network(normalise(paddle.to_tensor(resized[None]), self._dtype))
        return probability.numpy()[0, 0].astype(np.float32)

    @property
    def _dtype(self) -> str:
        return str(self.network.threshold.conv_down.weight.dtype).removeprefix("paddle.")
