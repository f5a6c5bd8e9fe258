"""What is tried when a micro-batch does not fit, what is remembered, told, and when it is given up.

Memory of these tests is a number of pixels: a forward of more of them fails as Paddle's allocator does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest

from pipelines.engine.accumulate import accumulate
from pipelines.engine.batch_norm import train_with_frozen_statistics
from pipelines.engine.equivalence import accumulated_gradient, compare, whole_batch_gradient
from pipelines.engine.gradient_buffer import GradientBuffer
from pipelines.engine.recovery import Recovery, evenly_split
from pipelines.errors import OutOfMemoryError
from pipelines.records import MicroBatch
from tests.factories import LOSSES, ToyTask, blank_samples, split, toy_samples, toy_task

PIXELS = 12 * 16
"""Of one image."""


class Room:
    """Refuses forwards of more than `pixels`, with a graph only if `with_graph` (a graph is what takes memory)."""

    def __init__(self, task: ToyTask, pixels: int, *, with_graph: bool = False):
        self.pixels, self.refused, self.sizes = pixels, 0, []
        self._with_graph = with_graph
        task.network.first.register_forward_pre_hook(self)

    def __call__(self, layer: paddle.nn.Layer, inputs: Any) -> None:
        size = inputs[0].shape[0] * inputs[0].shape[2] * inputs[0].shape[3]
        if size > self.pixels and (paddle.is_grad_enabled() or not self._with_graph):
            self.refused += 1
            raise MemoryError("(ResourceExhausted) no room in this test")
        self.sizes.append(inputs[0].shape[0])


def window() -> list[MicroBatch]:
    return split(toy_samples(9), (4, 3, 2))


def run(task: ToyTask, recovery: Recovery, micro_batches: list[MicroBatch] | None = None) -> list[int]:
    """Sizes of the pieces that one window was run in."""
    buffer = GradientBuffer(task.network.parameters())
    done = accumulate(task, micro_batches or window(), "exact", buffer, recovery=recovery)
    return [len(piece.micro_batch) for piece in done.pieces]


@pytest.mark.parametrize("exact_by", LOSSES)
def test_what_does_not_fit_goes_in_halves_and_the_gradient_is_the_whole_batchs(exact_by: str) -> None:
    task = toy_task(exact_by)
    reference = whole_batch_gradient(task, window())
    room = Room(task, 2 * PIXELS)
    gradient, accumulated = accumulated_gradient(task, window(), "exact")
    assert room.refused == 1 and [len(piece.micro_batch) for piece in accumulated.pieces] == [2, 2, 1, 2, 2]
    assert [name for piece in accumulated.pieces for name in piece.micro_batch.sources] == [
        name for micro_batch in window() for name in micro_batch.sources
    ]
    assert compare(gradient, reference).max_relative_error < 1e-9


def test_what_fitted_is_remembered_by_shape_and_told_once() -> None:
    task, told = toy_task("labels"), []
    room, recovery = Room(task, 2 * PIXELS), Recovery(toy_task("labels"), tell=told.append)
    assert run(task, recovery) == [2, 2, 1, 2, 2]
    assert run(task, recovery) == [2, 2, 1, 2, 2]
    assert room.refused == 1 == recovery.num_failures
    assert run(task, recovery, split(toy_samples(8), (8,))) == [2, 2, 2, 2]
    assert told == ["out of memory at 4 x 12 x 16 px: from now on at most 2 of that shape at once"]
    smaller = split(toy_samples(4, size_hw=(8, 8)), (4,))
    assert run(task, recovery, smaller) == [4]


def test_one_image_that_does_not_fit_is_recomputed_and_then_tried_once_more() -> None:
    task, told = toy_task("labels"), []
    room, recovery = Room(task, 0), Recovery(task, tell=told.append)
    with pytest.raises(OutOfMemoryError, match=r"image_0_0.png: one image of 12 x 16 px does not fit in memory, even"):
        run(task, recovery)
    # 4 images, 2, 1, 1 recomputed, and the same again
    assert room.refused == 5
    assert [sentence.split(": ")[1] for sentence in told] == [
        "from now on at most 2 of that shape at once",
        "from now on at most 1 of that shape at once",
        "its activations are computed twice from now on",
    ]


def test_never_recomputes_nothing_and_says_so() -> None:
    task = toy_task("labels")
    Room(task, 0)
    with pytest.raises(OutOfMemoryError, match=r"does not fit in memory\. Use smaller training shapes"):
        run(task, Recovery(task, recompute="never"))


def test_the_largest_side_that_fits_is_found_by_trying() -> None:
    task = toy_task("labels")
    Room(task, 96 * 96)

    def probe(number: int, size_hw: tuple[int, int]) -> MicroBatch:
        return MicroBatch.of(blank_samples(number, size_hw=size_hw))

    large, recovery = split(toy_samples(1, size_hw=(128, 160)), (1,)), Recovery(task)
    recovery.probe = probe
    with pytest.raises(OutOfMemoryError, match=r"128 x 160 px .* 64 x 96 px, longest side 96, was tried and fits\."):
        run(task, recovery, large)


@pytest.mark.parametrize("exact_by", LOSSES)
def test_a_shape_that_never_fits_is_left_out_and_counted_if_the_user_wants_that(exact_by: str) -> None:
    """The gradient is that of the window without it, although its sums were already counted when it failed."""
    task = toy_task(exact_by)
    large = split(toy_samples(2, size_hw=(32, 32), seed=4), (2,))
    reference = whole_batch_gradient(task, window())
    Room(task, 4 * PIXELS, with_graph=True)
    recovery, buffer = Recovery(task, on_oom="skip"), GradientBuffer(task.network.parameters())
    accumulated = accumulate(task, [*large, *window()], "exact", buffer, recovery=recovery)
    assert sum(len(piece.micro_batch) for piece in accumulated.pieces) == 9
    assert recovery.count_skipped([*large, *window()]) == 2
    buffer.release(1.0 if accumulated.factor is None else accumulated.factor)
    found = {name: parameter.grad.numpy() for name, parameter in task.network.named_parameters()}
    assert compare(found, reference).max_relative_error < 1e-9
    with pytest.raises(OutOfMemoryError, match="no image of the window fits in memory"):
        run(task, recovery, large)


def test_a_backward_that_needs_smaller_pieces_than_the_first_pass_begins_a_random_window_anew() -> None:
    """Dropout draws other numbers for two halves than for the whole, so lambda has to be taken again."""
    task = toy_task("replay", dropout=0.5)
    room = Room(task, 2 * PIXELS, with_graph=True)
    paddle.seed(3)
    gradient, accumulated = accumulated_gradient(task, split(toy_samples(8), (4, 4)), "replay")
    assert float(accumulated.mismatch) == 0.0 and room.refused >= 1
    # the last one keeps its graph and goes last; none of this would hold with the numbers drawn for the whole
    first, *others = evenly_split(MicroBatch.of(toy_samples(8)), 2)
    paddle.seed(3)
    reference = whole_batch_gradient(task, [*others, first])
    assert compare(gradient, reference).max_relative_error < 1e-9


def test_without_randomness_a_backward_that_needs_smaller_pieces_goes_on_where_it_is() -> None:
    task = toy_task("replay")
    reference = whole_batch_gradient(task, split(toy_samples(8), (4, 4)))
    room = Room(task, 2 * PIXELS, with_graph=True)
    gradient, _ = accumulated_gradient(task, split(toy_samples(8), (4, 4)), "replay")
    assert compare(gradient, reference).max_relative_error < 1e-9
    # the first one without graph, the second one with graph in vain and then in halves; then both in halves
    assert room.sizes == [4, 2, 2, 2, 2, 2, 2]


@pytest.mark.filterwarnings("ignore:When training, we now always track")
def test_random_state_and_running_statistics_are_put_back_before_the_next_try() -> None:
    """The failure comes behind the BatchNorm, whose statistics have then moved, and behind a draw."""
    task = toy_task("labels", has_batch_norm=True, dropout=0.5)
    task.network.train()
    failures = []

    def fail_once(layer: paddle.nn.Layer, inputs: Any) -> None:
        if not failures:
            failures.append(1)
            raise MemoryError

    task.network.last.register_forward_pre_hook(fail_once)
    buffer = GradientBuffer(task.network.parameters())
    undisturbed = toy_task("labels", has_batch_norm=True, dropout=0.5)
    undisturbed.network.train()
    ones = split(toy_samples(2), (1, 1))
    paddle.seed(1)
    accumulate(task, ones, "exact", buffer, recovery=Recovery(task))
    paddle.seed(1)
    accumulate(undisturbed, ones, "exact", GradientBuffer(undisturbed.network.parameters()))
    assert failures
    for name in ("_mean", "_variance"):
        np.testing.assert_array_equal(
            getattr(task.network.norm, name).numpy(), getattr(undisturbed.network.norm, name).numpy()
        )


def test_a_shape_that_is_planned_to_be_recomputed_is_so_from_the_start() -> None:
    task, told = toy_task("labels"), []
    Room(task, 0)
    recovery = Recovery(task, tell=told.append)
    recovery.plans_recompute = lambda size_hw: size_hw == (12, 16)
    with pytest.raises(OutOfMemoryError):
        run(task, recovery)
    assert not any("computed twice" in sentence for sentence in told)


def test_always_recomputes_from_the_start_and_the_gradient_is_the_same() -> None:
    task = toy_task("replay")
    train_with_frozen_statistics(task.network)
    calls: list[int] = []
    task.network.first.register_forward_pre_hook(lambda layer, inputs: calls.append(1))
    plain, _ = accumulated_gradient(task, window(), "replay")
    num_plain = len(calls)
    calls.clear()
    buffer = GradientBuffer(task.network.parameters())
    accumulate(task, window(), "exact", buffer, recovery=Recovery(task, recompute="always"))
    buffer.release(1.0)
    for name, parameter in task.network.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), plain[name], rtol=1e-12, err_msg=name)
    assert len(calls) >= num_plain


@pytest.mark.parametrize(("number", "most", "sizes"), [(7, 4, [3, 4]), (8, 4, [4, 4]), (5, 1, [1] * 5), (3, 9, [3])])
def test_pieces_are_few_and_even(number: int, most: int, sizes: list[int]) -> None:
    whole = MicroBatch.of(toy_samples(number))
    pieces = evenly_split(whole, most)
    assert [len(piece) for piece in pieces] == sizes
    np.testing.assert_array_equal(np.concatenate([piece.images for piece in pieces]), whole.images)
    np.testing.assert_array_equal(np.concatenate([p.targets["mask"] for p in pieces]), whole.targets["mask"])
