"""One image of a factory's camera, whose boxes are measured on the pixels that its defects changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import cv2
import numpy as np

from pipelines.records import DefectAnnotation
from pipelines.synthesis.factory_marks import Mark, Stage, draw_dent, draw_pit, draw_scratch, draw_stain
from pipelines.synthesis.factory_optics import BLUR_REACH_PX, Optics, draw_optics
from pipelines.synthesis.factory_structure import add_structure
from pipelines.synthesis.factory_surfaces import SURFACES

MIN_SIDE_PX = 128
MIN_BOX_SIDE_PX = 5
VISIBLE_CONTRASTS = (8.0, 16.0)
"""Grey levels from which on a changed pixel counts: on a smooth surface, and at most, since a regular texture hides
less than its own contrast."""
CLEAR_RATIO = 2.3
"""How far beyond visible the strongest tenth of a defect's pixels is."""
TOUCHED_CONTRAST = 0.5
"""Less than this is no change: it vanishes in the rounding to whole grey levels."""
_HIDING_TEXTURE = 18.0
"""Grey levels of texture from which on marks need not be stronger: only a regular one is so strong."""
_MAX_TRIES = 60

DEFECTS: Mapping[str, Callable[[np.random.Generator, Stage], Mark]] = MappingProxyType(
    {"scratch": draw_scratch, "pit": draw_pit, "stain": draw_stain, "dent": draw_dent}
)
CLASSES = tuple(DEFECTS)
CLASS_SHARES = (0.42, 0.3, 0.2, 0.08)
"""How often each class is drawn; dents are rare."""


@dataclass(frozen=True, eq=False)
class FactoryImage:
    """A drawn image and what its labels follow from.

    Attributes:
        image: what the camera delivers, uint8 BGR (height, width, 3).
        annotation: the defects, in the order of their boxes' drawing.
        clean: the sensor before noise and without defects, float32 (height, width, 3).
        marked: the same with defects; `clean` itself in an OK image.
        visible_contrast: grey levels from which on a difference of the two counts.
    """

    image: np.ndarray
    annotation: DefectAnnotation
    clean: np.ndarray
    marked: np.ndarray
    visible_contrast: float


def draw_factory_image(rng: np.random.Generator, size_hw: tuple[int, int], class_ids: Sequence[int]) -> FactoryImage:
    """One image with one defect for each of `class_ids` (positions in `CLASSES`); none of them: an OK image.

    Every box is the extent of the pixels that its defect changes by `visible_contrast` or more on the sensor,
    after light and blur and before noise. A defect that would be too faint or too thin to see, or would touch
    another one, is drawn anew.

    Args:
        rng: the only source of chance.
        size_hw: (height, width), at least 128 each.
        class_ids: of the defects.

    Raises:
        ValueError: a side is under 128, or there is no room for so many defects.
    """
    if min(size_hw) < MIN_SIDE_PX:
        raise ValueError(f"size_hw must be at least {MIN_SIDE_PX} on each side, but got {tuple(size_hw)}")
    surface = list(SURFACES.values())[rng.integers(len(SURFACES))]
    light_radians = float(rng.uniform(0, 2 * np.pi))
    grey = surface.draw(rng, size_hw, light_radians)
    texture = _texture_contrast(grey)
    stage = Stage(size_hw, light_radians, strength=20 + 1.5 * min(texture, _HIDING_TEXTURE))
    is_hole = add_structure(rng, grey, surface, stage)
    scene = grey[..., None] * np.array(surface.tints_bgr[rng.integers(len(surface.tints_bgr))], dtype=np.float32)
    part = _Part(scene, draw_optics(rng, size_hw), is_hole, texture)
    clean = part.optics.exposed(scene)
    boxes = [part.add_defect(rng, class_id, stage) for class_id in class_ids]
    marked = part.optics.exposed(part.scene) if boxes else clean
    annotation = DefectAnnotation(
        np.array(boxes, dtype=np.float32).reshape(-1, 4),
        np.array(class_ids, dtype=np.int64),
        np.zeros(len(boxes), dtype=bool),
    )
    return FactoryImage(part.optics.sensed(rng, marked), annotation, clean, marked, part.visible_contrast)


def _texture_contrast(grey: np.ndarray) -> float:
    """Standard deviation of a surface's fine structure, grey levels."""
    return float((grey - cv2.blur(grey, (31, 31))).std())


class _Part:
    """A part on its way under the camera, with the defects it has so far; it owns its `scene` and changes it."""

    def __init__(self, scene: np.ndarray, optics: Optics, taken: np.ndarray, texture: float) -> None:
        self.scene, self.optics = scene, optics
        self.visible_contrast = min(max(texture, VISIBLE_CONTRASTS[0]), VISIBLE_CONTRASTS[1])
        self._taken = taken

    def add_defect(self, rng: np.random.Generator, class_id: int, stage: Stage) -> tuple[int, int, int, int]:
        """Draw a defect that can be seen and stands alone; its box, pixels."""
        for attempt in range(_MAX_TRIES):
            # where a large one found no room a smaller one may, and a faint one is seen when it is stronger
            share = attempt / _MAX_TRIES
            eased = replace(stage, reach=1 - share, strength=stage.strength * (1 + share))
            box = self._placed(DEFECTS[CLASSES[class_id]](rng, eased), stage.size_hw)
            if box:
                return box
        raise ValueError(f"no room for another {CLASSES[class_id]} in {stage.size_hw} after {_MAX_TRIES} tries")

    def _placed(self, mark: Mark, size_hw: tuple[int, int]) -> tuple[int, int, int, int] | None:
        """Draw a mark and return the box of its visible pixels; None, and nothing drawn, if it is not a fair one."""
        window = mark.window_xyxy(size_hw, margin_px=2 * BLUR_REACH_PX)
        left, top, right, bottom = window
        before = self.scene[top:bottom, left:right]
        after = before.copy()
        mark.draw_on(after, (left, top))
        change = np.abs(self.optics.exposed(after, window) - self.optics.exposed(before, window)).max(axis=2)
        touched, taken = change > TOUCHED_CONTRAST, self._taken[top:bottom, left:right]
        box = _extent(change >= self.visible_contrast)
        if box is None or (touched & taken).any() or not self._is_clear(change):
            return None
        self.scene[top:bottom, left:right] = after
        taken |= touched
        return box[0] + left, box[1] + top, box[2] + left, box[3] + top

    def _is_clear(self, change: np.ndarray) -> bool:
        """Whether the strongest tenth of the visible pixels stands out."""
        visible = change[change >= self.visible_contrast]
        return bool(np.quantile(visible, 0.9) >= CLEAR_RATIO * self.visible_contrast)


def _extent(mask: np.ndarray) -> tuple[int, int, int, int] | None:
    """Box around the pixels of a mask, right and bottom exclusive; None if it is thinner than a defect may be."""
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    if min(np.ptp(columns) if len(columns) else 0, np.ptp(rows) if len(rows) else 0) + 1 < MIN_BOX_SIDE_PX:
        return None
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
