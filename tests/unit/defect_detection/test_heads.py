"""What a head says, in one form: equal to ppdet's own evaluation forward, with points where the pixels are.

pytest tests/unit/defect_detection/test_heads.py
"""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from pipelines.defect_detection.heads import dense_outputs, head_kind, num_bins
from pipelines.errors import UsageError
from tests.detectors import blotches
from tests.unit.defect_detection.networks import CLASSES, NETWORKS, SIZE_HW, network_of

STRIDES = {"PicoHead": (8, 16, 32, 64), "PicoHeadV2": (8, 16, 32, 64), "PPYOLOEHead": (32, 16, 8)}


@pytest.mark.parametrize("name", NETWORKS)
@paddle.no_grad()
def test_scores_and_boxes_are_those_of_ppdets_own_forward(name: str) -> None:
    network = network_of(name)
    images = paddle.to_tensor(np.stack([blotches(0, SIZE_HW), blotches(1, SIZE_HW)]))
    features = network.neck(network.backbone({"image": network.normalise(images)}))
    dense = dense_outputs(network.head, features)
    if network.kind == "PPYOLOEHead":
        scores, distances, points, strides = network.head.forward_eval(features)
        boxes = paddle.concat([points - distances[..., :2], points + distances[..., 2:]], axis=-1) * strides
    else:
        scores, boxes = network.head.forward_eval(features)
    np.testing.assert_allclose(dense.scores.numpy(), scores.transpose([0, 2, 1]).numpy(), atol=1e-6)
    np.testing.assert_allclose(dense.boxes_px.numpy(), boxes.numpy(), atol=1e-3)
    assert dense.scores.numpy().std() > 0.01 and dense.boxes_px.numpy().std() > 10


@pytest.mark.parametrize("name", NETWORKS)
@paddle.no_grad()
def test_points_are_the_middles_of_their_cells_row_by_row_map_by_map(name: str) -> None:
    network = network_of(name)
    dense = network(paddle.to_tensor(blotches(0, SIZE_HW)[None]))
    by_hand = [
        (stride * (column + 0.5), stride * (row + 0.5), stride)
        for stride in STRIDES[network.kind]
        for row in range(-(-SIZE_HW[0] // stride))
        for column in range(-(-SIZE_HW[1] // stride))
    ]
    points = np.hstack([dense.points_px.numpy(), dense.strides_px.numpy()])
    np.testing.assert_array_equal(points, np.array(by_hand, np.float32))
    assert sum(dense.level_sizes) == len(by_hand)
    assert tuple(dense.scores.shape) == (1, len(by_hand), len(CLASSES))
    assert tuple(dense.distribution.shape) == (1, len(by_hand), 4, num_bins(network.head))
    assert (dense.logits is None) == (network.kind == "PicoHeadV2")


@pytest.mark.parametrize("name", NETWORKS)
@paddle.no_grad()
def test_an_images_findings_do_not_depend_on_its_place_in_the_batch(name: str) -> None:
    network = network_of(name)
    images = np.stack([blotches(seed, SIZE_HW) for seed in range(3)])
    forward, backward = (network(paddle.to_tensor(order.copy())) for order in (images, images[::-1]))
    np.testing.assert_allclose(forward.scores.numpy(), backward.scores.numpy()[::-1], atol=1e-5)
    np.testing.assert_allclose(forward.boxes_px.numpy(), backward.boxes_px.numpy()[::-1], atol=1e-2)
    assert np.abs(forward.scores.numpy() - backward.scores.numpy()).max() > 0.01  # the control: the images do differ


def test_a_head_without_adapter_is_named() -> None:
    class FCOSHead:
        pass

    with pytest.raises(UsageError, match=r"head FCOSHead: only PicoHead, PicoHeadV2, PPYOLOEHead have an adapter"):
        head_kind(FCOSHead())
