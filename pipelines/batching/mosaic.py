"""Mosaics: a sample of two by two pieces, each from an image of its own, as YOLOv4 has them.

Bochkovskiy, Wang, Liao 2020, https://arxiv.org/abs/2004.10934. Where defects are small and rare, most of what a sample
shows teaches nothing; four small pieces with a defect each cost as much as one piece with one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipelines.batching.shapes import ShapeChoice
from pipelines.records import DefectAnnotation

NUM_COMPANIONS = 3
"""Pieces of a mosaic beside the first."""


def piece_choice(choice: ShapeChoice) -> ShapeChoice:
    """The shape of each piece of a mosaic: half as high and half as wide."""
    height, width = choice.crop_hw
    return replace(choice, crop_hw=(height // 2, width // 2))


def assembled(pieces: Sequence[tuple[np.ndarray, DefectAnnotation]]) -> tuple[np.ndarray, DefectAnnotation]:
    """Lay four pieces of one shape side by side.

    Args:
        pieces: images uint8 (h, w, 3) with annotations in their pixels: top left, top right, bottom left, bottom right.

    Returns:
        uint8 image (2 h, 2 w, 3), and all boxes in its pixels.
    """
    images = [image for image, _ in pieces]
    height, width = images[0].shape[:2]
    offsets = [(x, y, x, y) for y in (0, height) for x in (0, width)]
    annotations = [annotation for _, annotation in pieces]
    boxes = [one.boxes_xyxy_px + np.array(offset, np.float32) for one, offset in zip(annotations, offsets, strict=True)]
    return np.vstack([np.hstack(images[:2]), np.hstack(images[2:])]), DefectAnnotation(
        np.concatenate(boxes),
        np.concatenate([one.class_ids for one in annotations]),
        np.concatenate([one.is_ignored for one in annotations]),
    )
