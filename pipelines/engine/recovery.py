"""An allocation that fails inside a window costs time, not the window: smaller pieces, then recomputed activations.

A loss that is a function of sums does not mind how its images are cut into micro-batches, so a micro-batch that does
not fit goes in halves, down to one image, then with recomputed activations. What fitted is remembered by shape.
Nothing here is agreed with other processes: each may cut its own share as its own memory asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Literal, TypeVar

import paddle

from pipelines.engine.batch_norm import batch_norms, running_statistics
from pipelines.engine.recompute import recomputing
from pipelines.engine.retry import Refusal, tried
from pipelines.errors import OutOfMemoryError
from pipelines.records import MicroBatch
from pipelines.task import Task

Outcome = TypeVar("Outcome")
ShapeHW = tuple[int, int]
Probe = Callable[[int, ShapeHW], MicroBatch]
"""Makes a micro-batch of so many images of a shape, with nothing to find in them."""

_PROBED_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
_STRIDE_PX = 32


class WindowRestart(Exception):
    """The window has to begin anew, with what is known by now."""


class Recovery:
    """What fits in memory, as far as a run has found out.

    Args:
        task: its `recomputable` layers may compute their activations twice.
        recompute: "always", "never", or "auto": for shapes of which one image does not fit otherwise.
        on_oom: what to do about a shape of which one image never fits: "stop", or "skip" its images, counted.
        tell: is given one sentence whenever something new is found out.

    Attributes:
        num_failures: allocations that failed so far.
        plans_recompute: shapes that are recomputed from the start, as somebody knows that they don't fit otherwise.
        probe: to find the largest side that fits before stopping; None: not tried.
        trial: forward and backward of a micro-batch, whose gradient nobody needs; for `probe`.
    """

    def __init__(
        self,
        task: Task,
        *,
        recompute: Literal["auto", "always", "never"] = "auto",
        on_oom: Literal["stop", "skip"] = "stop",
        tell: Callable[[str], None] = lambda sentence: None,
    ):
        self.num_failures = 0
        self.plans_recompute: Callable[[ShapeHW], bool] = lambda size_hw: False
        self.probe: Probe | None = None
        self.trial: Callable[[MicroBatch], object] | None = None
        self._task, self._recompute, self._on_oom, self._tell = task, recompute, on_oom, tell
        self._norms = batch_norms(task.network)  # once: a network has hundreds of layers, an update dozens of attempts
        self._most: dict[ShapeHW, int] = {}
        self._recomputed: set[ShapeHW] = set()
        self._unfit: set[ShapeHW] = set()
        self._failed_alone: MicroBatch | None = None

    def pieces(self, window: Iterable[MicroBatch]) -> list[MicroBatch]:
        """The window cut into what is known to fit; shapes that never do are left out."""
        return [
            piece
            for micro_batch in window
            if micro_batch.shape_hw not in self._unfit
            for piece in evenly_split(micro_batch, self._most.get(micro_batch.shape_hw, len(micro_batch)))
        ]

    def run(
        self, micro_batch: MicroBatch, attempt: Callable[[MicroBatch], Outcome]
    ) -> list[tuple[MicroBatch, Outcome]]:
        """`attempt` on the micro-batch, or on as many pieces of it as memory asks for, in order.

        An attempt that fails must leave no trace but random state and running statistics, which are put back.

        Raises:
            OutOfMemoryError: one image does not fit, and `on_oom` is "stop".
            WindowRestart: one image does not fit and shall be left out.
        """
        done: list[tuple[MicroBatch, Outcome]] = []
        pending = [micro_batch]
        while pending:
            piece, *others = self.pieces([pending.pop(0)])
            pending[:0] = others  # what was queued whole may be known not to fit by now
            outcome = self._attempted(piece, attempt)
            if isinstance(outcome, Refusal):
                pending[:0] = self._smaller(piece)
            else:
                done.append((piece, outcome))
        return done

    def run_whole(self, micro_batch: MicroBatch, attempt: Callable[[MicroBatch], Outcome]) -> Outcome | None:
        """`attempt` once; None if it is known not to fit, or does not, which is remembered."""
        if len(self.pieces([micro_batch])) > 1:
            return None
        outcome = self._attempted(micro_batch, attempt)
        if isinstance(outcome, Refusal):
            self._smaller(micro_batch)
            return None
        return outcome

    def count_skipped(self, window: Iterable[MicroBatch]) -> int:
        """Samples of a window that `pieces` leaves out."""
        return sum(len(micro_batch) for micro_batch in window if micro_batch.shape_hw in self._unfit)

    def _attempted(self, piece: MicroBatch, attempt: Callable[[MicroBatch], Outcome]) -> Outcome | Refusal:
        restore = _snapshot(self._norms)

        def run() -> Outcome:
            with self._recomputing(piece.shape_hw):
                return attempt(piece)

        outcome = tried(run)
        if isinstance(outcome, Refusal):
            self.num_failures += 1
            restore()
        return outcome

    @contextmanager
    def _recomputing(self, shape_hw: ShapeHW) -> Iterator[None]:
        if self._is_recomputed(shape_hw):
            with recomputing(self._task.recomputable):
                yield
        else:
            yield

    def _is_recomputed(self, shape_hw: ShapeHW) -> bool:
        return self._recompute == "always" or shape_hw in self._recomputed or self.plans_recompute(shape_hw)

    def _smaller(self, piece: MicroBatch) -> list[MicroBatch]:
        """What to try in place of a piece that did not fit."""
        shape, shown = piece.shape_hw, f"{len(piece)} x {piece.shape_hw[0]} x {piece.shape_hw[1]} px"
        if len(piece) > 1:
            self._most[shape] = (len(piece) + 1) // 2
            self._tell(f"out of memory at {shown}: from now on at most {self._most[shape]} of that shape at once")
        elif self._recompute == "auto" and not self._is_recomputed(shape) and len(self._task.recomputable):
            self._recomputed.add(shape)
            self._tell(f"out of memory at {shown}: its activations are computed twice from now on")
        elif self._failed_alone is not piece:
            self._failed_alone = piece  # what took the memory may have been another program's
        else:
            self._give_up(piece)
        return self.pieces([piece])

    def _give_up(self, piece: MicroBatch) -> None:
        (height, width), name = piece.shape_hw, ", ".join(piece.sources) or "an image"
        if self._on_oom == "skip":
            self._unfit.add(piece.shape_hw)
            self._tell(f"{name}: one image of {height} x {width} px does not fit: that shape is left out and counted")
            raise WindowRestart
        how = "" if self._recompute == "never" else ", even with recomputed activations"
        raise OutOfMemoryError(
            f"{name}: one image of {height} x {width} px does not fit in memory{how}.{self._largest_side(piece)}"
            " Use smaller training shapes, a smaller network, or set train.on_oom to skip"
        )

    def _largest_side(self, piece: MicroBatch) -> str:
        """A sentence, from trying."""
        if self.probe is None or self.trial is None:
            return ""
        for share in _PROBED_SHARES:
            height, width = (max(_STRIDE_PX, int(side * share) // _STRIDE_PX * _STRIDE_PX) for side in piece.shape_hw)
            if not isinstance(self._attempted(self.probe(1, (height, width)), self.trial), Refusal):
                return f" {height} x {width} px, longest side {max(height, width)}, was tried and fits."
        return " Nor does a fifth of its sides."


def evenly_split(micro_batch: MicroBatch, most: int) -> list[MicroBatch]:
    """The micro-batch in as few pieces of at most `most` samples as there can be, their sizes at most 1 apart."""
    num_pieces = -(-len(micro_batch) // most)
    if num_pieces == 1:
        return [micro_batch]
    bounds = [len(micro_batch) * k // num_pieces for k in range(num_pieces + 1)]
    return [part_of(micro_batch, start, stop) for start, stop in pairwise(bounds)]


def part_of(micro_batch: MicroBatch, start: int, stop: int) -> MicroBatch:
    """Samples `start` to `stop` (not included)."""
    return MicroBatch(
        images=micro_batch.images[start:stop],
        targets={name: value[start:stop] for name, value in micro_batch.targets.items()},
        sources=micro_batch.sources[start:stop],
    )


def _snapshot(norms: Sequence[paddle.nn.Layer]) -> Callable[[], None]:
    """What puts random state and running statistics back to what they are now."""
    state = paddle.get_rng_state()
    statistics = [(held, held.clone()) for held in running_statistics(norms)]

    @paddle.no_grad()
    def restore() -> None:
        paddle.set_rng_state(state)
        for held, value in statistics:
            held.set_value(value)

    return restore
