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

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import paddle

from pipelines.engine.gradient_buffer import GradientBuffer, SumOverProcesses, all_finite
from pipelines.engine.precision import Precision
from pipelines.errors import UsageError
from pipelines.records import MicroBatch
from pipelines.task import Task

Statistics = dict[str, paddle.Tensor]


@dataclass
class Accumulated:
    """What one window left behind, still on the device.

    Attributes:
        totals: the window's sums, over all processes.
        weights: lambda of each micro-batch, as its backward used it.
        factor: what the buffer must still be multiplied by, or None for 1.
        finite_sums: per micro-batch, a bool scalar: its own statistics were finite.
        finite_gradients: per micro-batch, a bool scalar: its gradient was finite.
        mismatch: how far, relatively, the lambda that was used is from the one that the sums ask for; for `replay`
            also how far the sums of the two passes are apart. Rounding only, or the gradient is not the whole
            batch's. None for `mean`, which makes no such claim.
    """

    totals: Statistics
    weights: list[Statistics]
    factor: paddle.Tensor | None
    finite_sums: list[paddle.Tensor]
    finite_gradients: list[paddle.Tensor]
    mismatch: paddle.Tensor | None


def accumulate(
    task: Task,
    window: Sequence[MicroBatch],
    method: str,
    buffer: GradientBuffer,
    *,
    precision: Precision | None = None,
    loss_scale: float = 1.0,
    processes: SumOverProcesses | None = None,
) -> Accumulated:
    """Fill `buffer` with the gradient of the window's loss times `loss_scale`.

    Args:
        task: the model with its loss.
        window: the micro-batches of one update, of any sizes and shapes; not empty.
        method: "exact" (the task's cheapest exact method), "labels", "rescale", "replay" or "mean".
        buffer: receives the sum; it is reset first.
        precision: what the forward computes in; float32 when None.
        loss_scale: constant factor on every backward.
        processes: sums tensors over the processes that share the window; None when there is one. Only sums cross
            processes and only once a window, so their numbers of micro-batches may differ.

    Raises:
        UsageError: the method does not exist, or the task's loss is not of the form it needs.
    """
    if not window:
        raise ValueError("a window needs at least one micro-batch")
    resolved = resolve_method(task, method)
    buffer.reset()
    step = _Step(task, buffer, precision or Precision(), loss_scale, processes)
    accumulated = _METHODS[resolved](step, list(window))
    if processes is not None:
        buffer.sum_over(processes)
    return accumulated


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
    zero = paddle.zeros_like(loss).detach()
    return {name: zero if gradient is None else gradient for name, gradient in zip(leaves, gradients, strict=True)}


def sum_statistics(parts: Sequence[Statistics]) -> Statistics:
    """Add the statistics of several micro-batches, name by name, without their graphs."""
    return {name: paddle.add_n([part[name].detach() for part in parts]) for name in parts[0]}


class _Step:
    """Forward and backward of one micro-batch, with what stays the same over a window."""

    def __init__(
        self,
        task: Task,
        buffer: GradientBuffer,
        precision: Precision,
        loss_scale: float,
        processes: SumOverProcesses | None,
    ):
        self.task = task
        self._buffer = buffer
        self._precision = precision
        self._loss_scale = loss_scale
        self.processes = processes

    def forward(self, micro_batch: MicroBatch) -> Statistics:
        with self._precision.autocast():
            return self.task.statistics(micro_batch)

    def backward(self, statistics: Statistics, weights: Statistics) -> paddle.Tensor:
        """Backward of lambda . s into the buffer; returns whether the gradient was finite, as a tensor."""
        terms = [weights[name] * value for name, value in statistics.items() if not value.stop_gradient]
        if terms:
            try:
                (paddle.add_n(terms) * self._loss_scale).backward()
            except BaseException:
                self._buffer.discard()
                raise
        return self._buffer.take()

    def total(self, parts: Sequence[Statistics]) -> Statistics:
        """The sums over the window, in all processes."""
        local = sum_statistics(parts)
        if self.processes is None or not local:
            return local
        return dict(zip(local, self.processes(list(local.values())), strict=True))


