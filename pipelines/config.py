"""A YAML file and `-o section.key=value` overrides become one frozen, checked `Config`; all faults come at once.

Nothing is inherited and nothing unknown is ignored. Below `runs.py` no function sees a config: plain arguments only.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipelines.errors import UsageError

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Side = Annotated[int, Field(ge=32, multiple_of=32)]
PageSide = Annotated[int, Field(ge=256)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunSection(_Section):
    """Where the run goes and what makes it repeatable."""

    name: str = Field(pattern=r"^[^/\\]*[^/\\.][^/\\]*$")  # one folder below the root, not the root itself
    root: Path = Path("runs")
    seed: int = Field(0, ge=0)


class SyntheticSection(_Section):
    """Invoices to draw into `data.root` when it is not there yet; `sizes` are (height, width) of pages, by turns."""

    train: Count
    val: Count
    seed: int = Field(0, ge=0)
    sizes: list[tuple[PageSide, PageSide]] = Field([(640, 480), (768, 544), (896, 640)], min_length=1)


class DataSection(_Section):
    """The prepared dataset (`wholebatch prepare`, or any PaddleOCR dataset folder)."""

    root: Path
    task: Literal["text_detection"] = "text_detection"
    synthetic: SyntheticSection | None = None


class ModelSection(_Section):
    """Network, weights and form."""

    network: Literal["PP-OCRv4_mobile", "PP-OCRv5_mobile", "PP-OCRv5_server"]
    weights: str
    sha256: str | None = None
    form: Literal["fused", "branch"] = "fused"
    threshold_gradient_to_trunk: bool = True


class TargetsSection(_Section):
    """How labels become shrink maps: `unclip` undoes exactly what inference does, `ratio` is PaddleOCR's rule.

    Text lower than `min_height_px`, at the scale that training sees, is neither learnt nor unlearnt.
    """

    shrink: Literal["unclip", "ratio"] = "unclip"
    ratio: Annotated[float, Field(gt=0, lt=1)] = 0.4
    min_height_px: Positive = 8.0


class BatchingSection(_Section):
    """What a training sample looks like; sides are multiples of 32."""

    crop_shapes: list[tuple[Side, Side]] = Field(min_length=1)
    whole_page_share: Share = 0.0
    scale_jitter: tuple[Positive, Positive] = (0.8, 1.25)
    rotation_degrees: float = Field(1.0, ge=0, le=45)
    text_share: Share = 0.9
    repeats: Count = 1
    repeats_by_bucket: dict[str, Count] = {}
    page_max_pixels: Count = 1664 * 1280
    workers: int = Field(1, ge=0)


class LearningRateSection(_Section):
    """`base` belongs to `base_batch`; `rule` carries it to the effective batch."""

    base: Positive
    base_batch: Count = 32
    rule: Literal["linear", "sqrt", "none"] = "linear"
    warmup_updates: int = Field(5, ge=0)
    final_share: Share = 0.01
    factors: dict[str, Annotated[float, Field(ge=0)]] = {}


class TrainSection(_Section):
    """One update is one effective batch; everything below counts updates."""

    effective_batch: Count = 32
    micro_batch: Count = 2
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
    checkpoint_every_updates: Count = 10
    keep_checkpoints: Count = 2

    @model_validator(mode="after")
    def _needs_one_length(self) -> TrainSection:
        if (self.updates is None) == (self.epochs is None):
            raise ValueError("give either updates or epochs, not both and not neither")
        if self.micro_batch > self.effective_batch:
            raise ValueError(
                f"micro_batch {self.micro_batch} is more than effective_batch {self.effective_batch}: an update would"
                " hold less than one micro-batch; lower micro_batch"
            )
        return self


class PostProcessSection(_Section):
    """One setting of limit side and DB post-processing: shared by training, evaluation and the exported model.

    The longest side is at most `limit_side`; an exported folder can't ask paddleocr for any other rule.
    """

    limit_side: Side = 960
    binary_threshold: Share = 0.3
    box_threshold: Share = 0.6
    unclip_ratio: Positive = 1.5
    box_type: Literal["quad", "poly"] = "quad"


class TuneSection(_Section):
    """Candidates for the setting, tried on training images with the untouched weights."""

    max_images: Count = 24
    limit_sides: list[Side] = []
    binary_thresholds: list[Share] = []
    box_thresholds: list[Share] = []
    unclip_ratios: list[Positive] = []


class EvaluateSection(_Section):
    """When to evaluate, at which setting, and whether to tune that setting on the training split first."""

    every_updates: Count = 10
    setting: PostProcessSection = PostProcessSection()
    tune: TuneSection | None = None
    blend: list[Annotated[float, Field(gt=0, le=1)]] = Field(default=[1.0], min_length=1)
    bucket_edges_px: list[Count] = [2000]


class ExportSection(_Section):
    """The exported model's name, one that paddleocr knows; by default the network's."""

    model_name: str | None = None


class Config(_Section):
    """A whole run."""

    run: RunSection
    data: DataSection
    model: ModelSection
    targets: TargetsSection = TargetsSection()
    batching: BatchingSection
    train: TrainSection
    evaluate: EvaluateSection = EvaluateSection()
    export: ExportSection = ExportSection()


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read, override and check a configuration.

    Args:
        path: YAML file.
        overrides: "section.key=value", the value in YAML.

    Raises:
        UsageError: with every fault of the file and the overrides.
    """
    try:
        raw = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_Loader)
    except FileNotFoundError:
        raise UsageError(f"configuration {path} does not exist; ready ones are under configs/") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as fault:
        raise UsageError(f"configuration {path} can't be read as YAML: {fault}") from None
    if not isinstance(raw, dict):
        raise UsageError(f"configuration {path} must hold sections (run, data, model, …), but got {type(raw).__name__}")
    for override in overrides:
        _apply(raw, override)
    try:
        return Config.model_validate(raw)
    except ValidationError as fault:
        lines = [_explain(error) for error in fault.errors()]
        raise UsageError(f"configuration {path} has {len(lines)} fault(s):\n  " + "\n  ".join(lines)) from None


def dump_config(config: Config) -> str:
    """The configuration as run, as YAML."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in one section, where YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _apply(raw: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    names = key.strip().split(".")
    if not separator or not all(names):
        raise UsageError(f"-o {override!r} must look like section.key=value, for example train.updates=10")
    section = raw
    for name in names[:-1]:
        section = section.setdefault(name, {})
        if not isinstance(section, dict):
            raise UsageError(f"-o {override!r}: {name!r} is a value, not a section")
    try:
        section[names[-1]] = yaml.safe_load(text)
    except yaml.YAMLError:
        raise UsageError(f"-o {override!r}: {text!r} is not a YAML value") from None


def _explain(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "(file)"
    if error["type"] == "extra_forbidden":
        close = difflib.get_close_matches(where, _known_keys(Config), n=1, cutoff=0.5)
        return f"{where}: unknown key" + (f"; did you mean {close[0]}?" if close else "")
    if error["type"] == "missing":
        return f"{where}: required, but missing"
    if error["type"] == "string_type":
        return f"{where}: must be text, but got {error['input']!r}; put it in quotes"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}, but got {error['input']!r}"


def _known_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        inner = [field.annotation, *getattr(field.annotation, "__args__", ())]
        for candidate in inner:
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                keys.extend(_known_keys(candidate, f"{prefix}{name}."))
    return keys
