"""Which point answers for which defect: the same whatever else is in the batch, never for padding or ignore regions.

pytest tests/unit/defect_detection/test_assignment.py
"""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from pipelines.defect_detection.assignment import Assignment, assign
from pipelines.defect_detection.heads import Dense
from pipelines.engine.recovery import evenly_split
from pipelines.records import DefectAnnotation, MicroBatch
from tests.unit.defect_detection.networks import (
    NETWORKS,
    TASK_ALIGNED,
    annotation_of,
    mixed_batch,
    network_of,
    sample_of,
    task_of,
)

FIELDS = ("is_positive", "is_labelled", "scores", "boxes", "weights", "counts")


def assigned(name: str, batch: MicroBatch) -> tuple[Dense, Assignment]:
    network = network_of(name)
    with paddle.no_grad():
        dense = network(paddle.to_tensor(batch.images))
    return dense, assign(network.head, dense, dict(batch.targets))


@pytest.mark.parametrize("name", NETWORKS)
def test_splitting_a_batch_changes_no_assignment(name: str) -> None:
    """The predictions are taken from the whole batch, so that only the assigner sees the split."""
    batch = mixed_batch()
    dense, whole = assigned(name, batch)
    for i, single in enumerate(evenly_split(batch, 1)):
        view = Dense(
            dense.scores[i : i + 1],
            None if dense.logits is None else dense.logits[i : i + 1],
            dense.distribution[i : i + 1],
            dense.boxes[i : i + 1],
            dense.points_px,
            dense.strides_px,
            dense.level_sizes,
        )
        alone = assign(network_of(name).head, view, dict(single.targets))
        chosen = alone.is_positive.numpy()[0]
        for field in FIELDS:
            ours, theirs = getattr(alone, field).numpy()[0], getattr(whole, field).numpy()[i]
            if field == "boxes":  # meaningless where nothing is positive
                ours, theirs = ours[chosen], theirs[chosen]
            assert np.array_equal(ours, theirs), field


@pytest.mark.parametrize("name", NETWORKS)
def test_every_defect_gets_points_inside_it_and_an_image_without_any_gets_none(name: str) -> None:
    batch = mixed_batch()
    dense, result = assigned(name, batch)
    points = dense.points_px.numpy()
    for i, kinds in enumerate(batch.targets["kinds"]):
        positive = result.is_positive.numpy()[i]
        wanted = (result.boxes * dense.strides_px).numpy()[i][positive]
        boxes = batch.targets["boxes"][i][kinds == 1]
        assert {tuple(box) for box in np.round(wanted, 2)} <= {tuple(box) for box in np.round(boxes, 2)}
        assert positive.any() == bool(len(boxes))
        # inside any of them: where defects overlap, ppdet gives a point to the one that its box fits best
        corners = points[positive][:, None]
        inside = ((corners > boxes[:, :2]) & (corners < boxes[:, 2:])).all(-1).any(-1)
        if name in TASK_ALIGNED:
            assert inside.all()
        elif len(boxes):
            assert inside.mean() > 0.5  # SimOTA also takes points near the middle of a small box


@pytest.mark.parametrize("name", NETWORKS)
def test_scores_and_weights_are_zero_exactly_where_nothing_is_positive(name: str) -> None:
    _, result = assigned(name, mixed_batch())
    positive = result.is_positive.numpy()
    assert not result.scores.numpy()[~positive].any() and not result.weights.numpy()[~positive].any()
    assert (result.weights.numpy()[positive] > 0).all()
    assert (result.scores.numpy() >= 0).all() and (result.scores.numpy() <= 1).all()
    assert ((result.scores.numpy() > 0).sum(-1) <= 1).all()  # a point answers for one class


@pytest.mark.parametrize("name", NETWORKS)
def test_only_points_in_ignore_regions_stop_counting(name: str) -> None:
    annotation = annotation_of([[8, 8, 70, 60], [90, 20, 140, 100]], [0, 3], [True, False])
    dense, result = assigned(name, MicroBatch.of([sample_of(annotation), sample_of(DefectAnnotation(), 1)]))
    points = dense.points_px.numpy()
    inside = (points > [8, 8]).all(1) & (points < [70, 60]).all(1)
    counts = result.counts.numpy()
    assert not counts[0][inside].any() and inside.sum() > 20
    assert counts[0][~inside].all() and counts[1].all()
    assert not result.is_positive.numpy()[0][inside].any()


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_of_an_assignment_carries_a_gradient(name: str) -> None:
    network, batch = network_of(name), mixed_batch()
    dense = network(paddle.to_tensor(batch.images))
    assert not dense.scores.stop_gradient  # the control: the predictions do
    result = assign(network.head, dense, dict(batch.targets))
    assert all(getattr(result, field).stop_gradient for field in FIELDS)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_dataset_without_a_single_box_trains_on_its_background(name: str) -> None:
    batch = MicroBatch.of([sample_of(DefectAnnotation(), seed, max_boxes=0) for seed in range(2)])
    assert batch.targets["boxes"].shape == (2, 1, 4)  # with no row at all ppdet's assigner answers in another form
    assert float(task_of(name).statistics(batch)["class_error"]) > 0
