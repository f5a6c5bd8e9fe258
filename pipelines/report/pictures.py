"""What two models find in one image, drawn over the part of it that changed most."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patheffects import withStroke

Window = tuple[int, int, int, int]
"""Left, top, right, bottom; pixels of the source image."""

RIGHT, WRONG, MISSED, IGNORED = "#009e73", "#d55e00", "#0072b2", "#777777"
"""Okabe and Ito's colours: a box that fits a label, one that fits none, a label without a box, an ignore region."""

_LEAST_WINDOW_PX = 320
_WIDTH_PX = 520
_DPI = 100


@dataclass(frozen=True, eq=False)
class Findings:
    """What one model found in one image, compared with the labels at one IoU.

    Attributes:
        outlines_px: float (k, 2) each, boxes in pixels of the image.
        is_right: bool (n,): the box fits a label.
        is_ignored: bool (n,): the box lies on an ignore region and counts neither way.
        is_found: bool (r,): the label, ignore regions left out, has a fitting box.
        captions: written beside the boxes, one each, or none at all.
    """

    outlines_px: Sequence[np.ndarray]
    is_right: np.ndarray
    is_ignored: np.ndarray
    is_found: np.ndarray
    captions: Sequence[str] = ()

    @property
    def is_wrong(self) -> np.ndarray:
        """bool (n,): the box fits no label and costs."""
        return ~self.is_right & ~self.is_ignored

    def counts(self, noun: str) -> str:
        """In words, for a caption; `noun` is what the labels are, in the plural."""
        num_wrong = int(self.is_wrong.sum())
        wrong = "1 box fits none" if num_wrong == 1 else f"{num_wrong} boxes fit none"
        return f"{int(self.is_found.sum())} of {len(self.is_found)} {noun} found, {wrong}"


@dataclass(frozen=True, eq=False)
class ChangedImage:
    """One image before and after.

    Attributes:
        name: file, as the dataset names it.
        image: uint8 (height, width, 3), BGR.
        labels_px: float (k, 2) each, what is to be found; pixels of the image.
        ignored_px: the same, ignore regions.
        before: findings to compare with.
        after: findings of the better model.
        noun: what the labels are, in the plural.
        span_px: how wide a part of a large image to show, so that its labels can be made out.
        captions: written beside labels that were missed, one each, or none at all.
        font: file that has the letters of all captions; None: matplotlib's own.
    """

    name: str
    image: np.ndarray
    labels_px: Sequence[np.ndarray]
    ignored_px: Sequence[np.ndarray]
    before: Findings
    after: Findings
    noun: str = "lines"
    span_px: float = 0.0
    captions: Sequence[str] = ()
    font: Path | None = None

    @property
    def differs(self) -> np.ndarray:
        """bool (r,): the label is found by one model and missed by the other."""
        return self.before.is_found != self.after.is_found


def amount_of_change(before: Findings, after: Findings) -> tuple[int, int]:
    """Labels with another fate, then by how many the wrong boxes differ: sorts images by what there is to see."""
    num_wrong = abs(int(before.is_wrong.sum()) - int(after.is_wrong.sum()))
    return int((before.is_found != after.is_found).sum()), num_wrong


def window_of_change(changed: ChangedImage) -> Window:
    """The part of the image with the most labels that one model finds and the other does not.

    `span_px` wide, so that scans of any resolution show alike; the whole image if that is not much larger.
    """
    height, width = changed.image.shape[:2]
    side = max(_LEAST_WINDOW_PX, round(changed.span_px))
    if max(height, width) <= 1.25 * side:
        return 0, 0, width, height
    size_wh = np.minimum((side, side), (width, height))
    differing = _centres(_chosen(changed.labels_px, changed.differs))
    if not len(differing):
        wrong = [_chosen(found.outlines_px, found.is_wrong) for found in (changed.before, changed.after)]
        differing = _centres([*wrong[0], *wrong[1]])
    candidates = differing if len(differing) else np.array([[width / 2, height / 2]])
    # moved into the image, then the candidate that holds the most; the first of equals
    starts = np.clip(candidates - size_wh / 2, 0, np.array((width, height)) - size_wh).round().astype(int)
    inside = (differing >= starts[:, None]) & (differing <= starts[:, None] + size_wh)
    left, top = starts[inside.all(axis=2).sum(axis=1).argmax()].tolist()
    return left, top, left + int(size_wh[0]), top + int(size_wh[1])


