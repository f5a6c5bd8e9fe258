"""What a factory asks: how many defective parts slip through, how many good ones are stopped.

An image raises the alarm at a threshold if any detection that is not on an ignore region is at or above it, wherever it
lies. The miss rate is the share of defective images (with an object) that raise none; the false-alarm rate is the share
of OK images that raise one. Whether the detection lies on the defect is what precision and recall are for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.evaluation.box_matching import ImageMatch

Point = dict[str, float | bool | None]


@dataclass(frozen=True, eq=False)
class ImageScores:
    """The highest confidence of every image, -inf without any detection.

    Attributes:
        defective: float64, rising.
        ok: float64, rising.
    """

    defective: np.ndarray
    ok: np.ndarray

    @classmethod
    def of(cls, matches: Sequence[ImageMatch]) -> ImageScores:
        """Scores of matched images."""
        scores = np.array([match.confidences[~match.is_ignored].max(initial=-np.inf) for match in matches])
        is_ok = np.array([match.is_ok for match in matches], dtype=bool)
        return cls(np.sort(scores[~is_ok]), np.sort(scores[is_ok]))


def rates_at(scores: ImageScores, threshold: float) -> Point:
    """Both rates at a threshold; None where there is no image of the kind."""
    num_missed = int(np.searchsorted(scores.defective, threshold))
    num_passed = int(np.searchsorted(scores.ok, threshold))
    return {
        "threshold": threshold,
        "image_miss_rate": num_missed / len(scores.defective) if len(scores.defective) else None,
        "image_false_alarm_rate": 1 - num_passed / len(scores.ok) if len(scores.ok) else None,
    }


def threshold_for_miss_rate(scores: ImageScores, wanted: float) -> Point:
    """The highest threshold whose miss rate is at most the wanted one, and the false-alarm rate that it costs.

    With n defective images k = floor(wanted n) may be missed, at most n - 1: the threshold is the score of the
    (k + 1)-th lowest.

    Args:
        scores: of all images.
        wanted: miss rate, 0 to 1.

    Returns:
        `rates_at` that threshold, with `wanted_miss_rate` and `is_reached`. If too many defective images have no
        detection at all, `is_reached` is False and the rates are those of threshold 0, the lowest there is.
        Without defective images threshold and rates are None.

    Raises:
        ValueError: wanted is no rate.
    """
    if not 0 <= wanted <= 1:
        raise ValueError(f"the wanted miss rate must lie between 0 and 1, but got {wanted}")
    if len(scores.defective) == 0:
        point: Point = dict.fromkeys(("threshold", "image_miss_rate", "image_false_alarm_rate"))
        return {"wanted_miss_rate": wanted, "is_reached": False, **point}
    # The small number keeps 0.29 x 100 from being 28.
    may_miss = min(int(wanted * len(scores.defective) + 1e-9), len(scores.defective) - 1)
    threshold = float(scores.defective[may_miss])
    is_reached = bool(np.isfinite(threshold))
    return {"wanted_miss_rate": wanted, "is_reached": is_reached, **rates_at(scores, threshold if is_reached else 0.0)}


def rate_curve(scores: ImageScores, max_points: int = 21) -> list[Point]:
    """Both rates at a few thresholds from high to low: scores of images, spread evenly over their ranks."""
    values = np.unique(np.concatenate((scores.defective, scores.ok)))[::-1]
    values = values[np.isfinite(values)]
    chosen = np.unique(np.linspace(0, len(values) - 1, min(max_points, len(values))).round().astype(int))
    return [rates_at(scores, threshold) for threshold in values[chosen].tolist()]
