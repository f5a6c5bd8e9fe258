"""The losses as sums: equal to ppdet's own, finite without defects, blind to ignore regions and padding.

pytest tests/unit/defect_detection/test_statistics.py
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import paddle
import pytest

from pipelines.defect_detection.assignment import assign
from pipelines.defect_detection.heads import Dense
from pipelines.defect_detection.statistics import (
    LossWeights,
    distribution_focal_loss,
    giou_loss,
    legacy_loss,
    task_aligned_loss,
)
from pipelines.defect_detection.targets import PADDING, DefectTargets
from pipelines.defect_detection.task import DefectDetection, loss_weights
from pipelines.records import DefectAnnotation, MicroBatch
from tests.unit.defect_detection.networks import (
    CLASSES,
    MAX_BOXES,
    NETWORKS,
    SIZE_HW,
    annotation_of,
    mixed_batch,
    network_of,
    sample_of,
    task_of,
    upstream_loss,
)

TERMS = ("loss_class", "loss_box", "loss_distribution")


def our_loss(name: str, micro_batch: MicroBatch) -> dict[str, float]:
    task = task_of(name)
    return {key: float(value) for key, value in task.combine(task.statistics(micro_batch)).items()}


def sums_of(name: str, micro_batch: MicroBatch) -> dict[str, float]:
    return {key: float(value) for key, value in task_of(name).statistics(micro_batch).items()}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_loss_of_one_batch_is_ppdets_own(name: str) -> None:
    batch = mixed_batch()
    divisors = [value for key, value in sums_of(name, batch).items() if key in ("scores", "positives", "confidences")]
    assert divisors and min(divisors) > 1  # upstream's floors, one of them absent, make no difference
    ours, upstream = our_loss(name, batch), upstream_loss(network_of(name), batch)
    assert [ours[term] for term in TERMS] == pytest.approx([upstream[term] for term in TERMS], rel=1e-5)
    assert ours["loss"] == pytest.approx(sum(upstream.values()), rel=1e-5)
    assert min(upstream.values()) > 0.01


@pytest.mark.parametrize("name", NETWORKS)
def test_defects_smaller_than_the_grid_are_scored_as_upstream_does(name: str) -> None:
    """A box between the points: SimOTA still gives it one, which may not overlap it; such a point is background."""
    boxes = [[57, 57, 60, 60], [97, 33, 101, 36]]
    batch = MicroBatch.of([sample_of(annotation_of(boxes, [1, 2])), sample_of(annotation_of([[9, 20, 80, 90]]), 1)])
    ours, upstream = our_loss(name, batch), upstream_loss(network_of(name), batch)
    assert [ours[term] for term in TERMS] == pytest.approx([upstream[term] for term in TERMS], rel=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_contrasted_adds_to_the_wrong_classes_of_defects_alone(name: str) -> None:
    """By hand, in float64: at points with a target q, the log-loss of a wrong class weighs max(0.75 p^2, q)."""
    batch, task = mixed_batch(), task_of(name)
    contrasting = DefectDetection(task.network, task.setting, DefectTargets(MAX_BOXES, len(CLASSES)), "contrasted")
    plain, contrasted = (float(one.statistics(batch)["class_error"]) for one in (task, contrasting))
    dense = task.network(paddle.to_tensor(batch.images))
    assigned = assign(task.network.head, dense, dict(batch.targets))
    scores, targets = (values.numpy().astype(np.float64) for values in (dense.scores, assigned.scores))
    more = np.maximum(targets.max(-1, keepdims=True) - 0.75 * scores**2, 0) * ~assigned.is_labelled.numpy()
    assert contrasted - plain == pytest.approx(float((more * -np.log1p(-scores)).sum()), rel=1e-3)
    assert contrasted - plain > 1


@pytest.mark.parametrize("name", NETWORKS)
def test_contrasted_leaves_a_batch_without_any_defect_as_it_is(name: str) -> None:
    batch, task = MicroBatch.of([sample_of(DefectAnnotation(), seed) for seed in range(2)]), task_of(name)
    contrasting = DefectDetection(task.network, task.setting, DefectTargets(MAX_BOXES, len(CLASSES)), "contrasted")
    assert float(contrasting.statistics(batch)["class_error"]) == float(task.statistics(batch)["class_error"])


@pytest.mark.parametrize("name", NETWORKS)
def test_a_batch_without_any_defect_has_a_finite_loss_and_teaches_the_classes(name: str) -> None:
    batch = MicroBatch.of([sample_of(DefectAnnotation(), seed) for seed in range(2)])
    task = task_of(name)
    sums = task.statistics(batch)
    loss = task.combine(sums)
    assert float(sums["class_error"]) > 0
    assert float(loss["loss"]) == pytest.approx(float(sums["class_error"]), rel=1e-6)  # the divisor is floored at 1
    assert float(loss["loss_box"]) == float(loss["loss_distribution"]) == 0.0
    loss["loss"].backward()
    gradients = [p.grad for p in task.network.parameters() if p.grad is not None]
    task.network.clear_gradients()
    assert gradients and all(bool(paddle.isfinite(gradient).all()) for gradient in gradients)


def test_control_upstreams_picodet_loss_is_not_finite_without_a_defect() -> None:
    batch = MicroBatch.of([sample_of(DefectAnnotation(), seed) for seed in range(2)])
    upstream = upstream_loss(network_of("picodet_lcnet_x1_0"), batch)
    assert not all(math.isfinite(value) for value in upstream.values())
    assert all(math.isfinite(value) for value in upstream_loss(network_of("ppyoloe_plus_s"), batch).values())


@pytest.mark.parametrize("name", NETWORKS)
def test_padding_rows_change_nothing(name: str) -> None:
    narrow, wide = sums_of(name, mixed_batch(5)), sums_of(name, mixed_batch(40))
    assert narrow == pytest.approx(wide, rel=1e-6)
    batch = mixed_batch()
    is_padding = batch.targets["kinds"] == PADDING
    boxes = batch.targets["boxes"].copy()
    boxes[is_padding] = (10, 10, 90, 90)  # what lies in a padding row is nobody's defect
    assert sums_of(name, replace(batch, targets={**batch.targets, "boxes": boxes})) == pytest.approx(narrow, rel=1e-6)


def with_ignored(annotation: DefectAnnotation, region: list[float]) -> DefectAnnotation:
    return annotation_of(
        np.vstack([region, annotation.boxes_xyxy_px]), [0, *annotation.class_ids], [True, *annotation.is_ignored]
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_points_in_an_ignore_region_count_nothing_and_the_others_as_before(name: str) -> None:
    """An ignore region over the left half: the class error is the one of the right half's points."""
    defect = annotation_of([[100, 20, 150, 90]], [2])
    half = [0, 0, SIZE_HW[1] / 2, SIZE_HW[0]]
    plain = MicroBatch.of([sample_of(defect)])
    ignoring = MicroBatch.of([sample_of(with_ignored(defect, half))])
    task = task_of(name)
    without, with_region = sums_of(name, plain), sums_of(name, ignoring)
    others = [key for key in without if key != "class_error"]
    assert [with_region[key] for key in others] == pytest.approx([without[key] for key in others], rel=1e-6)
    left_error = background_error(task.network(paddle.to_tensor(plain.images)), x_below=SIZE_HW[1] / 2)
    assert left_error > 1e-3
    assert without["class_error"] - with_region["class_error"] == pytest.approx(left_error, rel=1e-3)


