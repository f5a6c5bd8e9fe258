"""What the three heads say at every anchor point, in one form.

ppdet's heads differ in how class scores come about and agree on boxes: four distances from the anchor point to the
box's sides, each the mean of a distribution over 0, 1, ..., reg_max strides (Generalized Focal Loss, Li et al. 2020,
https://arxiv.org/abs/2006.04388).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import paddle
import paddle.nn.functional as F

from pipelines.errors import UsageError

HeadKind = Literal["PicoHead", "PicoHeadV2", "PPYOLOEHead"]
_ALIGNMENT_EPS = 1e-9  # under the root, as in PicoHeadV2.forward_train


@dataclass(frozen=True, eq=False)
class Dense:
    """One prediction per anchor point; n images, a points, c classes, r bins of a distance.

    Attributes:
        scores: (n, a, c), 0 to 1.
        logits: (n, a, c) before the sigmoid, or None where the score is no sigmoid (PicoHeadV2).
        distribution: (n, a, 4, r), logits of the distances left, top, right, bottom.
        boxes: (n, a, 4), left, top, right, bottom in strides.
        points_px: (a, 2), centres x, y in input pixels.
        strides_px: (a, 1).
        level_sizes: number of points of each map, summing to a.
    """

    scores: paddle.Tensor
    logits: paddle.Tensor | None
    distribution: paddle.Tensor
    boxes: paddle.Tensor
    points_px: paddle.Tensor
    strides_px: paddle.Tensor
    level_sizes: tuple[int, ...]

    @property
    def boxes_px(self) -> paddle.Tensor:
        """(n, a, 4) in input pixels."""
        return self.boxes * self.strides_px


def head_kind(head: Any) -> HeadKind:
    """Which of the known heads this is.

    Raises:
        UsageError: none of them.
    """
    name = type(head).__name__
    if name not in _MAPS:
        raise UsageError(f"head {name}: only {', '.join(_MAPS)} have an adapter")
    return name  # type: ignore[return-value]


def dense_outputs(head: Any, features: list[paddle.Tensor]) -> Dense:
    """Run a head on the neck's maps."""
    maps = [_MAPS[type(head).__name__](head, feature, level) for level, feature in enumerate(features)]
    num_classes = head.num_classes
    scores = paddle.concat([_flat(score, num_classes) for score, _, _ in maps], axis=1)
    logits = None
    if maps[0][1] is not None:
        logits = paddle.concat([_flat(logit, num_classes) for _, logit, _ in maps], axis=1)
    regression = paddle.concat([_flat(distances, distances.shape[1]) for _, _, distances in maps], axis=1)
    distribution = regression.reshape([0, 0, 4, num_bins(head)])
    points_px, strides_px = anchor_points(head, features)
    boxes = _decoded(distribution, points_px / strides_px)
    sizes = tuple(feature.shape[2] * feature.shape[3] for feature in features)
    return Dense(scores, logits, distribution, boxes, points_px, strides_px, sizes)


def num_bins(head: Any) -> int:
    """Bins of one distance's distribution."""
    return int(head.reg_channels) if type(head).__name__ == "PPYOLOEHead" else int(head.reg_max) + 1


def anchor_points(head: Any, features: list[paddle.Tensor]) -> tuple[paddle.Tensor, paddle.Tensor]:
    """Centres (a, 2) and strides (a, 1) in input pixels, row by row, map by map, in the dtype of the maps."""
    is_pico = hasattr(head, "cell_offset")
    offset = head.cell_offset if is_pico else head.grid_cell_offset
    points, strides = [], []
    for feature, stride in zip(features, head.fpn_stride if is_pico else head.fpn_strides, strict=True):
        height, width = _size_hw(feature)
        y, x = paddle.meshgrid(paddle.arange(height), paddle.arange(width))
        centres = paddle.stack([x, y], axis=-1).reshape([-1, 2]).astype(feature.dtype)
        points.append((centres + offset) * stride)
        strides.append(paddle.full([height * width, 1], stride, dtype=feature.dtype))
    return paddle.concat(points), paddle.concat(strides)


def _size_hw(feature: paddle.Tensor) -> tuple[Any, Any]:
    """Height and width of a map; tensors while a static graph is drawn, which leaves the size of its input open."""
    if paddle.in_dynamic_mode():
        return feature.shape[2], feature.shape[3]
    shape = paddle.shape(feature)
    return shape[2], shape[3]


def _decoded(distribution: paddle.Tensor, points: paddle.Tensor) -> paddle.Tensor:
    """Boxes (n, a, 4) in strides from distances' distributions and anchor points (a, 2) in strides."""
    bins = paddle.arange(distribution.shape[-1]).astype(distribution.dtype)
    distances = (F.softmax(distribution, axis=-1) * bins).sum(axis=-1)
    left_top, right_bottom = distances.split(2, axis=-1)
    return paddle.concat([points - left_top, points + right_bottom], axis=-1)


def _flat(values: paddle.Tensor, channels: int) -> paddle.Tensor:
    """(n, channels, height, width) to (n, height * width, channels)."""
    return values.flatten(2).transpose([0, 2, 1]).reshape([0, -1, channels])


Maps = tuple[paddle.Tensor, paddle.Tensor | None, paddle.Tensor]


def _pico_maps(head: Any, feature: paddle.Tensor, level: int) -> Maps:
    class_feature, _ = head.conv_feat(feature, level)
    both = head.head_cls_list[level](class_feature)
    logits, distances = both.split([head.cls_out_channels, 4 * num_bins(head)], axis=1)
    return F.sigmoid(logits), logits, distances


def _pico_v2_maps(head: Any, feature: paddle.Tensor, level: int) -> Maps:
    class_feature, weighted = head.conv_feat(feature, level)
    score = F.sigmoid(head.head_cls_list[level](weighted))
    distances = head.head_reg_list[level](weighted)
    if not head.use_align_head:
        return score, None, distances
    alignment = F.sigmoid(head.cls_align[level](class_feature))
    return (score * alignment + _ALIGNMENT_EPS).sqrt(), None, distances


def _ppyoloe_maps(head: Any, feature: paddle.Tensor, level: int) -> Maps:
    pooled = F.adaptive_avg_pool2d(feature, (1, 1))
    logits = head.pred_cls[level](head.stem_cls[level](feature, pooled) + feature)
    distances = head.pred_reg[level](head.stem_reg[level](feature, pooled))
    return F.sigmoid(logits), logits, distances


_MAPS = {"PicoHead": _pico_maps, "PicoHeadV2": _pico_v2_maps, "PPYOLOEHead": _ppyoloe_maps}
