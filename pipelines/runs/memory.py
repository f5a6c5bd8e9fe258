"""Memory of a run: measured before it starts, planned by shape, held against what updates really take."""

from __future__ import annotations

from dataclasses import dataclass

import paddle

from pipelines.batching.loader import WindowLoader
from pipelines.batching.shapes import ShapeHW
from pipelines.config import RunConfig
from pipelines.doctor import usable_memory_bytes
from pipelines.engine.memory import on_gpu
from pipelines.engine.memory_plan import MEASURED_NUMBERS, Measurement, MemoryModel, MemoryPlan
from pipelines.engine.recovery import Recovery
from pipelines.engine.update import Updater, UpdateReport
from pipelines.errors import OutOfMemoryError
from pipelines.runs.reporter import Reporter
from pipelines.task import Task

_SMALL_HW, _LARGE_HW = (256, 256), (448, 448)
"""Measured shapes: large enough for the slope, small enough for seconds on a CPU."""
_HOST_SHARE = 0.7
GPU_OVERHEAD_BYTES = 2**30
"""Context, libraries and convolution workspace that Paddle's figures leave out; an estimate, not measured."""


@dataclass(frozen=True)
class Budget:
    """Bytes for tensors, and where the number comes from."""

    tensor_bytes: int
    origin: str


def budget_of(config: RunConfig) -> Budget:
    """The named budget, or what the device has."""
    named = config.train.memory
    if on_gpu():
        total = int(named or paddle.device.cuda.get_device_properties().total_memory)
        left = f"{sized(total)} less {sized(GPU_OVERHEAD_BYTES)} for context and workspace (estimated)"
        return Budget(total - GPU_OVERHEAD_BYTES, f"train.memory {left}" if named else f"the card's {left}")
    if named:
        return Budget(int(named), f"train.memory {sized(int(named))}, by the allocator's own figures")
    free = usable_memory_bytes() or 0
    return Budget(int(_HOST_SHARE * free), f"{_HOST_SHARE:.0%} of the {sized(free)} that the host has free")


def plan_training(config: RunConfig, task: Task, updater: Updater, loader: WindowLoader, budget: Budget) -> MemoryPlan:
    """Measure forward and backward of a few blank micro-batches, and fit what any other takes.

    Raises:
        OutOfMemoryError: not even one image of 256 x 256 px fits.
    """
    recompute = config.train.recompute
    plain = None if recompute == "always" else _model(task, updater, loader, "never")
    recomputed = None if recompute == "never" else _model(task, updater, loader, "always")
    model = plain or recomputed
    assert model is not None  # one of both is always asked for
    resting = updater.resting_bytes()
    return MemoryPlan(budget.tensor_bytes, resting, model, recomputed, config.train.effective_batch)


def _model(task: Task, updater: Updater, loader: WindowLoader, recompute: str) -> MemoryModel:
    found = []
    for number, size_hw in [(1, _SMALL_HW), *((number, _LARGE_HW) for number in MEASURED_NUMBERS)]:
        recovery = Recovery(task, recompute="always" if recompute == "always" else "never")
        taken = updater.rehearse([loader.blank(number, size_hw)], recovery)
        if recovery.num_failures:
            break  # it ran in smaller pieces, so this is not what that number takes
        found.append(Measurement(number, size_hw, taken))
    return MemoryModel.fitted(found)


class RunMemory:
    """Keeps micro-batches within the budget while a run goes on; with a fixed micro-batch it only rehearses."""

    def __init__(self, config: RunConfig, task: Task, updater: Updater, loader: WindowLoader, reporter: Reporter):
        self._updater, self._loader, self._reporter = updater, loader, reporter
        self._plan: MemoryPlan | None = None
        updater.recovery.probe = loader.blank
        if config.train.micro_batch == "auto":
            budget = budget_of(config)
            self._plan = plan_training(config, task, updater, loader, budget)
            self._tell_plan(budget)
            self._refuse_unfit(self._plan, config.train.on_oom == "skip")
            loader.size_of = self._plan.size
            updater.recovery.plans_recompute = self._plan.recomputes
        self._rehearse_largest()

    def after(self, report: UpdateReport) -> None:
        """Hold the plan against what an update took."""
        # what is planned for and not there yet: moments before the first step, the backward of groups that rest
        is_whole = report.update > 1 and not self._updater.has_resting_groups
        if self._plan is None or report.failures or not is_whole:
            return
        planned = self._plan.planned_bytes(report.shapes)
        if self._plan.corrected(report.shapes, report.peak_bytes):
            self._reporter.note(
                f"update {report.update} took {sized(report.peak_bytes)} where {sized(planned)} were planned: planned"
                f" anew, {self._sizes(self._plan)}"
            )

    def _tell_plan(self, budget: Budget) -> None:
        assert self._plan is not None
        self._reporter.note(
            f"memory: {sized(budget.tensor_bytes)} for tensors ({budget.origin}), {sized(self._plan.resting_bytes)} of"
            f" them at rest; micro-batches {self._sizes(self._plan)}"
        )

    def _sizes(self, plan: MemoryPlan) -> str:
        by_size: dict[tuple[int, bool], list[ShapeHW]] = {}
        for shape in self._loader.shape_shares():
            by_size.setdefault((plan.size(shape), plan.recomputes(shape)), []).append(shape)
        said = []
        for (size, is_recomputed), shapes in sorted(by_size.items(), reverse=True):
            height, width = max(shapes, key=lambda shape: shape[0] * shape[1])
            said.append(f"of {size} up to {height} x {width} px" + (", recomputed" if is_recomputed else ""))
        return "; ".join(said)

    def _refuse_unfit(self, plan: MemoryPlan, may_skip: bool) -> None:
        unfit = [shape for shape in self._loader.shape_shares() if plan.fit(shape).number == 0]
        if not unfit:
            return
        (height, width), side = max(unfit, key=lambda shape: shape[0] * shape[1]), plan.largest_side()
        fits = f"a square of {side} x {side} px fits" if side else "nothing fits"
        said = (
            f"one training image of {height} x {width} px needs {sized(plan.fit((height, width)).peak_bytes)}, more"
            f" than the {sized(plan.budget_bytes)} there are; {fits}"
        )
        if not may_skip:
            raise OutOfMemoryError(f"{said}. Use smaller training shapes or a smaller network, or raise train.memory")
        self._reporter.warn(f"{said}; images that do not fit are left out and counted (train.on_oom skip)")

    def _rehearse_largest(self) -> None:
        """The costliest micro-batch first: what does not fit shows now and not after hours."""
        shapes = list(self._loader.shape_shares())
        if len(shapes) < 2:
            return  # the first micro-batch is as large as any
        number, (height, width) = max(
            ((self._loader.largest_micro_batch(shape), shape) for shape in shapes),
            key=lambda one: one[0] * one[1][0] * one[1][1],
        )
        taken = self._updater.rehearse([self._loader.blank(number, (height, width))])
        self._reporter.note(f"rehearsed the largest micro-batch, {number} x {height} x {width} px: {sized(taken)}")


def sized(number: float) -> str:
    """A number of bytes in GiB with two digits, below one in MiB."""
    return f"{number / 2**30:.2f} GiB" if number >= 2**30 else f"{number / 2**20:.0f} MiB"
