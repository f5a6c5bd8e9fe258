"""The losses of PicoDet and PP-YOLOE+ as functions of additive sums.

For both heads with task-aligned assignment (TOOD, Feng et al. 2021, https://arxiv.org/abs/2108.07755) upstream
(`ppdet/modeling/heads/pico_head.py` and `ppyoloe_head.py`) computes, over one batch,

    L = (w_c V + w_b G + w_d D) / max(S, 1),    S = sum of assigned scores, without gradient

with V the varifocal loss summed over anchor points and classes, G and D the GIoU and distribution focal losses summed
over positive points, each weighted by its assigned score. PicoHeadV2 upstream floors S at 1 only on several GPUs, so
that a batch without defect divides by 0; here the floor holds always, and on the sums of the whole window.

The legacy head (SimOTA assignment) divides V by the number P of positive points, and G and D by the sum W of the
positive points' confidences, both floored at 1: two divisors.

The varifocal loss lets a wrong class off lightly where it is not yet sure: at a score of 0.2 its error counts 0.03
times. That keeps a sea of background points quiet, and it also keeps the classes of a defect alike for hundreds of
updates. `contrasted` therefore counts, at points that answer for a defect, the error of every class at least as much as
the right one's; the background is as upstream has it. With one class the two are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import paddle
import paddle.nn.functional as F

from pipelines.defect_detection.assignment import Assignment
from pipelines.defect_detection.heads import Dense

VARIFOCAL_ALPHA, VARIFOCAL_GAMMA = 0.75, 2.0
_LOG_EPS = 1e-12

Statistics = dict[str, paddle.Tensor]
ClassLoss = Literal["contrasted", "varifocal"]


@dataclass(frozen=True)
class LossWeights:
    """Factors of the three terms, and the largest distance in strides that a target may ask for.

    `class_loss`: "varifocal" is ppdet's own.
    """

    classes: float
    box: float
    distribution: float
    max_distance: float
    class_loss: ClassLoss = "varifocal"


def task_aligned_statistics(dense: Dense, assigned: Assignment, weights: LossWeights) -> Statistics:
    """The sums of one micro-batch; `scores`, the divisor, carries no gradient."""
    return {**_error_sums(dense, assigned, weights), "scores": assigned.scores.sum()}


def legacy_statistics(dense: Dense, assigned: Assignment, weights: LossWeights) -> Statistics:
    """The same for the legacy head; `positives` and `confidences`, the divisors, carry no gradient."""
    positives = assigned.is_positive.astype(assigned.weights.dtype).sum()
    return {
        **_error_sums(dense, assigned, weights),
        "positives": positives,
        "confidences": assigned.weights.sum(),
    }


def task_aligned_loss(totals: Statistics, weights: LossWeights) -> Statistics:
    """The loss over everything that `totals` sums over; one divisor."""
    return _combined(totals, weights, totals["scores"].clip(min=1.0), totals["scores"].clip(min=1.0))


def legacy_loss(totals: Statistics, weights: LossWeights) -> Statistics:
    """The same for the legacy head; two divisors."""
    return _combined(totals, weights, totals["positives"].clip(min=1.0), totals["confidences"].clip(min=1.0))


def _error_sums(dense: Dense, assigned: Assignment, weights: LossWeights) -> Statistics:
    class_error = _class_error(dense, assigned, weights.class_loss) * assigned.counts.unsqueeze(-1)
    return {"class_error": class_error.sum(), **_box_sums(dense, assigned, weights)}


def _combined(
    totals: Statistics, weights: LossWeights, class_divisor: paddle.Tensor, box_divisor: paddle.Tensor
) -> Statistics:
    classes = weights.classes * totals["class_error"] / class_divisor
    box = weights.box * totals["box_error"] / box_divisor
    distribution = weights.distribution * totals["distribution_error"] / box_divisor
    parts = {"loss_class": classes, "loss_box": box, "loss_distribution": distribution}
    return {"loss": classes + box + distribution, **parts}


def _class_error(dense: Dense, assigned: Assignment, class_loss: ClassLoss) -> paddle.Tensor:
    """Varifocal loss (Zhang et al. 2021, https://arxiv.org/abs/2008.13367) of every point and class, (n, a, c).

    Contrasted, a wrong class weighs no less than the score that the right one should have, 0 in the background.
    """
    target = assigned.scores
    labelled = assigned.is_labelled.astype(target.dtype)
    hardness = VARIFOCAL_ALPHA * (dense.scores - target).abs().pow(VARIFOCAL_GAMMA)
    if class_loss == "contrasted":
        hardness = paddle.maximum(hardness, target.max(axis=-1, keepdim=True))
    weight = target * labelled + hardness * (1 - labelled)
    if dense.logits is not None:
        return F.binary_cross_entropy_with_logits(dense.logits, target, reduction="none") * weight
    logarithm = (dense.scores + _LOG_EPS).log()
    opposite = (1 - dense.scores).clip(min=_LOG_EPS).log()
    return -(target * logarithm + (1 - target) * opposite) * weight


def _box_sums(dense: Dense, assigned: Assignment, weights: LossWeights) -> Statistics:
    """GIoU and distribution focal loss over positive points, weighted."""
    chosen = paddle.nonzero(assigned.is_positive.flatten()).flatten()
    if chosen.shape[0] == 0:
        zero = paddle.zeros([], dtype=dense.boxes.dtype)
        return {"box_error": zero, "distribution_error": zero}
    num_images = dense.boxes.shape[0]
    boxes = dense.boxes.reshape([-1, 4])[chosen]
    wanted = assigned.boxes.reshape([-1, 4])[chosen]
    points = (dense.points_px / dense.strides_px).tile([num_images, 1])[chosen]
    distribution = dense.distribution.flatten(0, 1)[chosen]
    point_weights = assigned.weights.flatten()[chosen]
    distances = paddle.concat([points - wanted[:, :2], wanted[:, 2:] - points], axis=-1)
    distances = distances.clip(0.0, weights.max_distance)
    return {
        "box_error": (giou_loss(boxes, wanted) * point_weights).sum(),
        "distribution_error": (distribution_focal_loss(distribution, distances) * point_weights).sum(),
    }


def giou_loss(boxes: paddle.Tensor, wanted: paddle.Tensor) -> paddle.Tensor:
    """1 - GIoU (Rezatofighi et al. 2019, https://arxiv.org/abs/1902.09630) of (p, 4) boxes, (p,)."""
    from ppdet.modeling.losses import GIoULoss

    return GIoULoss()(boxes, wanted).flatten()


def distribution_focal_loss(distribution: paddle.Tensor, distances: paddle.Tensor) -> paddle.Tensor:
    """Cross-entropy of (p, 4, r) logits with the two bins round each of (p, 4) distances, mean of the sides; (p,)."""
    below = distances.floor()
    share_above = distances - below
    index = below.astype("int64")
    log_shares = F.log_softmax(distribution, axis=-1)
    at_below = paddle.take_along_axis(log_shares, index.unsqueeze(-1), axis=-1).squeeze(-1)
    at_above = paddle.take_along_axis(log_shares, index.unsqueeze(-1) + 1, axis=-1).squeeze(-1)
    return -(at_below * (1 - share_above) + at_above * share_above).mean(axis=-1)
