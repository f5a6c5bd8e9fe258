"""What the engine asks of a task, and nothing more.

The loss of a window is `combine(sum over micro-batches of statistics(micro_batch))`: any function of a few
additive sums. That is all the engine needs to know to make the gradient of many small micro-batches equal
the gradient of the whole batch (docs/accumulation.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from pipelines.records import MicroBatch, Sample

if TYPE_CHECKING:
    import paddle

ExactMethod = Literal["labels", "rescale", "replay"]


@runtime_checkable
class Task(Protocol):
    """One kind of model with its loss.

    Attributes:
        network: the layer whose parameters are trained.
        exact_by: the cheapest method whose gradient is exact for this loss.
        recomputable: layers of the network, none inside another, that hold most of the activations of a forward; the
            engine may have them computed again in the backward where memory is short. Empty: nothing to gain.
        divisor: for `rescale`, the name of the statistic that divides every term (else "").
    """

    network: paddle.nn.Layer
    exact_by: ExactMethod
    divisor: str

    @property
    def recomputable(self) -> Sequence[paddle.nn.Layer]: ...

    def targets(self, image: np.ndarray, annotation: Any, source: str) -> Sample:
        """Targets of one transformed image: numpy only, it runs in loader workers."""
        ...

    def statistics(self, micro_batch: MicroBatch) -> dict[str, paddle.Tensor]:
        """Forward pass, then the loss's additive sums: scalars, with the graph when it is enabled."""
        ...

    def label_statistics(self, micro_batch: MicroBatch) -> dict[str, paddle.Tensor]:
        """The statistics that follow from labels alone (for `labels`; empty for others)."""
        ...

    def combine(self, totals: dict[str, paddle.Tensor]) -> dict[str, paddle.Tensor]:
        """The window's loss, under "loss", and its named parts, from the window's sums."""
        ...

    def predict(self, images: Sequence[np.ndarray]) -> list[Any]:
        """Findings in source-image pixels, one value an image; images may differ in size."""
        ...
