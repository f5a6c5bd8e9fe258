"""Which anchor point answers for which defect: ppdet's assigners, image by image, so no split of a batch changes it.

Assignment carries no gradient and is done in float32 whatever the network computes in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle

from pipelines.defect_detection.heads import Dense
from pipelines.defect_detection.targets import DEFECT, IGNORED


@dataclass(frozen=True, eq=False)
class Assignment:
    """Targets of every anchor point; n images, a points, c classes; dtype of the network, no gradient.

    Attributes:
        is_positive: bool (n, a): the point answers for a defect.
        is_labelled: bool (n, a, c): and for this class; the others' loss is background's.
        scores: (n, a, c): the score it should give, 0 where it answers for nothing.
        boxes: (n, a, 4): the box it should give, in strides; meaningless where not positive.
        weights: (n, a): of its box losses, 0 where not positive.
        counts: (n, a): 1, or 0 for points in an ignore region that answer for nothing: neither defect nor background.
    """

    is_positive: paddle.Tensor
    is_labelled: paddle.Tensor
    scores: paddle.Tensor
    boxes: paddle.Tensor
    weights: paddle.Tensor
    counts: paddle.Tensor


@paddle.no_grad()
def assign(head: Any, dense: Dense, targets: dict[str, np.ndarray]) -> Assignment:
    """Assign one micro-batch.

    Args:
        head: of ppdet, with its assigner.
        dense: what it said.
        targets: `boxes` (n, m, 4) in pixels, `class_ids` and `kinds` (n, m), as `DefectTargets` makes them.
    """
    by_kind = _by_simota if type(head).__name__ == "PicoHead" else _by_task_alignment
    labels, boxes_px, scores = by_kind(head, dense, targets)
    num_classes = dense.scores.shape[-1]
    dtype = dense.scores.dtype
    is_positive = labels < num_classes
    scores = scores.astype(dtype)
    if type(head).__name__ == "PPYOLOEHead":
        is_labelled = paddle.nn.functional.one_hot(labels, num_classes + 1)[..., :-1].astype("bool")
    else:  # PicoDet's varifocal loss asks the score: a point whose box misses its defect altogether is background
        is_labelled = scores > 0
    if type(head).__name__ == "PicoHead":
        weights = dense.scores.max(axis=-1) * is_positive.astype(dtype)
    else:
        weights = scores.sum(axis=-1)
    return Assignment(
        is_positive,
        is_labelled,
        scores,
        boxes_px.astype(dtype) / dense.strides_px,
        weights.detach(),
        _counts(dense, targets, is_positive).astype(dtype),
    )


def _by_task_alignment(
    head: Any, dense: Dense, targets: dict[str, np.ndarray]
) -> tuple[paddle.Tensor, paddle.Tensor, paddle.Tensor]:
    """ppdet's TaskAlignedAssigner: labels (n, a), boxes (n, a, 4) px, scores (n, a, c)."""
    is_defect = (targets["kinds"] == DEFECT).astype(np.float32)[..., None]
    labels, boxes_px, scores, _ = head.assigner(
        dense.scores.detach().astype("float32"),
        dense.boxes_px.detach().astype("float32"),
        dense.points_px.astype("float32"),
        list(dense.level_sizes),
        paddle.to_tensor(targets["class_ids"][..., None]),
        paddle.to_tensor(targets["boxes"] * is_defect),
        paddle.to_tensor(is_defect),
        bg_index=dense.scores.shape[-1],
    )
    return labels.astype("int64"), boxes_px, scores


def _by_simota(
    head: Any, dense: Dense, targets: dict[str, np.ndarray]
) -> tuple[paddle.Tensor, paddle.Tensor, paddle.Tensor]:
    """ppdet's SimOTAAssigner, which takes one image at a time; the score is the IoU that the point reaches."""
    scores, boxes_px = dense.scores.detach().astype("float32"), dense.boxes_px.detach().astype("float32")
    places = paddle.concat([dense.points_px, dense.strides_px, dense.strides_px], axis=-1).astype("float32")
    labels, wanted = [], []
    for image in range(scores.shape[0]):
        is_defect = targets["kinds"][image] == DEFECT
        _, label, _, box = head.assigner(
            scores[image],
            places,
            boxes_px[image],
            paddle.to_tensor(targets["boxes"][image][is_defect]),
            paddle.to_tensor(targets["class_ids"][image][is_defect][:, None]),
        )
        labels.append(label)
        wanted.append(np.asarray(box, np.float32)[:, :4])
    label, box = paddle.to_tensor(np.stack(labels)), paddle.to_tensor(np.stack(wanted))
    num_classes = scores.shape[-1]
    quality = _aligned_iou(boxes_px, box) * (label < num_classes).astype("float32")
    one_hot = paddle.nn.functional.one_hot(label, num_classes + 1)[..., :-1]
    return label, box, one_hot * quality.unsqueeze(-1)


def _counts(dense: Dense, targets: dict[str, np.ndarray], is_positive: paddle.Tensor) -> paddle.Tensor:
    """bool (n, a): False for points inside an ignore region that answer for nothing."""
    ignored = targets["kinds"] == IGNORED
    if not ignored.any():
        return paddle.ones_like(is_positive)
    points = dense.points_px.numpy()[None, :, None]
    boxes = targets["boxes"][:, None]
    is_inside = (points > boxes[..., :2]).all(-1) & (points < boxes[..., 2:]).all(-1)
    return is_positive | paddle.to_tensor(~(is_inside & ignored[:, None]).any(-1))


def _aligned_iou(boxes: paddle.Tensor, others: paddle.Tensor) -> paddle.Tensor:
    """IoU of boxes (..., 4) with the others of the same place, (...)."""
    low, high = paddle.maximum(boxes[..., :2], others[..., :2]), paddle.minimum(boxes[..., 2:], others[..., 2:])
    shared = (high - low).clip(min=0).prod(axis=-1)
    areas = (boxes[..., 2:] - boxes[..., :2]).prod(axis=-1) + (others[..., 2:] - others[..., :2]).prod(axis=-1)
    return shared / (areas - shared).clip(min=1e-6)
