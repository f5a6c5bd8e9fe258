"""What two models find in one image, drawn over the part of it that changed most."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from pipelines.geometry import equivalent_height
from pipelines.records import TextAnnotation, TextPrediction

Window = tuple[int, int, int, int]
"""Left, top, right, bottom; pixels of the source image."""

RIGHT, WRONG, MISSED, IGNORED = "#009e73", "#d55e00", "#0072b2", "#777777"
"""Okabe and Ito's colours: a box that fits a label, one that fits none, a label without a box, an ignore region."""

_LINES_SHOWN = 40  # a window is so many text heights wide: what it shows can still be read
_LEAST_WINDOW_PX = 320
_WIDTH_PX = 520
_DPI = 100


@dataclass(frozen=True, eq=False)
class Findings:
    """What one model found in one image, compared with the labels at one IoU.

    Attributes:
        prediction: its boxes, pixels of the image.
        is_right: bool (n,): the box fits a label.
        is_ignored: bool (n,): the box lies on an ignore region and counts neither way.
        is_found: bool (r,): the label, ignore regions left out, has a fitting box.
    """

    prediction: TextPrediction
    is_right: np.ndarray
    is_ignored: np.ndarray
    is_found: np.ndarray

    def counts(self) -> str:
        """In words, for a caption."""
        num_wrong = int((~self.is_right & ~self.is_ignored).sum())
        wrong = "1 box fits none" if num_wrong == 1 else f"{num_wrong} boxes fit none"
        return f"{int(self.is_found.sum())} of {len(self.is_found)} lines found, {wrong}"


@dataclass(frozen=True, eq=False)
class ChangedImage:
    """One image before and after.

    Attributes:
        name: file, as the dataset names it.
        image: uint8 (height, width, 3), BGR.
        annotation: its labels.
        before: findings to compare with.
        after: findings of the better model.
    """

    name: str
    image: np.ndarray
    annotation: TextAnnotation
    before: Findings
    after: Findings

    @property
    def differs(self) -> np.ndarray:
        """bool (r,): the label is found by one model and missed by the other."""
        return self.before.is_found != self.after.is_found


def window_of_change(changed: ChangedImage) -> Window:
    """The part of the image with the most labels that one model finds and the other does not.

    As wide as some lines of text are high, so that scans of any resolution show alike; the whole image if that
    is not much larger.
    """
    height, width = changed.image.shape[:2]
    regions = [region.points_px for region in changed.annotation.regions if not region.is_ignored]
    text_height = float(np.median([equivalent_height(points) for points in regions])) if regions else 0.0
    side = max(_LEAST_WINDOW_PX, round(_LINES_SHOWN * text_height))
    if max(height, width) <= 1.25 * side:
        return 0, 0, width, height
    size_wh = np.minimum((side, side), (width, height))
    centres = np.array([points.mean(axis=0) for points in regions]).reshape(-1, 2)
    differing = centres[changed.differs]
    candidates = differing if len(differing) else np.array([[width / 2, height / 2]])
    # moved into the image, then the candidate that holds the most; the first of equals
    starts = np.clip(candidates - size_wh / 2, 0, np.array((width, height)) - size_wh).round().astype(int)
    inside = (differing >= starts[:, None]) & (differing <= starts[:, None] + size_wh)
    left, top = starts[inside.all(axis=2).sum(axis=1).argmax()].tolist()
    return left, top, left + int(size_wh[0]), top + int(size_wh[1])


def draw_findings(changed: ChangedImage, findings: Findings, window: Window) -> bytes:
    """JPEG of the window with boxes that fit, boxes that don't, labels without a box, and ignore regions."""
    left, top, right, bottom = window
    shown = _shrunk(changed.image[top:bottom, left:right])
    scale = _WIDTH_PX / (right - left)
    size_px = (_WIDTH_PX, round((bottom - top) * scale))
    figure = Figure(figsize=(size_px[0] / _DPI, size_px[1] / _DPI), dpi=_DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(shown[:, :, ::-1], extent=(left, right, bottom, top), aspect="auto")
    axes.set_axis_off()
    for outlines, style in _layers(changed.annotation, findings):
        axes.add_collection(PolyCollection([np.asarray(points) for points in outlines], **style), autolim=False)
    buffer = io.BytesIO()
    figure.savefig(
        buffer, format="jpg", dpi=_DPI, pil_kwargs={"quality": 82, "subsampling": 0}
    )  # outlines are thin and coloured
    return buffer.getvalue()


def _layers(annotation: TextAnnotation, findings: Findings) -> Iterable[tuple[Sequence[np.ndarray], dict[str, Any]]]:
    """Outlines with their style, the lowest first."""
    boxes = findings.prediction.polygons_px
    labels = [region.points_px for region in annotation.regions if not region.is_ignored]
    ignored = [region.points_px for region in annotation.regions if region.is_ignored]
    yield ignored, {"facecolor": f"{IGNORED}40", "edgecolor": IGNORED, "hatch": "///", "linewidth": 0.8}
    missed = _chosen(labels, ~findings.is_found)
    yield missed, {"facecolor": f"{MISSED}30", "edgecolor": MISSED, "linestyle": ":", "linewidth": 1.2}
    unused = _chosen(boxes, findings.is_ignored)
    yield unused, {"facecolor": "none", "edgecolor": IGNORED, "linewidth": 1.2}
    wrong = _chosen(boxes, ~findings.is_right & ~findings.is_ignored)
    yield wrong, {"facecolor": "none", "edgecolor": WRONG, "linewidth": 1.4}
    yield _chosen(boxes, findings.is_right), {"facecolor": "none", "edgecolor": RIGHT, "linewidth": 1.4}


def _chosen(polygons: Sequence[np.ndarray], mask: np.ndarray) -> list[np.ndarray]:
    return [polygon for polygon, is_chosen in zip(polygons, mask.tolist(), strict=True) if is_chosen]


def _shrunk(image: np.ndarray) -> np.ndarray:
    """The image divided by the largest whole number that leaves the drawing's width; means of blocks, uint8."""
    factor = max(1, image.shape[1] // _WIDTH_PX)
    height, width = (side // factor * factor for side in image.shape[:2])
    blocks = image[:height, :width].reshape(height // factor, factor, width // factor, factor, 3)
    return blocks.mean(axis=(1, 3)).round().astype(np.uint8)
