"""Forward and backward of the micro-batches of one window, each in as many pieces as memory asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import paddle

from pipelines.engine.gradient_buffer import GradientBuffer, SumOverProcesses, all_finite
from pipelines.engine.precision import Precision
from pipelines.engine.recovery import Recovery, WindowRestart
from pipelines.engine.totals import Statistics, sum_statistics, without_graph
from pipelines.records import MicroBatch
from pipelines.task import Task

RandomState = list[paddle.base.core.GeneratorState]
Weights = Callable[[Statistics, int], Statistics]
"""lambda of a micro-batch, from its statistics and its number of samples."""

_FULL = Precision()


@dataclass(eq=False)
class Piece:
    """A micro-batch, or the part of one that fits.

    Attributes:
        micro_batch: its samples.
        sums: its statistics, without their graph.
        state: the random state before its forward.
        in_full: computed in float32 because low precision overflowed.
        weights: lambda, as its backward used it.
        is_finite: bool scalar on the device: its gradient is finite.
    """

    micro_batch: MicroBatch
    sums: Statistics
    state: RandomState
    in_full: bool = False
    weights: Statistics = field(default_factory=dict)
    is_finite: paddle.Tensor | None = None

    @property
    def has_finite_sums(self) -> paddle.Tensor:
        return all_finite(list(self.sums.values()))


class Step:
    """What stays the same over a window: how a forward and a backward are run, and where gradients go."""

    def __init__(
        self,
        task: Task,
        buffer: GradientBuffer,
        precision: Precision,
        loss_scale: float,
        processes: SumOverProcesses | None,
        recovery: Recovery,
    ):
        self.task = task
        self.recovery = recovery
        self.processes = processes
        self._buffer = buffer
        self._precision = precision
        self._loss_scale = loss_scale
        recovery.trial = self._try

    def measured(self, micro_batch: MicroBatch) -> list[Piece]:
        """The statistics, from a forward without graph."""

        def attempt(piece: MicroBatch) -> Piece:
            state = paddle.get_rng_state()
            with paddle.no_grad():
                return Piece(piece, self._forward(piece), state)

        return [piece for _, piece in self.recovery.run(micro_batch, attempt)]

    def with_graph(self, micro_batch: MicroBatch) -> tuple[Piece, Statistics] | None:
        """The statistics with the graph that `finish` goes back through; None if it does not fit."""

        def attempt(piece: MicroBatch) -> tuple[Piece, Statistics]:
            state = paddle.get_rng_state()
            statistics = self._forward(piece)
            return Piece(piece, without_graph(statistics), state), statistics

        return self.recovery.run_whole(micro_batch, attempt)

    def finish(self, piece: Piece, statistics: Statistics, weights: Statistics) -> bool:
        """Backward of lambda . s into the buffer; False if it does not fit, and `learnt` has to do it anew."""

        def attempt(_: MicroBatch) -> Piece:
            piece.is_finite, piece.weights = self._backward(statistics, weights), weights
            return piece

        return self.recovery.run_whole(piece.micro_batch, attempt) is not None

    def learnt(self, micro_batch: MicroBatch, weights_from: Weights, *, in_full: bool = False) -> list[Piece]:
        """Forward and backward in one go."""

        def attempt(part: MicroBatch) -> Piece:
            state = paddle.get_rng_state()
            statistics = self._forward(part, in_full=in_full)
            weights = weights_from(statistics, len(part))
            is_finite = self._backward(statistics, weights, in_full=in_full)
            return Piece(part, without_graph(statistics), state, in_full, weights, is_finite)

        return [piece for _, piece in self.recovery.run(micro_batch, attempt)]

    def replayed(self, first: Piece, weights: Statistics) -> list[Piece]:
        """Forward once more, with the randomness of the first, and backward.

        Raises:
            WindowRestart: it only fits in smaller pieces, which draw other random numbers than the first pass did.
        """
        with random_state(first.state):
            pieces = self.learnt(first.micro_batch, lambda *_: weights, in_full=first.in_full)
            drew = len(pieces) > 1 and _next_number(paddle.get_rng_state()) != _next_number(first.state)
        if drew:
            raise WindowRestart
        return pieces

    def in_full_where_infinite(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Statistics that overflowed in low precision, computed anew in float32; the only sync before an update's."""
        if not self._precision.is_low:
            return list(pieces)
        flags = paddle.stack([piece.has_finite_sums for piece in pieces]).numpy()
        return [
            piece if is_finite else self._measured_in_full(piece)
            for piece, is_finite in zip(pieces, flags, strict=True)
        ]

    def _measured_in_full(self, piece: Piece) -> Piece:
        with random_state(piece.state), paddle.no_grad():
            sums = self._forward(piece.micro_batch, in_full=True)
        return Piece(piece.micro_batch, sums, piece.state, in_full=True)

    def learnt_in_full_where_infinite(self, pieces: Sequence[Piece], weights_from: Weights) -> list[Piece]:
        """Micro-batches whose gradient overflowed in low precision (the buffer left it out), learnt in float32."""
        if not self._precision.is_low:
            return list(pieces)
        finite = [piece.is_finite for piece in pieces if piece.is_finite is not None]
        flags = paddle.stack(finite).numpy()
        done: list[Piece] = []
        for piece, is_finite in zip(pieces, flags, strict=True):
            if is_finite:
                done.append(piece)
            else:
                with random_state(piece.state):
                    done += self.learnt(piece.micro_batch, weights_from, in_full=True)
        return done

    def total(self, pieces: Sequence[Statistics]) -> Statistics:
        """The sums over the window, in all processes."""
        local = sum_statistics(pieces)
        if self.processes is None or not local:
            return local
        return dict(zip(local, self.processes(list(local.values())), strict=True))

    def _forward(self, micro_batch: MicroBatch, *, in_full: bool = False) -> Statistics:
        with (_FULL if in_full else self._precision).autocast():
            return self.task.statistics(micro_batch)

    def _backward(self, statistics: Statistics, weights: Statistics, *, in_full: bool = False) -> paddle.Tensor:
        """Backward of lambda . s into the buffer; returns whether the gradient was finite, as a tensor."""
        terms = [weights[name] * value for name, value in statistics.items() if not value.stop_gradient]
        try:
            if terms:
                (paddle.add_n(terms) * self._loss_scale).backward()
            return self._buffer.take(only_finite=self._precision.is_low and not in_full)
        except BaseException:
            self._buffer.discard()
            raise

    def _try(self, micro_batch: MicroBatch) -> bool:
        statistics = self._forward(micro_batch)
        self._backward(statistics, {name: paddle.ones_like(value) for name, value in statistics.items()})
        return True


def _next_number(state: RandomState) -> float:
    """What tells random states apart: they can be neither compared nor printed (that shows a pointer)."""
    with random_state(state):
        number: float = paddle.rand([1], dtype="float64").item()
    return number


@contextmanager
def random_state(state: RandomState) -> Iterator[None]:
    """Run as if the random state were `state`, then go on from where it was."""
    now = paddle.get_rng_state()
    paddle.set_rng_state(state)
    try:
        yield
    finally:
        paddle.set_rng_state(now)
