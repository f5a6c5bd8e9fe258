"""One update is one call: accumulate the window, unscale, check, clip, step, schedule, average, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle

from pipelines.engine.accumulate import Accumulated, accumulate, resolve_method
from pipelines.engine.ema import ExponentialMovingAverage
from pipelines.engine.gradient_buffer import GradientBuffer, SumOverProcesses
from pipelines.engine.memory import held_bytes, peak_bytes, reset_peak
from pipelines.engine.optimizer_step import step_whole
from pipelines.engine.precision import LossScale, Precision
from pipelines.engine.recovery import Recovery
from pipelines.engine.schedule import LearningRateSchedule
from pipelines.errors import NonFiniteError, ReplayMismatchError, UsageError
from pipelines.records import MicroBatch
from pipelines.task import Task

# sums of two passes may differ by the order of additions, not by more
_MISMATCH_TOLERANCE = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 5e-2}
_MOST_NAMES = 8


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that share a learning rate.

    Attributes:
        name: for messages and logs.
        parameters: the tensors.
        learning_rate_factor: multiplies the schedule's learning rate.
        frozen_updates: the group rests during the first so many updates; its backward is not even run.
    """

    name: str
    parameters: Sequence[paddle.Tensor]
    learning_rate_factor: float = 1.0
    frozen_updates: int = 0


@dataclass(frozen=True)
class UpdateReport:
    """What one update did; all numbers are of the whole window.

    Attributes:
        update: 1-based number of the update that was made.
        parts: the loss and its named parts.
        gradient_norm: global L2 before clipping.
        samples: that the update learnt from.
        shapes: (number, height, width) of every micro-batch as it was run.
        skipped: samples left out because not even one image of their shape fits in memory.
        in_full: micro-batches that overflowed in low precision and were done again in float32.
        failures: allocations that failed, and were recovered from.
        peak_bytes: of tensors, in all, since the update began.
        seconds: of accumulation and step, without the loader.
    """

    update: int
    samples: int
    micro_batches: int
    shapes: tuple[tuple[int, int, int], ...]
    parts: dict[str, float]
    learning_rate: float
    gradient_norm: float
    loss_scale: float
    skipped: int
    in_full: int
    failures: int
    peak_bytes: int
    seconds: float


