"""The loader of a text detection run, from its configuration."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.batching.loader import WindowLoader
from pipelines.batching.shapes import ShapePlan
from pipelines.batching.text import TextAugmentation
from pipelines.config import PostProcessSection, TextConfig
from pipelines.records import Record
from pipelines.runs.reporter import Reporter
from pipelines.runs.text.parts import setting_of, targets_of
from pipelines.runs.worker_count import worker_count


def window_loader(
    config: TextConfig, records: Sequence[Record], setting: PostProcessSection, reporter: Reporter
) -> WindowLoader:
    """Windows of training samples at the scale and with the targets that belong to `setting`."""
    batching, parts = config.batching, setting_of(setting)
    return WindowLoader(
        records,
        config.data.root,
        targets_of(config, parts),
        TextAugmentation(
            evaluation_size=parts.resize.size_hw,
            scale_jitter=batching.scale_jitter,
            rotation_degrees=batching.rotation_degrees,
            perspective=batching.perspective,
            text_share=batching.text_share,
            page_max_pixels=batching.page_max_pixels,
        ),
        ShapePlan(tuple(batching.crop_shapes), batching.whole_page_share),
        seed=config.run.seed,
        effective_batch=config.train.effective_batch,
        micro_batch=config.train.fixed_micro_batch,
        workers=worker_count(batching.workers, reporter),
        cache_bytes=batching.cache_mib * 2**20,
    )
