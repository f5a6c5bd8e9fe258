"""From a checked configuration to the parts of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import paddle

from pipelines.config import Config, PostProcessSection
from pipelines.engine.batch_norm import train_with_frozen_statistics
from pipelines.engine.precision import resolve_precision
from pipelines.engine.schedule import LearningRateSchedule, capped_warmup, scaled_learning_rate, updates_per_epoch
from pipelines.engine.update import ParameterGroup, Updater
from pipelines.errors import DataError, UsageError
from pipelines.records import Record
from pipelines.runs.buckets import bucket_names, bucket_of
from pipelines.runs.reporter import Reporter
from pipelines.text_detection.boxes import PostProcess
from pipelines.text_detection.network import build_network, parameter_groups
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.targets import TextTargets
from pipelines.text_detection.task import Setting, TextDetection
from pipelines.text_detection.weights import load_weights

_ACCUMULATION_STEPS = (4, 16)


def setting_of(section: PostProcessSection) -> Setting:
    """The resize rule and post-processing that a configuration names."""
    return Setting(
        ResizeRule(section.limit_side),
        PostProcess(section.binary_threshold, section.box_threshold, section.unclip_ratio, box_type=section.box_type),
    )


def targets_of(config: Config, setting: Setting) -> TextTargets:
    """Target maps that the setting's post-processing turns back into the labels."""
    return TextTargets(
        shrink=config.targets.shrink,
        ratio=config.targets.ratio,
        unclip_ratio=setting.post_process.unclip_ratio,
        min_height_px=config.targets.min_height_px,
    )


def build_task(config: Config, setting: Setting, reporter: Reporter, weights: str | None = None) -> TextDetection:
    """The network with its weights; tells what matched. `weights` stands in for the configured source."""
    paddle.seed(config.run.seed)
    network = build_network(config.model.network, config.model.form)
    network.threshold_gradient_to_trunk = config.model.threshold_gradient_to_trunk
    source = weights or config.model.weights
    match = load_weights(network, source, sha256=None if weights else config.model.sha256)
    reporter.note(match.render())
    network.eval()
    return TextDetection(network, setting, targets_of(config, setting))


def build_updater(config: Config, task: TextDetection, num_samples: int, reporter: Reporter) -> tuple[Updater, int]:
    """The updater of a run and its length in updates; prints what was derived, with the arithmetic."""
    train = config.train
    num_updates = train.updates or (train.epochs or 0) * updates_per_epoch(num_samples, train.effective_batch)
    rate = train.learning_rate
    peak = scaled_learning_rate(rate.base, rate.base_batch, train.effective_batch, rate.rule)
    warmup = capped_warmup(rate.warmup_updates, num_updates)
    precision = resolve_precision(train.precision)
    steps = -(-train.effective_batch // train.micro_batch)
    reporter.note(
        f"effective batch {train.effective_batch} = micro-batch {train.micro_batch} x {steps} accumulation steps;"
        f" {num_updates} updates, {num_samples / train.effective_batch:.1f} an epoch of {num_samples} samples"
    )
    reporter.note(
        f"learning rate {rate.base:g} x {train.effective_batch}/{rate.base_batch} ({rate.rule} rule) = {peak:g} after"
        f" {warmup} updates of warm-up"
        + ("" if warmup == rate.warmup_updates else f" (asked {rate.warmup_updates}: at most a fifth of the run)")
    )
    if precision.reason:
        reporter.note(f"precision {precision.name}: {precision.reason}")
    if not _ACCUMULATION_STEPS[0] <= steps <= _ACCUMULATION_STEPS[1]:
        _advise_steps(steps, train.effective_batch, reporter)
    num_frozen = train_with_frozen_statistics(task.network)
    reporter.note(f"{num_frozen} BatchNorms keep their statistics (frozen), {train.accumulation} accumulation")
    updater = Updater(
        task,
        _groups(config, task),
        LearningRateSchedule(peak, num_updates, warmup, rate.final_share),
        method=train.accumulation,
        weight_decay=train.weight_decay,
        clip_norm=train.clip_norm,
        precision=precision,
        ema_decay=train.ema,
    )
    return updater, num_updates


def training_records(config: Config, records: Sequence[Record]) -> list[Record]:
    """The samples of one epoch: each image `batching.repeats` times, times its size bucket's own factor.

    Raises:
        UsageError: a bucket of that name does not exist.
        DataError: they can't fill one effective batch.
    """
    edges, factors = config.evaluate.bucket_edges_px, config.batching.repeats_by_bucket
    unknown = sorted(set(factors) - set(bucket_names(edges)))
    if unknown:
        raise UsageError(
            f"batching.repeats_by_bucket: unknown bucket {unknown[0]!r}; evaluate.bucket_edges_px makes"
            f" {', '.join(bucket_names(edges))}"
        )
    repeats = config.batching.repeats
    samples = [record for record in records for _ in range(repeats * factors.get(bucket_of(record, edges), 1))]
    if len(samples) < config.train.effective_batch:
        raise DataError(
            f"train.effective_batch {config.train.effective_batch} can't be reached: {len(records)} training images"
            f" give {len(samples)} samples an epoch; set batching.repeats to"
            f" {-(-config.train.effective_batch // max(1, len(samples) // repeats))} or more, or"
            f" train.effective_batch to {len(samples)} or less"
        )
    return samples


def new_run_folder(config: Config) -> Path:
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


def _groups(config: Config, task: TextDetection) -> list[ParameterGroup]:
    found = parameter_groups(task.network)
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
