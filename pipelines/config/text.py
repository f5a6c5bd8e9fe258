"""The configuration of a text detection run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipelines.config.sections import (
    CacheMib,
    Count,
    DataSection,
    EvaluateSection,
    Positive,
    RunConfig,
    Section,
    Share,
    Side,
)

PageSide = Annotated[int, Field(ge=256)]


class InvoicesSection(Section):
    """Invoices to draw into `data.root` when it is not there yet; `sizes` are (height, width) of pages, by turns."""

    train: Count
    val: Count
    seed: int = Field(0, ge=0)
    sizes: list[tuple[PageSide, PageSide]] = Field([(640, 480), (768, 544), (896, 640)], min_length=1)


class TextDataSection(DataSection):
    """The prepared dataset (`wholebatch prepare text`, or any PaddleOCR dataset folder)."""

    task: Literal["text_detection"] = "text_detection"
    synthetic: InvoicesSection | None = None


class TextModelSection(Section):
    """Network, weights and form."""

    network: Literal["PP-OCRv4_mobile", "PP-OCRv5_mobile", "PP-OCRv5_server"]
    weights: str
    sha256: str | None = None
    form: Literal["fused", "branch"] = "fused"
    threshold_gradient_to_trunk: bool = True


class TargetsSection(Section):
    """How labels become shrink maps: `unclip` undoes exactly what inference does, `ratio` is PaddleOCR's rule.

    Text lower than `min_height_px`, at the scale that training sees, is neither learnt nor unlearnt.
    """

    shrink: Literal["unclip", "ratio"] = "unclip"
    ratio: Annotated[float, Field(gt=0, lt=1)] = 0.4
    min_height_px: Positive = 8.0


class TextBatchingSection(Section):
    """What a training sample looks like; sides are multiples of 32.

    `perspective`: how much nearer or farther than its centre an image's corners may come, as in a photograph from the
    side. 0, since scans have none and it costs time; 0.1 for photographs.
    """

    crop_shapes: list[tuple[Side, Side]] = Field(min_length=1)
    whole_page_share: Share = 0.0
    scale_jitter: tuple[Positive, Positive] = (0.8, 1.25)
    rotation_degrees: float = Field(1.0, ge=0, le=45)
    perspective: float = Field(0.0, ge=0, le=0.5)
    text_share: Share = 0.9
    repeats: Count = 1
    repeats_by_bucket: dict[str, Count] = {}
    page_max_pixels: Count = 1664 * 1280
    workers: int = Field(1, ge=0)
    cache_mib: CacheMib = 512


class PostProcessSection(Section):
    """One setting of limit side and DB post-processing: shared by training, evaluation and the exported model.

    The longest side is at most `limit_side`; an exported folder can't ask paddleocr for any other rule.
    """

    limit_side: Side = 960
    binary_threshold: Share = 0.3
    box_threshold: Share = 0.6
    unclip_ratio: Positive = 1.5
    box_type: Literal["quad", "poly"] = "quad"


class TuneSection(Section):
    """Candidates for the setting, tried on training images with the untouched weights."""

    max_images: Count = 24
    limit_sides: list[Side] = []
    binary_thresholds: list[Share] = []
    box_thresholds: list[Share] = []
    unclip_ratios: list[Positive] = []


class TextEvaluateSection(EvaluateSection):
    """At which setting, and whether to tune that setting on the training split first."""

    setting: PostProcessSection = PostProcessSection()
    tune: TuneSection | None = None
    bucket_edges_px: list[Count] = [2000]


class ExportSection(Section):
    """The exported model's name, one that paddleocr knows; by default the network's."""

    model_name: str | None = None


class TextConfig(RunConfig):
    """A whole text detection run."""

    data: TextDataSection
    model: TextModelSection
    targets: TargetsSection = TargetsSection()
    batching: TextBatchingSection
    evaluate: TextEvaluateSection = TextEvaluateSection()
    export: ExportSection = ExportSection()
