"""The three kinds of head on their real networks, with scores and boxes that say something, and ppdet's own loss."""

from __future__ import annotations

from functools import cache

import numpy as np
import paddle

from pipelines.defect_detection.network import Detector, build_network
from pipelines.defect_detection.setting import Setting
from pipelines.defect_detection.targets import DEFECT, DefectTargets
from pipelines.defect_detection.task import DefectDetection
from pipelines.records import DefectAnnotation, MicroBatch, Sample
from tests.detectors import blotches, enliven

NETWORKS = ("picodet_lcnet_x1_0", "picodet_lcnet_x1_0_local", "picodet_lcnet_x1_0_legacy", "ppyoloe_plus_s")
TASK_ALIGNED = ("picodet_lcnet_x1_0", "picodet_lcnet_x1_0_local", "ppyoloe_plus_s")
CLASSES = ("open", "short", "mousebite", "spur", "copper", "pin-hole")
SIZE_HW = (128, 160)  # neither square nor multiples of 64, so that no mix-up of sides stays hidden
MAX_BOXES = 8


@cache
def network_of(name: str) -> Detector:
    """A network in eval mode whose head answers differently everywhere; shared, so leave its weights alone."""
    paddle.seed(5)
    network = build_network(name, CLASSES)
    enliven(network, np.stack([blotches(seed, SIZE_HW) for seed in range(8)]))
    return network


def task_of(name: str, max_boxes: int = MAX_BOXES) -> DefectDetection:
    return DefectDetection(network_of(name), Setting(), DefectTargets(max_boxes, len(CLASSES)))


def annotation_of(boxes: object, class_ids: object = None, is_ignored: object = None) -> DefectAnnotation:
    """Boxes with class 0, none of them ignored, unless said otherwise."""
    array = np.asarray(boxes, np.float32).reshape(-1, 4)
    classes = np.zeros(len(array), np.int64) if class_ids is None else np.asarray(class_ids)
    ignored = np.zeros(len(array), bool) if is_ignored is None else np.asarray(is_ignored)
    return DefectAnnotation(array, classes, ignored)


def sample_of(annotation: DefectAnnotation, seed: int = 0, max_boxes: int = MAX_BOXES) -> Sample:
    """Blotches of `SIZE_HW` with an annotation."""
    return DefectTargets(max_boxes, len(CLASSES))(blotches(seed, SIZE_HW), annotation, f"blotches_{seed}.png")


def mixed_batch(max_boxes: int = MAX_BOXES) -> MicroBatch:
    """Images with three boxes, with none and with five, of 16 to 70 pixels, some of them overlapping."""
    rng = np.random.default_rng(1)
    samples = []
    for seed, num_boxes in enumerate((3, 0, 5)):
        sides = rng.uniform(16, 70, (num_boxes, 2))
        corners = rng.uniform(0, 1, (num_boxes, 2)) * (np.array(SIZE_HW[::-1]) - sides)
        annotation = annotation_of(np.hstack([corners, corners + sides]), rng.integers(0, len(CLASSES), num_boxes))
        samples.append(sample_of(annotation, seed, max_boxes))
    return MicroBatch.of(samples)


def upstream_loss(network: Detector, micro_batch: MicroBatch) -> dict[str, float]:
    """ppdet's own loss of one batch, its terms weighted, under our names; past the epochs of its static assigner."""
    head = network.head
    is_defect = micro_batch.targets["kinds"] == DEFECT
    boxes, class_ids = micro_batch.targets["boxes"], micro_batch.targets["class_ids"][..., None]
    meta = {
        "im_id": paddle.zeros([len(micro_batch)]),
        "epoch_id": 1000,
        "gt_bbox": paddle.to_tensor(boxes),
        "gt_class": paddle.to_tensor(class_ids),
        "pad_gt_mask": paddle.to_tensor(is_defect.astype(np.float32)[..., None]),
    }
    modes = [layer for layer in (head, getattr(head, "distribution_project", None)) if layer is not None]
    for layer in modes:  # the attribute alone: BatchNorms below stay as they are
        layer.training = True
    try:
        features = network.neck(network.backbone({"image": network.normalise(paddle.to_tensor(micro_batch.images))}))
        if network.kind == "PPYOLOEHead":
            terms = head(features, meta)
            names = {"loss_cls": "class", "loss_iou": "iou", "loss_dfl": "dfl"}
            values = [terms[name].item() * head.loss_weight[factor] for name, factor in names.items()]
        else:
            if network.kind == "PicoHead":
                meta["gt_bbox"] = [paddle.to_tensor(b[kept]) for b, kept in zip(boxes, is_defect, strict=True)]
                meta["gt_class"] = [paddle.to_tensor(c[kept]) for c, kept in zip(class_ids, is_defect, strict=True)]
            terms = head.get_loss(head(features), meta)
            values = [terms[name].item() for name in ("loss_vfl", "loss_bbox", "loss_dfl")]
    finally:
        for layer in modes:
            layer.training = False
    return dict(zip(("loss_class", "loss_box", "loss_distribution"), values, strict=True))
