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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import paddle

from pipelines.engine.gradient_buffer import GradientBuffer, SumOverProcesses
from pipelines.engine.precision import Precision
from pipelines.engine.recovery import Recovery, WindowRestart
from pipelines.engine.retry import Refusal, tried
from pipelines.engine.step import Piece, Step, Weights
from pipelines.engine.totals import Statistics, derivative, mismatch, relative, sum_statistics
from pipelines.errors import OutOfMemoryError, UsageError
from pipelines.records import MicroBatch
from pipelines.task import Task

_MOST_REFUSALS = 4


@dataclass
class Accumulated:
    """What one window left behind, still on the device.

    Attributes:
        totals: the window's sums, over all processes.
        pieces: the micro-batches as they were run, in the window's order: its own, or smaller ones where memory asked
            for it.
        factor: what the buffer must still be multiplied by, or None for 1.
        mismatch: how far, relatively, the lambda that was used is from the one that the sums ask for; for `replay`
            also how far the sums of the two passes are apart. Rounding only, or the gradient is not the whole
            batch's. None for `mean`, which makes no such claim.
    """

    totals: Statistics
    pieces: list[Piece]
    factor: paddle.Tensor | None
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
    recovery: Recovery | None = None,
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
        recovery: what is known to fit in memory; nothing yet when None.

    Raises:
        UsageError: the method does not exist, or the task's loss is not of the form it needs.
        OutOfMemoryError: one image does not fit in memory.
    """
    if not window:
        raise ValueError("a window needs at least one micro-batch")
    resolved = resolve_method(task, method)
    recovery = recovery or Recovery(task)
    step = Step(task, buffer, precision or Precision(), loss_scale, processes, recovery)
    accumulated = _finished(lambda: _METHODS[resolved](step, _usable(window, recovery)), step, buffer)
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


def _finished(run: Callable[[], Accumulated], step: Step, buffer: GradientBuffer) -> Accumulated:
    """The window, begun anew when it has to be: `run` leaves nothing but the buffer and what `recovery` learnt."""
    state, refusals = paddle.get_rng_state(), 0
    while True:
        buffer.reset()
        try:
            accumulated = tried(run)
        except WindowRestart:
            pass  # as often as there is something to learn: every one makes a piece smaller or leaves a shape out
        else:
            if not isinstance(accumulated, Refusal):
                return accumulated
            step.recovery.num_failures += 1
            refusals += 1
            if refusals == _MOST_REFUSALS:
                raise OutOfMemoryError(
                    f"a window was begun {refusals} times and ran out of memory each time, between its micro-batches"
                    f" ({accumulated.reason}); free some memory"
                )
        _refuse_alone(step)
        paddle.set_rng_state(state)


def _refuse_alone(step: Step) -> None:
    if step.processes is not None:
        raise OutOfMemoryError(
            "out of memory where only all processes together could begin the window anew; lower train.micro_batch"
        )


def _usable(window: Sequence[MicroBatch], recovery: Recovery) -> list[MicroBatch]:
    pieces = recovery.pieces(window)
    if not pieces:
        names = ", ".join(name for micro_batch in window for name in micro_batch.sources)
        raise OutOfMemoryError(f"no image of the window fits in memory ({names}); use smaller training shapes")
    return pieces


def _by_replay(step: Step, window: list[MicroBatch]) -> Accumulated:
    # the costliest forward comes last and keeps its graph, so that it serves both passes
    kept = max(range(len(window)), key=lambda k: window[k].images.size)
    by_batch = [[] if k == kept else step.measured(micro_batch) for k, micro_batch in enumerate(window)]
    last = step.with_graph(window[kept])
    by_batch[kept] = step.measured(window[kept]) if last is None else [last[0]]
    first = step.in_full_where_infinite([piece for pieces in by_batch for piece in pieces])
    totals = step.total([piece.sums for piece in first])
    weights = derivative(step.task, totals)
    done: dict[int, list[Piece]] = {}
    if last is not None and last[0] in first and step.finish(*last, weights):
        done[first.index(last[0])] = [last[0]]
    del last
    differences = [paddle.zeros_like(next(iter(totals.values())))]
    for k, piece in enumerate(first):
        if k not in done:
            done[k] = step.replayed(piece, weights)
            sums = sum_statistics([part.sums for part in done[k]])
            differences += [relative(sums[name], piece.sums[name], totals[name]) for name in sums]
    learnt = [piece for k in range(len(first)) for piece in done[k]]
    learnt = step.learnt_in_full_where_infinite(learnt, lambda *_: weights)
    return Accumulated(totals, learnt, None, paddle.amax(paddle.stack(differences)))


def _by_mean(step: Step, window: list[MicroBatch]) -> Accumulated:
    num_samples = sum(len(micro_batch) for micro_batch in window)
    if step.processes is not None:
        num_samples = int(step.processes([paddle.to_tensor(float(num_samples))])[0])

    def weights_from(statistics: Statistics, num: int) -> Statistics:
        return {name: value * (num / num_samples) for name, value in derivative(step.task, statistics).items()}

    return _one_pass(step, window, weights_from)


def _by_labels(step: Step, window: list[MicroBatch]) -> Accumulated:
    labels = step.total([step.task.label_statistics(micro_batch) for micro_batch in window])

    def weights_at(statistics: Statistics) -> Statistics:
        # F is linear in the sums of predictions, so lambda does not depend on their values
        return derivative(step.task, {name: labels.get(name, paddle.zeros_like(s)) for name, s in statistics.items()})

    accumulated = _one_pass(step, window, _once(weights_at))
    # the counts themselves carry no gradient, so their lambda (it does depend on predictions) is never used
    wanted = derivative(step.task, accumulated.totals)
    accumulated.mismatch = mismatch(_weights(accumulated), wanted, names=wanted.keys() - labels.keys())
    return accumulated


def _by_rescale(step: Step, window: list[MicroBatch]) -> Accumulated:
    divisor = step.task.divisor

    def weights_at(statistics: Statistics) -> Statistics:
        at = {name: paddle.zeros_like(value) for name, value in statistics.items()}
        return derivative(step.task, {**at, divisor: paddle.ones_like(at[divisor])})

    accumulated = _one_pass(step, window, _once(weights_at))
    used, wanted = _weights(accumulated), derivative(step.task, accumulated.totals)
    # the divisor is detached: its own lambda is never used
    names = wanted.keys() - {divisor}
    # all ratios wanted / used are one number by the form of the loss; this way of dividing bears a weight of 0
    products = paddle.add_n([wanted[name] * used[name] for name in names])
    accumulated.factor = products / paddle.add_n([used[name].square() for name in names])
    scaled = {name: used[name] * accumulated.factor for name in names}
    accumulated.mismatch = mismatch(scaled, wanted, names=names)
    return accumulated


def _one_pass(step: Step, window: list[MicroBatch], weights_from: Weights) -> Accumulated:
    """Forward and backward of each micro-batch."""
    pieces = [piece for micro_batch in window for piece in step.learnt(micro_batch, weights_from)]
    pieces = step.learnt_in_full_where_infinite(pieces, weights_from)
    return Accumulated(step.total([piece.sums for piece in pieces]), pieces, None, None)


def _once(weights_at: Callable[[Statistics], Statistics]) -> Weights:
    """Weights that the names of the first micro-batch's statistics suffice to know."""
    known: Statistics = {}

    def weights_from(statistics: Statistics, num: int) -> Statistics:
        if not known:
            known.update(weights_at(statistics))
        return known

    return weights_from


def _weights(accumulated: Accumulated) -> Statistics:
    """Of a method whose lambda is one for all."""
    return accumulated.pieces[0].weights


_METHODS: dict[str, Callable[[Step, list[MicroBatch]], Accumulated]] = {
    "labels": _by_labels,
    "rescale": _by_rescale,
    "replay": _by_replay,
    "mean": _by_mean,
}