def draw_findings(changed: ChangedImage, findings: Findings, window: Window, width_px: int = _WIDTH_PX) -> bytes:
    """JPEG of the window with boxes that fit, boxes that don't, labels without a box, and ignore regions."""
    left, top, right, bottom = window
    shown = _shrunk(changed.image[top:bottom, left:right], width_px)
    scale = width_px / (right - left)
    size_px = (width_px, round((bottom - top) * scale))
    figure = Figure(figsize=(size_px[0] / _DPI, size_px[1] / _DPI), dpi=_DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(shown[:, :, ::-1], extent=(left, right, bottom, top), aspect="auto")
    axes.set_axis_off()
    for outlines, style in _layers(changed, findings):
        axes.add_collection(PolyCollection([np.asarray(points) for points in outlines], **style), autolim=False)
    _write_captions(axes, changed, findings, window)
    buffer = io.BytesIO()
    # outlines are thin and coloured: no colour subsampling
    figure.savefig(buffer, format="jpg", dpi=_DPI, pil_kwargs={"quality": 82, "subsampling": 0})
    return buffer.getvalue()


def _layers(changed: ChangedImage, findings: Findings) -> Iterable[tuple[Sequence[np.ndarray], dict[str, Any]]]:
    """Outlines with their style, the lowest first."""
    boxes = findings.outlines_px
    yield changed.ignored_px, {"facecolor": f"{IGNORED}40", "edgecolor": IGNORED, "hatch": "///", "linewidth": 0.8}
    missed = _chosen(changed.labels_px, ~findings.is_found)
    yield missed, {"facecolor": f"{MISSED}30", "edgecolor": MISSED, "linestyle": ":", "linewidth": 1.2}
    unused = _chosen(boxes, findings.is_ignored)
    yield unused, {"facecolor": "none", "edgecolor": IGNORED, "linewidth": 1.2}
    yield _chosen(boxes, findings.is_wrong), {"facecolor": "none", "edgecolor": WRONG, "linewidth": 1.4}
    yield _chosen(boxes, findings.is_right), {"facecolor": "none", "edgecolor": RIGHT, "linewidth": 1.4}


def _write_captions(axes: Axes, changed: ChangedImage, findings: Findings, window: Window) -> None:
    """Beside every box and every missed label that has one: above its top left corner, as far as the window goes."""
    left, top, right, bottom = window
    written = [
        *((changed.labels_px, changed.captions, ~findings.is_found, MISSED),) * bool(changed.captions),
        *((findings.outlines_px, findings.captions, findings.is_right, RIGHT),) * bool(findings.captions),
        *((findings.outlines_px, findings.captions, findings.is_wrong, WRONG),) * bool(findings.captions),
    ]
    font = FontProperties(fname=None if changed.font is None else str(changed.font), size=7)
    halo = [withStroke(linewidth=2, foreground="white")]
    for outlines, captions, is_shown, colour in written:
        for outline, caption in zip(_chosen(outlines, is_shown), _chosen(captions, is_shown), strict=True):
            x, y = outline.min(axis=0)
            if left <= x < right and top <= y < bottom:
                axes.text(
                    x, y, caption, color=colour, fontproperties=font, va="bottom", path_effects=halo, clip_on=True
                )


def _centres(outlines: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([points.mean(axis=0) for points in outlines]).reshape(-1, 2)


def _chosen(values: Sequence[Any], mask: np.ndarray) -> list[Any]:
    return [value for value, is_chosen in zip(values, mask.tolist(), strict=True) if is_chosen]


def _shrunk(image: np.ndarray, width_px: int = _WIDTH_PX) -> np.ndarray:
    """The image divided by the largest whole number that leaves the drawing's width; means of blocks, uint8."""
    factor = max(1, image.shape[1] // width_px)
    height, width = (side // factor * factor for side in image.shape[:2])
    blocks = image[:height, :width].reshape(height // factor, factor, width // factor, factor, 3)
    return blocks.mean(axis=(1, 3)).round().astype(np.uint8)