def _by_replay(step: _Step, window: list[MicroBatch]) -> Accumulated:
    # the costliest forward comes last and keeps its graph, so that it serves both passes
    kept = max(range(len(window)), key=lambda k: window[k].images.size)
    others = [k for k in range(len(window)) if k != kept]
    parts: list[Statistics] = [{}] * len(window)
    finite: list[paddle.Tensor] = [paddle.ones([])] * len(window)
    states = {}
    with paddle.no_grad():
        for k in others:
            states[k] = paddle.get_rng_state()
            parts[k] = step.forward(window[k])
    with_graph = step.forward(window[kept])
    parts[kept] = _without_graph(with_graph)
    totals = step.total(parts)
    weights = derivative(step.task, totals)
    finite[kept] = step.backward(with_graph, weights)
    del with_graph
    differences = [paddle.zeros_like(next(iter(totals.values())))]
    for k in others:
        with _random_state(states[k]):
            again = step.forward(window[k])
        differences += [_relative(again[name].detach(), parts[k][name], totals[name]) for name in again]
        finite[k] = step.backward(again, weights)
    mismatch = paddle.amax(paddle.stack(differences))
    return Accumulated(totals, [weights] * len(window), None, _finite(parts), finite, mismatch)


def _by_mean(step: _Step, window: list[MicroBatch]) -> Accumulated:
    num_samples = sum(len(micro_batch) for micro_batch in window)
    if step.processes is not None:
        num_samples = int(step.processes([paddle.to_tensor(float(num_samples))])[0])
    parts, all_weights, finite = [], [], []
    for micro_batch in window:
        statistics = step.forward(micro_batch)
        share = len(micro_batch) / num_samples
        weights = {name: value * share for name, value in derivative(step.task, statistics).items()}
        finite.append(step.backward(statistics, weights))
        parts.append(_without_graph(statistics))
        all_weights.append(weights)
    return Accumulated(step.total(parts), all_weights, None, _finite(parts), finite, None)


def _by_labels(step: _Step, window: list[MicroBatch]) -> Accumulated:
    labels = step.total([step.task.label_statistics(micro_batch) for micro_batch in window])

    def weights_from(statistics: Statistics) -> Statistics:
        # F is linear in the sums of predictions, so lambda does not depend on their values
        return derivative(step.task, {name: labels.get(name, paddle.zeros_like(s)) for name, s in statistics.items()})

    accumulated = _one_pass(step, window, weights_from)
    # the counts themselves carry no gradient, so their lambda (it does depend on predictions) is never used
    wanted = derivative(step.task, accumulated.totals)
    accumulated.mismatch = _mismatch(accumulated.weights[0], wanted, names=wanted.keys() - labels.keys())
    return accumulated


def _by_rescale(step: _Step, window: list[MicroBatch]) -> Accumulated:
    divisor = step.task.divisor

    def weights_from(statistics: Statistics) -> Statistics:
        at = {name: paddle.zeros_like(value) for name, value in statistics.items()}
        return derivative(step.task, {**at, divisor: paddle.ones_like(at[divisor])})

    accumulated = _one_pass(step, window, weights_from)
    used, wanted = accumulated.weights[0], derivative(step.task, accumulated.totals)
    # the divisor is detached: its own lambda is never used
    names = wanted.keys() - {divisor}
    # all ratios wanted / used are one number by the form of the loss; this way of dividing bears a weight of 0
    products = paddle.add_n([wanted[name] * used[name] for name in names])
    accumulated.factor = products / paddle.add_n([used[name].square() for name in names])
    scaled = {name: used[name] * accumulated.factor for name in names}
    accumulated.mismatch = _mismatch(scaled, wanted, names=names)
    return accumulated


def _one_pass(step: _Step, window: list[MicroBatch], weights_from: Callable[[Statistics], Statistics]) -> Accumulated:
    """Forward and backward of each micro-batch with weights that the first one's names suffice to know."""
    parts: list[Statistics] = []
    finite: list[paddle.Tensor] = []
    weights: Statistics = {}
    for micro_batch in window:
        statistics = step.forward(micro_batch)
        weights = weights or weights_from(statistics)
        finite.append(step.backward(statistics, weights))
        parts.append(_without_graph(statistics))
    return Accumulated(step.total(parts), [weights] * len(window), None, _finite(parts), finite, None)


def _without_graph(statistics: Statistics) -> Statistics:
    return {name: value.detach() for name, value in statistics.items()}


def _finite(parts: Sequence[Statistics]) -> list[paddle.Tensor]:
    return [all_finite(list(part.values())) for part in parts]


def _mismatch(used: Statistics, wanted: Statistics, names: Collection[str]) -> paddle.Tensor:
    largest = paddle.amax(paddle.stack([wanted[name].abs() for name in names]))
    return paddle.amax(paddle.stack([_relative(used[name], wanted[name], largest) for name in names]))


def _relative(value: paddle.Tensor, other: paddle.Tensor, size: paddle.Tensor) -> paddle.Tensor:
    return (value - other).abs() / (size.abs() + 1e-12)


@contextmanager
def _random_state(state: list[paddle.base.core.GeneratorState]) -> Iterator[None]:
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
