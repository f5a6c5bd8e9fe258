"""From a checked configuration to the parts of a text detection run."""

from __future__ import annotations

from collections.abc import Sequence

import paddle

from pipelines.config import PostProcessSection, TextConfig
from pipelines.errors import DataError, UsageError
from pipelines.records import Record
from pipelines.runs.reporter import Reporter
from pipelines.runs.text.buckets import bucket_names, bucket_of
from pipelines.text_detection.boxes import PostProcess
from pipelines.text_detection.network import build_network
from pipelines.text_detection.resize import ResizeRule
from pipelines.text_detection.targets import TextTargets
from pipelines.text_detection.task import Setting, TextDetection
from pipelines.text_detection.weights import load_weights


def setting_of(section: PostProcessSection) -> Setting:
    """The resize rule and post-processing that a configuration names."""
    return Setting(
        ResizeRule(section.limit_side),
        PostProcess(section.binary_threshold, section.box_threshold, section.unclip_ratio, box_type=section.box_type),
    )


def targets_of(config: TextConfig, setting: Setting) -> TextTargets:
    """Target maps that the setting's post-processing turns back into the labels."""
    return TextTargets(
        shrink=config.targets.shrink,
        ratio=config.targets.ratio,
        unclip_ratio=setting.post_process.unclip_ratio,
        min_height_px=config.targets.min_height_px,
    )


def build_task(config: TextConfig, setting: Setting, reporter: Reporter, weights: str | None = None) -> TextDetection:
    """The network with its weights; tells what matched. `weights` stands in for the configured source."""
    paddle.seed(config.run.seed)
    network = build_network(config.model.network, config.model.form)
    network.threshold_gradient_to_trunk = config.model.threshold_gradient_to_trunk
    source = weights or config.model.weights
    match = load_weights(network, source, sha256=None if weights else config.model.sha256)
    reporter.note(match.render())
    network.eval()
    return TextDetection(network, setting, targets_of(config, setting))


def training_records(config: TextConfig, records: Sequence[Record]) -> list[Record]:
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
