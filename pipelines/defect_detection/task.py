"""A ppdet detector as a Task: targets, statistics, loss and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import paddle

from pipelines.defect_detection.assignment import assign
from pipelines.defect_detection.network import Detector
from pipelines.defect_detection.setting import Setting
from pipelines.defect_detection.statistics import (
    ClassLoss,
    LossWeights,
    legacy_loss,
    legacy_statistics,
    task_aligned_loss,
    task_aligned_statistics,
)
from pipelines.defect_detection.targets import DefectTargets
from pipelines.records import DefectAnnotation, DefectPrediction, MicroBatch, Sample
from pipelines.task import ExactMethod


class DefectDetection:
    """A detector as a Task (see `pipelines.task.Task`).

    The task-aligned heads share one divisor, which is known after the forward: `rescale`. The legacy head has two,
    so it needs `replay`. `class_loss` is "varifocal" as in ppdet or "contrasted" (see `statistics`).
    """

    def __init__(
        self, network: Detector, setting: Setting, targets: DefectTargets, class_loss: ClassLoss = "varifocal"
    ):
        self.network = network
        self.setting = setting
        self._targets = targets
        self._weights = replace(loss_weights(network), class_loss=class_loss)
        self._is_legacy = network.kind == "PicoHead"
        self.exact_by: ExactMethod = "replay" if self._is_legacy else "rescale"
        self.divisor = "" if self._is_legacy else "scores"

    @property
    def recomputable(self) -> list[paddle.nn.Layer]:
        return self.network.recomputable

    def targets(self, image: np.ndarray, annotation: DefectAnnotation, source: str) -> Sample:
        return self._targets(image, annotation, source)

    def statistics(self, micro_batch: MicroBatch) -> dict[str, paddle.Tensor]:
        dense = self.network(paddle.to_tensor(micro_batch.images))
        assigned = assign(self.network.head, dense, dict(micro_batch.targets))
        sums = legacy_statistics if self._is_legacy else task_aligned_statistics
        return sums(dense, assigned, self._weights)

    def label_statistics(self, micro_batch: MicroBatch) -> dict[str, paddle.Tensor]:
        return {}

    def combine(self, totals: dict[str, paddle.Tensor]) -> dict[str, paddle.Tensor]:
        return (legacy_loss if self._is_legacy else task_aligned_loss)(totals, self._weights)

    def predict(self, images: Sequence[np.ndarray]) -> list[DefectPrediction]:
        return [self.setting.detect(self.network, image) for image in images]


def loss_weights(network: Detector) -> LossWeights:
    """The factors that the head's own configuration asks for."""
    head = network.head
    if network.kind == "PPYOLOEHead":
        by_name = head.loss_weight
        return LossWeights(by_name["class"], by_name["iou"], by_name["dfl"], head.reg_range[1] - 1 - 0.01)
    return LossWeights(
        head.loss_vfl.loss_weight, head.loss_bbox.loss_weight, head.loss_dfl.loss_weight, head.reg_max - 0.1
    )
