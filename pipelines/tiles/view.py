"""What a window of an image shows of its objects."""

from __future__ import annotations

import numpy as np

from pipelines.records import DefectAnnotation
from pipelines.tiles.grid import Window

# less of a pixel colours nothing, and rounding to float32 in a larger frame would leave an empty box of it
_SHOWS_NOTHING_PX = 0.125


def view_boxes(
    annotation: DefectAnnotation, window_xyxy: Window, min_visible: float = 0.6, min_side_px: float = 4.0
) -> DefectAnnotation:
    """The annotation of a window: every box cut to it; what was cut too much becomes an ignore region.

    With w, h the sides of a box and W, H those of the window, an object stays one if what is seen of it has at
    least `min_visible` of the area min(w, W) min(h, H), the most that such a window can show. For an object that fits,
    that is its own area; of a long scratch, a piece through most of the window counts, and `merge_tiles` joins it
    again. Besides, no seen side may be under `min_side_px` unless it is whole: a sliver teaches nothing.
    Objects outside the window are gone, ignore regions stay ignored.

    Args:
        annotation: boxes in pixels of the image.
        window_xyxy: left, top, right, bottom in pixels of the image.
        min_visible: 0 to 1.
        min_side_px: pixels of the image.

    Returns:
        Boxes inside the window, in its pixels (the window's corner is the origin), in order.
    """
    boxes = annotation.boxes_xyxy_px.astype(np.float64)
    origin, end = np.array(window_xyxy[:2]), np.array(window_xyxy[2:])
    low, high = np.maximum(boxes[:, :2], origin), np.minimum(boxes[:, 2:], end)
    seen_wh, whole_wh = high - low, boxes[:, 2:] - boxes[:, :2]

    at_best = np.minimum(whole_wh, end - origin).prod(axis=1)
    is_hidden = seen_wh.prod(axis=1) < min_visible * at_best
    is_sliver = (seen_wh < np.minimum(whole_wh, min_side_px)).any(axis=1)
    is_seen = ((seen_wh > 0) & (seen_wh >= np.minimum(whole_wh, _SHOWS_NOTHING_PX))).all(axis=1)
    return DefectAnnotation(
        boxes_xyxy_px=np.concatenate((low - origin, high - origin), axis=1)[is_seen],
        class_ids=annotation.class_ids[is_seen],
        is_ignored=(annotation.is_ignored | is_hidden | is_sliver)[is_seen],
    )
