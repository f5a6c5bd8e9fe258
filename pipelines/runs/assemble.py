"""What a run of any task is assembled from: the updater with its arithmetic, and the run's folder."""

from __future__ import annotations

from pathlib import Path

import paddle

from pipelines.config import RunConfig, TrainSection
from pipelines.engine.batch_norm import train_with_frozen_statistics
from pipelines.engine.precision import resolve_precision
from pipelines.engine.recovery import Recovery
from pipelines.engine.schedule import LearningRateSchedule, capped_warmup, scaled_learning_rate, updates_per_epoch
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.errors import UsageError
from pipelines.runs.reporter import Reporter
from pipelines.task import Task

_ACCUMULATION_STEPS = (4, 16)


def build_updater(
    config: RunConfig,
    task: Task,
    groups: dict[str, list[paddle.Tensor]],
    num_samples: int,
    reporter: Reporter,
) -> tuple[Updater, int]:
    """The updater of a run and its length in updates; prints what was derived, with the arithmetic."""
    train = config.train
    num_updates = train.updates or (train.epochs or 0) * updates_per_epoch(num_samples, train.effective_batch)
    rate = train.learning_rate
    peak = scaled_learning_rate(rate.base, rate.base_batch, train.effective_batch, rate.rule)
    warmup = capped_warmup(rate.warmup_updates, num_updates)
    precision = resolve_precision(train.precision)
    reporter.note(
        f"effective batch {train.effective_batch} = {_micro_batches(train, reporter)};"
        f" {num_updates} updates, {num_samples / train.effective_batch:.1f} an epoch of {num_samples} samples"
    )
    reporter.note(
        f"learning rate {rate.base:g} x {train.effective_batch}/{rate.base_batch} ({rate.rule} rule) = {peak:g} after"
        f" {warmup} updates of warm-up"
        + ("" if warmup == rate.warmup_updates else f" (asked {rate.warmup_updates}: at most a fifth of the run)")
    )
    if precision.reason:
        reporter.note(f"precision {precision.name}: {precision.reason}")
    num_frozen = train_with_frozen_statistics(task.network)
    reporter.note(f"{num_frozen} BatchNorms keep their statistics (frozen), {train.accumulation} accumulation")
    updater = Updater(
        task,
        _groups(config, groups),
        LearningRateSchedule(peak, num_updates, warmup, rate.final_share),
        method=train.accumulation,
        weight_decay=train.weight_decay,
        clip_norm=train.clip_norm,
        precision=precision,
        ema_decay=train.ema,
        recovery=Recovery(task, recompute=train.recompute, on_oom=train.on_oom, tell=reporter.warn),
    )
    return updater, num_updates


def new_run_folder(config: RunConfig) -> Path:
    """Create the run's folder; an existing one is somebody's work and stays untouched.

    Raises:
        UsageError: it is there already.
    """
    folder = config.run.root / config.run.name
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(
            f"run folder {folder} exists already and is left as it is; give another run.name (-o run.name=...)"
        ) from None
    return folder


def _groups(config: RunConfig, found: dict[str, list[paddle.Tensor]]) -> list[ParameterGroup]:
    rate, frozen = config.train.learning_rate.factors, config.train.frozen_updates
    for key, names in (("learning_rate.factors", rate), ("frozen_updates", frozen)):
        unknown = sorted(set(names) - set(found))
        if unknown:
            raise UsageError(f"train.{key}: unknown part {unknown[0]!r}; this network has {', '.join(found)}")
    return [
        ParameterGroup(name, parameters, rate.get(name, 1.0), frozen.get(name, 0))
        for name, parameters in found.items()
        if parameters
    ]


def _micro_batches(train: TrainSection, reporter: Reporter) -> str:
    if train.micro_batch == "auto":
        return "micro-batches as large as fit, by shape"
    steps = -(-train.effective_batch // train.micro_batch)
    if not _ACCUMULATION_STEPS[0] <= steps <= _ACCUMULATION_STEPS[1]:
        _advise_steps(steps, train.effective_batch, reporter)
    return f"micro-batch {train.micro_batch} x {steps} accumulation steps"


def _advise_steps(steps: int, effective_batch: int, reporter: Reporter) -> None:
    few = steps < _ACCUMULATION_STEPS[0]
    reporter.warn(
        f"{steps} accumulation steps are {'few' if few else 'many'}: "
        + (
            "a larger train.effective_batch costs no memory here and gives a steadier gradient"
            if few
            else f"each costs its own overhead; raise train.micro_batch towards {-(-effective_batch // 16)} if memory"
            " allows, or lower train.effective_batch"
        )
    )