class Updater:
    """Holds what lives from update to update: optimizer, loss scale, average, count."""

    def __init__(
        self,
        task: Task,
        groups: Sequence[ParameterGroup],
        schedule: LearningRateSchedule,
        *,
        method: str = "exact",
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
        precision: Precision | None = None,
        ema_decay: float | None = None,
        processes: SumOverProcesses | None = None,
        recovery: Recovery | None = None,
    ):
        self.recovery = recovery or Recovery(task)
        self._task, self._groups, self._schedule, self._method = task, list(groups), schedule, method
        self._clip_norm = clip_norm
        self._precision = precision or Precision()
        self._processes = processes
        self._parameters = [parameter for group in groups for parameter in group.parameters]
        if len({id(parameter) for parameter in self._parameters}) < len(self._parameters):
            raise ValueError(f"a parameter is in more than one of the groups {[group.name for group in groups]}")
        self._buffer = GradientBuffer(self._parameters)
        self.loss_scale = LossScale(self._precision)
        self.ema = ExponentialMovingAverage(self._parameters, ema_decay) if ema_decay else None
        self.optimizer = paddle.optimizer.AdamW(
            learning_rate=schedule.at(0), parameters=[_options(group) for group in groups], weight_decay=weight_decay
        )
        self.num_updates = 0

    def run(self, window: Sequence[MicroBatch]) -> UpdateReport:
        """Make one update from `window`.

        Raises:
            NonFiniteError: loss or gradient is not finite in float32.
            ReplayMismatchError: the two passes of `replay` disagree.
            UsageError: the loss is not of the form that `labels` or `rescale` needs.
            DataError: fp16 gradients overflow at every loss scale.
            OutOfMemoryError: one image does not fit in memory.
        """
        started, failures = time.perf_counter(), self.recovery.num_failures
        reset_peak()
        self._thaw()
        learning_rate, scale = self._schedule.at(self.num_updates), self.loss_scale.value
        accumulated = self._accumulate(window, self.recovery, scale, self._processes)
        summary = _read(self._task, self._buffer, accumulated, scale)
        self._refuse_wrong(summary, [piece.micro_batch for piece in accumulated.pieces])
        self._step(accumulated, summary.norm, learning_rate, scale)
        in_full = sum(piece.in_full for piece in accumulated.pieces)
        self.loss_scale.after_update(had_overflow=in_full > 0)
        return UpdateReport(
            update=self.num_updates,
            samples=sum(len(piece.micro_batch) for piece in accumulated.pieces),
            micro_batches=len(accumulated.pieces),
            shapes=tuple((len(piece.micro_batch), *piece.micro_batch.shape_hw) for piece in accumulated.pieces),
            parts=summary.parts,
            learning_rate=learning_rate,
            gradient_norm=summary.norm,
            loss_scale=scale,
            skipped=self.recovery.count_skipped(window),
            in_full=in_full,
            failures=self.recovery.num_failures - failures,
            peak_bytes=peak_bytes(),
            seconds=time.perf_counter() - started,
        )

    def rehearse(self, window: Sequence[MicroBatch], recovery: Recovery | None = None) -> int:
        """Forward and backward of a window whose gradient is thrown away.

        Args:
            window: as for `run`.
            recovery: stands in for this updater's.

        Returns:
            Bytes of tensors taken above what was held before.

        Raises:
            OutOfMemoryError: one image does not fit in memory.
        """
        for parameter in self._parameters:
            parameter.stop_gradient = False  # what rests at first will not always, and learning takes the memory
        held, random_state = held_bytes(), paddle.get_rng_state()
        reset_peak()
        self._accumulate(window, recovery or self.recovery)
        taken = peak_bytes() - held
        self._buffer.reset()
        paddle.set_rng_state(random_state)
        return taken

    @property
    def has_resting_groups(self) -> bool:
        """Whether the last update left parameters at rest, and with them the memory of their backward."""
        return any(self.num_updates <= group.frozen_updates for group in self._groups)

    def resting_bytes(self) -> int:
        """What tensors take between the micro-batches of an update: all that is held now, moments, summed gradients."""
        trained = sum(parameter.size * parameter.element_size() for parameter in self._parameters)
        has_moments = bool(self.optimizer.state_dict())
        return held_bytes() + trained * (1 if has_moments else 3)

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the network holds the averaged weights, if there is an average."""
        return nullcontext() if self.ema is None else self.ema.applied()

    def _accumulate(
        self,
        window: Sequence[MicroBatch],
        recovery: Recovery,
        loss_scale: float = 1.0,
        processes: SumOverProcesses | None = None,
    ) -> Accumulated:
        return accumulate(
            self._task,
            window,
            self._method,
            self._buffer,
            precision=self._precision,
            loss_scale=loss_scale,
            processes=processes,
            recovery=recovery,
        )

    def _step(self, accumulated: Accumulated, norm: float, learning_rate: float, scale: float) -> None:
        clip = 1.0 if self._clip_norm is None else min(1.0, self._clip_norm / (norm + 1e-12))
        factor = clip / scale
        self._buffer.release(factor if accumulated.factor is None else accumulated.factor * factor)
        self.optimizer.set_lr(learning_rate)
        self.recovery.num_failures += step_whole(self.optimizer, self._parameters)
        self.optimizer.clear_grad(set_to_zero=False)
        self.num_updates += 1
        if self.ema is not None:
            self.ema.update()

    def _thaw(self) -> None:
        for group in self._groups:
            rests = self.num_updates < group.frozen_updates
            for parameter in group.parameters:
                parameter.stop_gradient = rests

    def _refuse_wrong(self, summary: _Summary, pieces: Sequence[MicroBatch]) -> None:
        if not summary.is_finite:
            raise NonFiniteError(_non_finite_message(self.num_updates + 1, summary, pieces))
        if summary.mismatch > _MISMATCH_TOLERANCE[self._precision.name]:
            method = resolve_method(self._task, self._method)
            error = ReplayMismatchError if method == "replay" else UsageError
            raise error(_mismatch_message(self.num_updates + 1, method, summary.mismatch))


@dataclass(frozen=True)
class _Summary:
    """The numbers of an update, on the host."""

    parts: dict[str, float]
    norm: float
    mismatch: float
    finite_sums: list[bool]
    finite_gradients: list[bool]

    @property
    def is_finite(self) -> bool:
        # the norm is of the sum over all micro-batches and processes, so it tells of each of them
        return bool(np.isfinite([self.norm, *self.parts.values()]).all())


@paddle.no_grad()
def _read(task: Task, buffer: GradientBuffer, accumulated: Accumulated, scale: float) -> _Summary:
    """Bring the numbers of an update to the host, in one transfer: the only sync of an update."""
    parts = task.combine(accumulated.totals)
    norm = buffer.global_norm() / scale
    if accumulated.factor is not None:
        norm = norm * accumulated.factor.abs()
    mismatch = paddle.zeros([]) if accumulated.mismatch is None else accumulated.mismatch
    finite_sums = [piece.has_finite_sums for piece in accumulated.pieces]
    finite_gradients = [piece.is_finite for piece in accumulated.pieces if piece.is_finite is not None]
    on_device = [*parts.values(), norm, mismatch, *finite_sums, *finite_gradients]
    numbers = iter(paddle.stack([number.astype("float64") for number in on_device]).numpy().tolist())
    return _Summary(
        parts={name: next(numbers) for name in parts},
        norm=next(numbers),
        mismatch=next(numbers),
        finite_sums=[bool(next(numbers)) for _ in finite_sums],
        finite_gradients=[bool(next(numbers)) for _ in finite_gradients],
    )


def _non_finite_message(update: int, summary: _Summary, window: Sequence[MicroBatch]) -> str:
    # where the sums are not finite, lambda is not, and with it every gradient: so the sums name the culprit first
    flags = summary.finite_gradients if all(summary.finite_sums) else summary.finite_sums
    suspects = [name for is_finite, batch in zip(flags, window, strict=True) if not is_finite for name in batch.sources]
    if not any(flags) and len(flags) > 1:
        blame, remedy = "every micro-batch of the window", "The weights or the learning rate are at fault, not an image"
    else:
        blame = ", ".join(suspects[:_MOST_NAMES]) or "the window as a whole"
        blame += f" and {len(suspects) - _MOST_NAMES} more" if len(suspects) > _MOST_NAMES else ""
        remedy = "Look at the labels of these images"
    return (
        f"update {update}: loss or gradient is not finite (loss {summary.parts['loss']:g}) on {blame}; the weights are"
        f" as before this update. {remedy}; or lower train.learning_rate.base"
    )


def _mismatch_message(update: int, method: str, mismatch: float) -> str:
    if method == "replay":
        return (
            f"update {update}: the two passes of replay differ by {mismatch:.1e} (relative), so the gradient would not"
            " be the whole batch's; something in the network changes between two forwards of the same images (a"
            " BatchNorm in train mode, a random layer that ignores paddle's random state): freeze it, or set"
            " train.accumulation to mean"
        )
    return (
        f"update {update}: the loss of this task is not of the form that {method!r} needs: the weights it used are"
        f" {mismatch:.1e} (relative) away from the window's; set train.accumulation to replay"
    )


def _options(group: ParameterGroup) -> Any:
    return {"params": list(group.parameters), "learning_rate": group.learning_rate_factor}
