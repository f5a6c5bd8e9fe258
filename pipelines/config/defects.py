"""The configuration of a defect detection run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipelines.config.sections import (
    CacheMib,
    Count,
    DataSection,
    EvaluateSection,
    NonNegative,
    Positive,
    RunConfig,
    Section,
    Share,
    Side,
)
from pipelines.config.text import ExportSection

BelowOne = Annotated[float, Field(ge=0, lt=1)]


class FactorySection(Section):
    """Factory images to draw into `data.root` when it is not there yet; `sizes` are (height, width)."""

    train: Count
    val: Count
    seed: int = Field(0, ge=0)
    sizes: list[tuple[Count, Count]] = Field([(256, 256)], min_length=1)
    ok_share: Share = 0.8


class DefectDataSection(DataSection):
    """The prepared dataset (`wholebatch prepare defect`, or any folder with COCO's train.json and val.json)."""

    task: Literal["defect_detection"]
    synthetic: FactorySection | None = None


class DefectModelSection(Section):
    """Network (a name under configs/defect_detection/ppdet, or the path of a ppdet YAML file) and weights.

    `weights_classes` names the classes of the weights, in the order of their ids: then those that the dataset has too
    keep what they learnt. The run's own weights and exported models know their classes.

    `class_loss`: "varifocal" is PaddleDetection's; "contrasted" tells the classes of a defect apart from the first
    updates on, which is what a few hundred images need (see `defect_detection.statistics`).
    """

    network: str
    weights: str
    sha256: str | None = None
    weights_classes: list[str] | None = None
    class_loss: Literal["contrasted", "varifocal"] = "contrasted"


class ViewSection(Section):
    """What the network sees of an image: its scale, and tiles where that is larger than the network's side.

    `scale` is network pixels per image pixel; `longest_side`, if given, takes its place: every image is resized to it.
    """

    scale: Positive = 1.0
    longest_side: Count | None = None
    tile: Side = 640
    overlap: NonNegative = 128
    confidence_floor: BelowOne = 0.01
    nms_iou: Annotated[float, Field(gt=0, le=1)] = 0.6
    max_detections: Count = 100

    @model_validator(mode="after")
    def _overlap_leaves_a_stride(self) -> ViewSection:
        if self.overlap >= self.tile:
            raise ValueError(f"overlap {self.overlap} must be below tile {self.tile}: tiles would never move on")
        return self


class DefectBatchingSection(Section):
    """What a training sample looks like and how often it comes.

    `crop` is the (height, width) of a training sample; images that are larger at the evaluation's scale are cut into
    tiles of this size that share `overlap` network pixels. `ok_share` of the samples show no defect; null takes every
    one once an epoch. Classes shown by fewer than `repeat_threshold` of the defective samples come more often; null:
    no repeats. With `mosaic` a sample is two by two pieces of half its sides, each from an image of its own: four small
    defects for the price of one. `ok_share` is then of the pieces.
    """

    crop: tuple[Side, Side] = (640, 640)
    overlap: NonNegative = 64
    ok_share: BelowOne | None = 0.8
    mosaic: bool = False
    repeat_threshold: Share | None = None
    scale_jitter: tuple[Positive, Positive] = (0.9, 1.1)
    horizontal_flip: bool = True
    vertical_flip: bool = False
    quarter_turns: bool = False
    shift_share: Share = 0.1
    min_visible: Share = 0.6
    min_side_px: Positive = 4.0
    workers: NonNegative = 1
    cache_mib: CacheMib = 512

    @model_validator(mode="after")
    def _overlap_leaves_a_stride(self) -> DefectBatchingSection:
        if self.overlap >= min(self.crop):
            raise ValueError(f"overlap {self.overlap} must be below crop {self.crop}: tiles would never move on")
        return self


class DefectEvaluateSection(EvaluateSection):
    """The view at which to evaluate, the number that chooses the best model, and the miss rate a factory wants.

    `wanted_miss_rate`: the report gives the confidence threshold that reaches it, and the false alarms it costs.
    """

    view: ViewSection = ViewSection()
    objective: Literal["ap_50", "map"] = "ap_50"
    wanted_miss_rate: Share = 0.02


class DefectConfig(RunConfig):
    """A whole defect detection run."""

    data: DefectDataSection
    model: DefectModelSection
    batching: DefectBatchingSection = DefectBatchingSection()
    evaluate: DefectEvaluateSection = DefectEvaluateSection()
    export: ExportSection = ExportSection()
