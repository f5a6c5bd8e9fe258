"""A run small enough for a test: tiny pages, tiny crops, a handful of updates, with everything a real run has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.config import TextConfig, load_config

REPOSITORY = Path(__file__).resolve().parents[2]
SMOKE = REPOSITORY / "configs" / "text_detection" / "smoke.yml"

TINY = (
    "data.synthetic={train: 8, val: 3, seed: 7, sizes: [[320, 256], [256, 256], [352, 288]]}",
    "batching.crop_shapes=[[64, 96], [96, 64], [96, 96]]",
    "batching.whole_page_share=0",
    "batching.workers=0",
    "train.effective_batch=8",
    "train.micro_batch=2",
    "train.updates=3",
    "train.frozen_updates={backbone: 1, neck: 1, head: 1}",
    "evaluate.every_updates=3",
    "evaluate.tune={max_images: 2, unclip_ratios: [1.2, 1.5]}",
)
"""Overrides that shrink the smoke configuration."""

DEFECT_SMOKE = REPOSITORY / "configs" / "defect_detection" / "smoke.yml"

DEFECT_TINY = (
    "data.synthetic={train: 12, val: 8, seed: 7, sizes: [[128, 128], [128, 160]], ok_share: 0.5}",
    "batching.crop=[128, 128]",
    "batching.overlap=32",
    "batching.ok_share=0.5",
    "batching.workers=0",
    "train.effective_batch=8",
    "train.micro_batch=2",
    "train.updates=3",
    "evaluate.every_updates=3",
    "evaluate.view={tile: 128, overlap: 32, confidence_floor: 0.0}",
)
"""Overrides that shrink the defect smoke configuration; images of 160 px take two tiles."""


class Journey(NamedTuple):
    """Where everything of a user's way lies, and what the commands printed, by name."""

    folder: Path
    data: Path
    run: Path
    model: Path
    printed: dict[str, str]


def content(path: Path) -> Any:
    """Of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def tiny_config(folder: Path, name: str, *overrides: str) -> TextConfig:
    """The shrunken smoke configuration with its dataset and its runs in `folder`."""
    places = (f"data.root={folder / 'pages'}", f"run.root={folder / 'runs'}", f"run.name={name}")
    config = load_config(SMOKE, [*TINY, *places, *overrides])
    assert isinstance(config, TextConfig)
    return config


def as_options(overrides: tuple[str, ...]) -> list[str]:
    return [part for override in overrides for part in ("-o", override)]


def wholebatch(folder: Path, *arguments: object, exit_code: int = 0) -> str:
    """Run a command in a process of its own, in `folder`, with its output piped; returns that output."""
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=900,  # a hang must end, a slow machine need not
    )
    assert done.returncode == exit_code, done.stdout
    assert "Traceback" not in done.stdout
    return done.stdout