def background_error(dense: Dense, x_below: float) -> float:
    """Varifocal loss of points with nothing to find: 0.75 p^2 * -log(1 - p), over the points left of x."""
    scores = dense.scores.numpy().astype(np.float64)[0, dense.points_px.numpy()[:, 0] < x_below]
    return float((0.75 * scores**2 * -np.log1p(-scores)).sum())


@pytest.mark.parametrize("name", NETWORKS)
def test_an_ignore_region_over_a_defect_does_not_take_its_points_away(name: str) -> None:
    defect = annotation_of([[40, 20, 120, 100]], [2])
    without = sums_of(name, MicroBatch.of([sample_of(defect)]))
    covered = sums_of(name, MicroBatch.of([sample_of(with_ignored(defect, [0, 0, 160, 128]))]))
    for key in without:
        if key == "class_error":
            assert 0 < covered[key] < without[key]  # the points of the defect alone
        else:
            assert covered[key] == pytest.approx(without[key], rel=1e-6)


def test_giou_is_the_hand_computed_one() -> None:
    boxes = [[0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 1, 1], [1, 1, 3, 4]]
    wanted = [[1, 1, 3, 3], [0, 0, 2, 1], [2, 0, 3, 1], [1, 1, 3, 4]]
    # IoU 1/7 with a hull of 9 of which 2 are empty; IoU 1/2, hull full; apart: hull 3 of which 1 is empty; the same
    by_hand = [1 - (1 / 7 - 2 / 9), 1 - 1 / 2, 1 - (0 - 1 / 3), 0]
    result = giou_loss(paddle.to_tensor(boxes, "float32"), paddle.to_tensor(wanted, "float32"))
    np.testing.assert_allclose(result.numpy(), by_hand, atol=1e-6)


