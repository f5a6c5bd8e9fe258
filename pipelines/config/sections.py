"""Sections that a run of any task has, and the base of all: frozen, and nothing unknown is accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ByteSize, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
Side = Annotated[int, Field(ge=32, multiple_of=32)]
CacheMib = Annotated[int, Field(ge=0)]  # decoded images that all loader workers keep together; 0: none


class Section(BaseModel):
    """Base of all sections."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RunSection(Section):
    """Where the run goes and what makes it repeatable."""

    name: str = Field(pattern=r"^[^/\\]*[^/\\.][^/\\]*$")  # one folder below the root, not the root itself
    root: Path = Path("runs")
    seed: int = Field(0, ge=0)


class LearningRateSection(Section):
    """`base` belongs to `base_batch`; `rule` carries it to the effective batch."""

    base: Positive
    base_batch: Count = 32
    rule: Literal["linear", "sqrt", "none"] = "linear"
    warmup_updates: int = Field(5, ge=0)
    final_share: Share = 0.01
    factors: dict[str, Annotated[float, Field(ge=0)]] = {}


class TrainSection(Section):
    """One update is one effective batch; everything below counts updates.

    `micro_batch`: images of one forward; "auto" plans them by shape for `memory` ("16GiB"; by default the card's, or
    most of what the host has free), see docs/memory.md.
    `recompute`: activations are computed again in the backward, which takes time and saves memory (docs/memory.md);
    auto: only where one image does not fit otherwise. `on_oom`: what to do about a shape of which not even that fits.
    """

    effective_batch: Count = 32
    micro_batch: Count | Literal["auto"] = 2
    memory: ByteSize | None = None
    updates: Count | None = None
    epochs: Count | None = None
    accumulation: Literal["exact", "labels", "rescale", "replay", "mean"] = "exact"
    learning_rate: LearningRateSection
    frozen_updates: dict[str, Annotated[int, Field(ge=0)]] = {}
    weight_decay: float = Field(0.0, ge=0)
    clip_norm: Positive | None = 10.0
    precision: Literal["auto", "fp32", "fp16", "bf16"] = "auto"
    batch_norm: Literal["frozen"] = "frozen"
    ema: Annotated[float, Field(gt=0, lt=1)] | None = None
    recompute: Literal["auto", "always", "never"] = "auto"
    on_oom: Literal["stop", "skip"] = "stop"
    checkpoint_every_updates: Count = 10
    keep_checkpoints: Count = 2

    @property
    def fixed_micro_batch(self) -> int:
        """The configured number, or what serves until "auto" is planned."""
        return min(2, self.effective_batch) if self.micro_batch == "auto" else self.micro_batch

    @model_validator(mode="after")
    def _needs_one_length(self) -> TrainSection:
        if (self.updates is None) == (self.epochs is None):
            raise ValueError("give either updates or epochs, not both and not neither")
        if self.micro_batch != "auto" and self.micro_batch > self.effective_batch:
            raise ValueError(
                f"micro_batch {self.micro_batch} is more than effective_batch {self.effective_batch}: an update would"
                " hold less than one micro-batch; lower micro_batch"
            )
        return self


class DataSection(Section):
    """The prepared dataset; a task adds what else it knows."""

    root: Path


class EvaluateSection(Section):
    """When to evaluate, and how far from the starting to the trained weights to go (1: all the way)."""

    every_updates: Count = 10
    blend: list[Annotated[float, Field(gt=0, le=1)]] = Field(default=[1.0], min_length=1)


class RunConfig(Section):
    """What the configurations of all tasks have in common."""

    run: RunSection
    data: DataSection
    train: TrainSection
    evaluate: EvaluateSection = EvaluateSection()
