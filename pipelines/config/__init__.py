"""A YAML file and `-o section.key=value` overrides become one frozen, checked configuration; all faults come at once.

Nothing is inherited and nothing unknown is ignored. Below `runs` no function sees a config: plain arguments only.
"""

from __future__ import annotations

from pipelines.config.defects import DefectConfig, FactorySection, ViewSection
from pipelines.config.loading import CONFIGS, Config, dump_config, known_keys, load_config
from pipelines.config.sections import RunConfig, TrainSection
from pipelines.config.text import InvoicesSection, PostProcessSection, TextConfig, TuneSection

__all__ = [
    "CONFIGS",
    "Config",
    "DefectConfig",
    "FactorySection",
    "InvoicesSection",
    "PostProcessSection",
    "RunConfig",
    "TextConfig",
    "TrainSection",
    "TuneSection",
    "ViewSection",
    "dump_config",
    "known_keys",
    "load_config",
]