def test_distribution_loss_is_the_hand_computed_one() -> None:
    """Four bins with shares 1/10, 2/10, 3/10, 4/10; distances 1.25, 0, 2, 2.5."""
    logits = paddle.to_tensor(np.log(np.tile([0.1, 0.2, 0.3, 0.4], (1, 4, 1))))
    distances = paddle.to_tensor([[1.25, 0.0, 2.0, 2.5]], "float64")
    sides = [
        0.75 * -math.log(0.2) + 0.25 * -math.log(0.3),
        -math.log(0.1),
        -math.log(0.3),
        0.5 * -math.log(0.3) + 0.5 * -math.log(0.4),
    ]
    result = distribution_focal_loss(logits, distances)
    np.testing.assert_allclose(result.numpy(), [sum(sides) / 4], rtol=1e-6)


def test_totals_are_divided_as_documented_and_floored_on_the_total_only() -> None:
    weights = LossWeights(classes=1.0, box=2.0, distribution=0.5, max_distance=6.9)
    errors = {"class_error": 12.0, "box_error": 6.0, "distribution_error": 8.0}

    def parts(loss: object, **divisors: float) -> list[float]:
        totals = {key: paddle.to_tensor(value) for key, value in {**errors, **divisors}.items()}
        combined = loss(totals, weights)  # type: ignore[operator]
        return [float(combined[name]) for name in ("loss", *TERMS)]

    assert parts(task_aligned_loss, scores=4.0) == [7.0, 3.0, 3.0, 1.0]
    assert parts(task_aligned_loss, scores=0.25) == [28.0, 12.0, 12.0, 4.0]
    assert parts(legacy_loss, positives=6.0, confidences=2.0) == [10.0, 2.0, 6.0, 2.0]
    assert parts(legacy_loss, positives=0.0, confidences=0.0) == [28.0, 12.0, 12.0, 4.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("picodet_lcnet_x1_0", LossWeights(1.0, 2.5, 0.5, 6.9)),
        ("picodet_lcnet_x1_0_legacy", LossWeights(1.0, 2.0, 0.25, 6.9)),
        ("ppyoloe_plus_s", LossWeights(1.0, 2.5, 0.5, 15.99)),
    ],
)
def test_the_weights_of_the_terms_are_those_of_the_networks_file(name: str, expected: LossWeights) -> None:
    assert loss_weights(network_of(name)) == expected


def test_the_batches_of_these_tests_hold_what_they_should() -> None:
    kinds = mixed_batch().targets["kinds"]
    assert [int((row == 1).sum()) for row in kinds] == [3, 0, 5]
    assert kinds.shape == (3, MAX_BOXES)
