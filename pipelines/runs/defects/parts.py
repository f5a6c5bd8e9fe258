"""From a checked configuration to the parts of a defect detection run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import paddle
import yaml

from pipelines.batching.defects import DefectAugmentation
from pipelines.batching.loader import WindowLoader
from pipelines.batching.mix import EpochMix, tile_records
from pipelines.batching.mosaic import NUM_COMPANIONS
from pipelines.batching.shapes import ShapePlan
from pipelines.config import DefectConfig, ViewSection
from pipelines.defect_detection.network import build_network
from pipelines.defect_detection.setting import Setting
from pipelines.defect_detection.targets import DefectTargets
from pipelines.defect_detection.task import DefectDetection
from pipelines.defect_detection.weights import load_weights
from pipelines.records import Record
from pipelines.runs.reporter import Reporter
from pipelines.runs.wiring import Samples
from pipelines.runs.worker_count import worker_count


def setting_of(view: ViewSection) -> Setting:
    """The view that a configuration names."""
    return Setting.from_view(view.model_dump())


def targets_of(records: Sequence[Record], class_names: Sequence[str], images_a_sample: int = 1) -> DefectTargets:
    """Target arrays with room for as many images as a sample shows, each with the most boxes that one has."""
    most = max((len(record.annotation.boxes_xyxy_px) for record in records), default=0)
    return DefectTargets(most * images_a_sample, len(class_names))


def build_task(
    config: DefectConfig,
    setting: Setting,
    class_names: Sequence[str],
    reporter: Reporter,
    weights: str | None = None,
) -> DefectDetection:
    """The network with its weights; tells what matched. `weights` stands in for the configured source."""
    paddle.seed(config.run.seed)
    network = build_network(config.model.network, tuple(class_names))
    source = weights or config.model.weights
    match = load_weights(
        network,
        source,
        sha256=None if weights else config.model.sha256,
        file_classes=classes_beside(source) or (None if weights else config.model.weights_classes),
    )
    reporter.note(match.render())
    network.eval()
    return DefectDetection(network, setting, targets_of((), class_names), config.model.class_loss)


def classes_beside(source: str) -> list[str] | None:
    """The class names that a run's weights or an exported folder bring along; None for any other source."""
    path = Path(source)
    folder = path if path.is_dir() else path.parent
    description, inference = folder / "description.json", folder / "inference.yml"
    if description.is_file():
        names = json.loads(description.read_text(encoding="utf-8")).get("classes")
    elif inference.is_file():
        names = (yaml.safe_load(inference.read_text(encoding="utf-8")) or {}).get("label_list")
    else:
        return None
    return list(names) if names else None


def training_samples(
    config: DefectConfig, records: Sequence[Record], class_names: Sequence[str], reporter: Reporter
) -> Samples:
    """Images, or their tiles where they are larger than a sample, and the mix that an epoch takes of them."""
    batching, rule = config.batching, setting_of(config.evaluate.view).scale
    views: list[Record] = []
    for record in records:
        scale = rule.of(record.size_hw)
        tile_hw = (round(batching.crop[0] / scale), round(batching.crop[1] / scale))
        views += tile_records([record], tile_hw, round(batching.overlap / scale))
    typical_scale = rule.of(records[0].size_hw) if records else 1.0
    mix = EpochMix(
        views,
        batching.ok_share,
        batching.repeat_threshold,
        config.run.seed,
        min_visible=batching.min_visible,
        min_side_px=batching.min_side_px / typical_scale,
        num_companions=NUM_COMPANIONS if batching.mosaic else 0,
    )
    cut = "" if len(views) == len(records) else f", cut into {len(views)} tiles of {batching.crop} network pixels"
    num_ok = sum(record.annotation.is_ok for record in records)
    reporter.note(f"{len(records)} training images, {num_ok} of them OK{cut}")
    reporter.note(f"to draw from: {mix.composition().describe(class_names)}")
    if batching.mosaic:
        reporter.note(f"a sample is a mosaic of {1 + NUM_COMPANIONS} such views, each with defects or OK by ok_share")
    reporter.note(f"an epoch: {mix.composition(mix.indices(0)).describe(class_names)}")
    return Samples(views, mix)


def window_loader(
    config: DefectConfig, samples: Samples, view: ViewSection, class_names: Sequence[str], reporter: Reporter
) -> WindowLoader:
    """Windows of training samples at the scale of evaluation."""
    batching = config.batching
    return WindowLoader(
        samples.records,
        config.data.root,
        targets_of(samples.records, class_names, 1 + NUM_COMPANIONS if batching.mosaic else 1),
        DefectAugmentation(
            scale=setting_of(view).scale,
            scale_jitter=batching.scale_jitter,
            horizontal_flip=batching.horizontal_flip,
            vertical_flip=batching.vertical_flip,
            quarter_turns=batching.quarter_turns,
            shift_share=batching.shift_share,
            min_visible=batching.min_visible,
            min_side_px=batching.min_side_px,
        ),
        ShapePlan((batching.crop,)),
        mix=samples.mix,
        seed=config.run.seed,
        effective_batch=config.train.effective_batch,
        micro_batch=config.train.fixed_micro_batch,
        workers=worker_count(batching.workers, reporter),
        cache_bytes=batching.cache_mib * 2**20,
    )
