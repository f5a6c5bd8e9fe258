"""The gradient of a window's loss, one micro-batch at a time.

The loss is L = F(S) with S = sum over micro-batches k of s_k (`Task.statistics`, `Task.combine`), so

    grad L = sum over k of grad(lambda . s_k),    lambda = dF/dS at the window's totals.

Every method below runs the same backward, of lambda . s_k; they differ in when lambda is known:

    labels   before the first forward, from the labels
    rescale  up to one divisor, by which the sum is divided at the end
    replay   after a first pass over the window without graph
    mean     never: each micro-batch takes lambda at its own sums (the classic mean of means, kept to compare with)

Derivation and proofs: docs/accumulation.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import paddle

from pipelines.engine.gradient_buffer import GradientBuffer
from pipelines.engine.precision import Precision
from pipelines.errors import UsageError
from pipelines.records import MicroBatch
from pipelines.task import Task

Statistics = dict[str, paddle.Tensor]


@dataclass
class Accumulated:
    """What one window left behind, still on the device.

    Attributes:
        totals: the window's sums.
        weights: lambda of each micro-batch, as its backward used it.
        factor: what the buffer must still be multiplied by (1 but for `rescale`).
        finite: per micro-batch, a bool scalar: its gradient was finite and is in the buffer.
        replay_error: the largest relative difference between the two passes of `replay`, or None.
    """

    totals: Statistics
    weights: list[Statistics] = field(default_factory=list)
    factor: paddle.Tensor | None = None
    finite: list[paddle.Tensor] = field(default_factory=list)
    replay_error: paddle.Tensor | None = None


def accumulate(
    task: Task,
    window: Sequence[MicroBatch],
    method: str,
    buffer: GradientBuffer,
    *,
    precision: Precision | None = None,
    loss_scale: float = 1.0,
) -> Accumulated:
    """Fill `buffer` with the gradient of the window's loss times `loss_scale`.

    Args:
        task: the model with its loss.
        window: the micro-batches of one update, of any sizes and shapes; not empty.
        method: "exact" (the task's cheapest exact method), "labels", "rescale", "replay" or "mean".
        buffer: receives the sum; it is reset first.
        precision: what the forward computes in; float32 when None.
        loss_scale: constant factor on every backward.

    Raises:
        UsageError: the method does not exist, or the task's loss is not of the form it needs.
    """
    if not window:
        raise ValueError("a window needs at least one micro-batch")
    resolved = resolve_method(task, method)
    buffer.reset()
    step = _Step(task, buffer, precision or Precision(), loss_scale)
    return _METHODS[resolved](step, list(window))


def resolve_method(task: Task, method: str) -> str:
    """The method that will run for `method`, or a refusal that says what the task allows."""
    if method == "exact":
        return task.exact_by
    if method not in _METHODS:
        raise UsageError(f"train.accumulation must be exact or one of {', '.join(_METHODS)}, but got {method!r}")
    if method in ("labels", "rescale") and method != task.exact_by:
        raise UsageError(
            f"train.accumulation {method!r} is not exact for this loss, which needs {task.exact_by!r}; use 'exact'"
        )
    return method


def derivative(task: Task, totals: Statistics) -> Statistics:
    """lambda = dF/dS at `totals`: one number a statistic (0 where the loss does not depend on it)."""
    leaves = {name: total.detach() for name, total in totals.items()}
    for leaf in leaves.values():
        leaf.stop_gradient = False
    with paddle.enable_grad():
        loss = task.combine(leaves)["loss"]
        gradients = paddle.grad(loss, list(leaves.values()), allow_unused=True)
    zero = paddle.zeros_like(loss)
    return {name: zero if gradient is None else gradient for name, gradient in zip(leaves, gradients, strict=True)}


def sum_statistics(parts: Sequence[Statistics]) -> Statistics:
    """Add the statistics of several micro-batches, name by name, without their graphs."""
    return {name: paddle.add_n([part[name].detach() for part in parts]) for name in parts[0]}


class _Step:
    """Forward and backward of one micro-batch, with what stays the same over a window."""

    def __init__(self, task: Task, buffer: GradientBuffer, precision: Precision, loss_scale: float):
        self.task = task
        self._buffer = buffer
        self._precision = precision
        self._loss_scale = loss_scale

    def forward(self, micro_batch: MicroBatch) -> Statistics:
        with self._precision.autocast():
            return self.task.statistics(micro_batch)

    def backward(self, statistics: Statistics, weights: Statistics) -> paddle.Tensor:
        """Backward of lambda . s into the buffer; returns whether the gradient was finite, as a tensor."""
        terms = [weights[name] * value for name, value in statistics.items() if not value.stop_gradient]
        if terms:
            (paddle.add_n(terms) * self._loss_scale).backward()
        return self._buffer.take()


def _by_replay(step: _Step, window: list[MicroBatch]) -> Accumulated:
    *others, last = window
    states, first_pass = [], []
    with paddle.no_grad():
        for micro_batch in others:
            states.append(paddle.get_rng_state())
            first_pass.append(step.forward(micro_batch))
    # the last micro-batch's graph is kept, so its forward serves both passes
    kept = step.forward(last)
    totals = sum_statistics([*first_pass, kept])
    weights = derivative(step.task, totals)
    last_finite = step.backward(kept, weights)
    del kept
    finite, errors = [], [paddle.zeros_like(next(iter(totals.values())))]
    for micro_batch, state, before in zip(others, states, first_pass, strict=True):
        with _random_state(state):
            now = step.forward(micro_batch)
        errors.extend((now[name].detach() - before[name]).abs() / (totals[name].abs() + 1e-12) for name in now)
        finite.append(step.backward(now, weights))
    return Accumulated(
        totals, [weights] * len(window), None, [*finite, last_finite], paddle.stack(errors).max()
    )


def _by_mean(step: _Step, window: list[MicroBatch]) -> Accumulated:
    num_samples = sum(len(micro_batch) for micro_batch in window)
    parts, all_weights, finite = [], [], []
    for micro_batch in window:
        statistics = step.forward(micro_batch)
        share = len(micro_batch) / num_samples
        weights = {name: value * share for name, value in derivative(step.task, statistics).items()}
        finite.append(step.backward(statistics, weights))
        parts.append({name: value.detach() for name, value in statistics.items()})
        all_weights.append(weights)
    return Accumulated(sum_statistics(parts), all_weights, None, finite)


def _by_labels(step: _Step, window: list[MicroBatch]) -> Accumulated:
    labels = sum_statistics([step.task.label_statistics(micro_batch) for micro_batch in window])

    def weights_from(statistics: Statistics) -> Statistics:
        # F is linear in the sums of predictions, so lambda does not depend on their values
        return derivative(step.task, {name: labels.get(name, paddle.zeros_like(s)) for name, s in statistics.items()})

    return _one_pass(step, window, weights_from)


def _by_rescale(step: _Step, window: list[MicroBatch]) -> Accumulated:
    divisor = step.task.divisor

    def weights_from(statistics: Statistics) -> Statistics:
        at = {name: paddle.zeros_like(value) for name, value in statistics.items()}
        at[divisor] = paddle.ones_like(at[divisor])
        return derivative(step.task, at)

    accumulated = _one_pass(step, window, weights_from)
    unit, true = accumulated.weights[0], derivative(step.task, accumulated.totals)
    names = [name for name in unit if name != divisor]
    largest = paddle.stack([unit[name].abs() for name in names]).argmax()
    accumulated.factor = paddle.stack([true[name] for name in names])[largest] / paddle.stack(
        [unit[name] for name in names]
    )[largest]
    return accumulated


def _one_pass(
    step: _Step, window: list[MicroBatch], weights_from: Callable[[Statistics], Statistics]
) -> Accumulated:
    """Forward and backward of each micro-batch with weights that the first one's names suffice to know."""
    parts: list[Statistics] = []
    finite: list[paddle.Tensor] = []
    weights: Statistics = {}
    for micro_batch in window:
        statistics = step.forward(micro_batch)
        weights = weights or weights_from(statistics)
        finite.append(step.backward(statistics, weights))
        parts.append({name: value.detach() for name, value in statistics.items()})
    return Accumulated(sum_statistics(parts), [weights] * len(window), None, finite)


@contextmanager
def _random_state(state: list[object]) -> Iterator[None]:
    """Run as if the random state were `state`, then go on from where it was."""
    now = paddle.get_rng_state()
    paddle.set_rng_state(state)
    try:
        yield
    finally:
        paddle.set_rng_state(now)


_METHODS: dict[str, Callable[[_Step, list[MicroBatch]], Accumulated]] = {
    "labels": _by_labels,
    "rescale": _by_rescale,
    "replay": _by_replay,
    "mean": _by_mean,
}
