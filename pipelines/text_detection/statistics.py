"""The DB loss of PP-OCRv3 to v5 as a function of additive sums.

Upstream (PaddleOCR, `ppocr/losses/det_db_loss.py` and `det_basic_loss.py`) computes, over one batch,

    L = 5 Balance(Dice(P, g; m)) + 10 MaskL1(T, t; m_t) + Dice(B, g; m)

with the probability map P, threshold map T, binary map B, shrink map g with its mask m, threshold map target t
with its mask m_t. Each term is a ratio of sums over all pixels of the batch, so the whole loss follows from the
eight sums below. `Balance` ("OHEM 3:1") multiplies the scalar Dice loss by (p + n) / (p + n + 1e-6), where p counts
positive pixels and n = min(negative pixels, 3 p); that needs no sort and no host sync. Without any positive pixel
it is 0, as upstream.
"""

from __future__ import annotations

import paddle

SHRINK_WEIGHT = 5.0
THRESHOLD_WEIGHT = 10.0
NEGATIVE_RATIO = 3.0
_EPS = 1e-6

Statistics = dict[str, paddle.Tensor]


def db_statistics(
    maps: tuple[paddle.Tensor, paddle.Tensor, paddle.Tensor], targets: dict[str, paddle.Tensor]
) -> Statistics:
    """The eight sums of one micro-batch.

    Args:
        maps: probability, threshold and binary map, (n, h, w) each, float32 or float64.
        targets: `shrink_map`, `shrink_mask`, `threshold_map`, `threshold_mask`, (n, h, w) each, same dtype.
    """
    probability, threshold, binary = maps
    labelled, mask = targets["shrink_map"] * targets["shrink_mask"], targets["shrink_mask"]
    error = (threshold - targets["threshold_map"]).abs() * targets["threshold_mask"]
    return {
        "probability_overlap": (probability * labelled).sum(),
        "probability_area": (probability * mask).sum(),
        "binary_overlap": (binary * labelled).sum(),
        "binary_area": (binary * mask).sum(),
        "threshold_error": error.sum(),
        "threshold_pixels": targets["threshold_mask"].sum(),
        "positive_pixels": labelled.sum(),
        "masked_in_pixels": mask.sum(),
    }


def db_loss(totals: Statistics) -> Statistics:
    """The loss over everything that `totals` sums over, with its three parts."""
    positives = totals["positive_pixels"]
    negatives = paddle.minimum(totals["masked_in_pixels"] - positives, NEGATIVE_RATIO * positives)
    balance = (positives + negatives) / (positives + negatives + _EPS)
    shrink = balance * _dice(totals["probability_overlap"], totals["probability_area"], positives)
    binary = _dice(totals["binary_overlap"], totals["binary_area"], positives)
    threshold = totals["threshold_error"] / (totals["threshold_pixels"] + _EPS)
    loss = SHRINK_WEIGHT * shrink + THRESHOLD_WEIGHT * threshold + binary
    return {"loss": loss, "loss_shrink": shrink, "loss_threshold": threshold, "loss_binary": binary}


def _dice(overlap: paddle.Tensor, area: paddle.Tensor, labelled_area: paddle.Tensor) -> paddle.Tensor:
    return 1.0 - 2.0 * overlap / (area + labelled_area + _EPS)
