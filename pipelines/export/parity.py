"""The exported model in paddleocr against the network it came from: the same boxes, or it says how they differ."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from shapely.geometry import Polygon

from pipelines.errors import DataError, UsageError
from pipelines.records import TextPrediction

MIN_IOU = 0.99
MIN_SHARE = 0.98
"""Share of equal boxes that passes: fused kernels round differently, so a box on the very edge of a threshold
may come or go; a wrong resize, mean or threshold changes nearly all of them."""


@dataclass(frozen=True)
class ParityReport:
    """How two sets of predictions on the same images compare.

    Attributes:
        num_ours: boxes found by the network.
        num_theirs: boxes found by the exported model.
        num_equal: pairs, one to one, with IoU of at least `MIN_IOU`.
        images_with_other_count: indices of images with different numbers of boxes.
        max_confidence_difference: over the equal pairs.
    """

    num_ours: int
    num_theirs: int
    num_equal: int
    images_with_other_count: tuple[int, ...] = ()
    max_confidence_difference: float = 0.0

    @property
    def share(self) -> float:
        """Equal pairs over the larger number of boxes; 1 if neither found any."""
        largest = max(self.num_ours, self.num_theirs)
        return self.num_equal / largest if largest else 1.0

    @property
    def ok(self) -> bool:
        return self.share >= MIN_SHARE

    def to_json(self) -> dict[str, Any]:
        """The report for `parity.json`: its fields, the share, the bounds and the verdict."""
        return {**asdict(self), "share": self.share, "min_iou": MIN_IOU, "min_share": MIN_SHARE, "ok": self.ok}

    def render(self) -> str:
        """One line for people."""
        verdict = "agrees" if self.ok else "DIFFERS"
        return (
            f"paddleocr {verdict}: {self.num_equal} boxes with IoU >= {MIN_IOU} of {self.num_ours} ours and "
            f"{self.num_theirs} theirs ({self.share:.1%}, at least {MIN_SHARE:.0%} needed), "
            f"{len(self.images_with_other_count)} images with another count, "
            f"confidences within {self.max_confidence_difference:.1e}"
        )


def paddleocr_detector(model_dir: Path, *, device: str = "cpu") -> Callable[[np.ndarray], TextPrediction]:
    """`paddleocr.TextDetection` on an exported folder and nothing else: no setting is passed.

    Args:
        model_dir: an exported model with its `inference.yml`.
        device: as paddleocr names it, "cpu" or "gpu:0".

    Returns:
        From an image, uint8 BGR (height, width, 3) of any size, to what paddleocr finds in it.

    Raises:
        UsageError: paddleocr is not installed, or the folder holds no model.
        DataError: paddleocr refuses the model.
    """
    description = model_dir / "inference.yml"
    if not description.is_file():
        raise UsageError(f"{model_dir}: holds no inference.yml; export a model there first")
    model_name = yaml.safe_load(description.read_text(encoding="utf-8"))["Global"]["model_name"]
    # Without it paddlex asks model hosts whether they are reachable.
    os.environ.setdefault("PADDLE_PDX_DISABLE_MODEL_SOURCE_CHECK", "True")
    try:
        from paddleocr import TextDetection
    except ImportError as fault:
        raise UsageError("paddleocr is not installed: pip install paddleocr==3.7.0") from fault
    try:
        detector = TextDetection(model_name=model_name, model_dir=str(model_dir), device=device)
    except Exception as fault:
        raise DataError(f"{model_dir}: paddleocr can't load it as {model_name}: {fault}") from fault
    # One image a call: a batch would be padded or refused when sizes differ.
    return lambda image: _prediction(next(iter(detector.predict(image))))


def check_in_paddleocr(model_dir: Path, images: Sequence[np.ndarray], *, device: str = "cpu") -> list[TextPrediction]:
    """What `paddleocr_detector` finds in each image."""
    detect = paddleocr_detector(model_dir, device=device)
    return [detect(image) for image in images]


def compare_predictions(ours: Sequence[TextPrediction], theirs: Sequence[TextPrediction]) -> ParityReport:
    """Pair the boxes of each image, best overlap first.

    Raises:
        ValueError: not one prediction of each for every image.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"expected as many predictions of both, but got {len(ours)} and {len(theirs)}")
    differences: list[float] = []
    other_count = []
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if len(one.polygons_px) != len(other.polygons_px):
            other_count.append(index)
        for i, j in equal_pairs(one, other):
            differences.append(abs(float(one.confidences[i]) - float(other.confidences[j])))
    return ParityReport(
        num_ours=sum(len(prediction.polygons_px) for prediction in ours),
        num_theirs=sum(len(prediction.polygons_px) for prediction in theirs),
        num_equal=len(differences),
        images_with_other_count=tuple(other_count),
        max_confidence_difference=max(differences, default=0.0),
    )


def equal_pairs(one: TextPrediction, other: TextPrediction) -> list[tuple[int, int]]:
    """Indices of polygons with IoU >= `MIN_IOU`, each in one pair at most.

    First come, first paired is enough: at such an IoU a polygon has two partners only if those nearly coincide.
    """
    if not one.polygons_px or not other.polygons_px:
        return []
    first, second = _extents(one.polygons_px), _extents(other.polygons_px)
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    # Only boxes whose frames overlap can be equal: spares nearly all polygon intersections.
    candidates = np.argwhere((high > low).all(axis=2))
    partner_of: dict[int, int] = {}
    for i, j in candidates.tolist():
        is_free = i not in partner_of and j not in partner_of.values()
        if is_free and _iou(one.polygons_px[i], other.polygons_px[j]) >= MIN_IOU:
            partner_of[i] = j
    return list(partner_of.items())


def _iou(first: np.ndarray, second: np.ndarray) -> float:
    a, b = Polygon(first).buffer(0), Polygon(second).buffer(0)
    intersection = a.intersection(b).area
    union = a.area + b.area - intersection
    return intersection / union if union > 0 else 0.0


def _extents(polygons: Sequence[np.ndarray]) -> np.ndarray:
    """(n, 4): smallest x, y and largest x, y of each polygon."""
    return np.array([[*polygon.min(axis=0), *polygon.max(axis=0)] for polygon in polygons], np.float64)


def _prediction(result: Mapping[str, Any]) -> TextPrediction:
    polygons = tuple(np.asarray(polygon, np.float32).reshape(-1, 2) for polygon in result["dt_polys"])
    return TextPrediction(polygons, np.asarray(result["dt_scores"], np.float32).reshape(-1))
