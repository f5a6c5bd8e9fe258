"""Precision as a value: what the forward computes in, and the loss scale that belongs to it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import paddle

from pipelines.errors import DataError, UsageError

CHOICES = ("auto", "fp32", "fp16", "bf16")
_BF16_COMPUTE_CAPABILITY = (8, 0)


@dataclass(frozen=True)
class Precision:
    """What a forward pass computes in; parameters, gradients and statistics stay float32 (float64 in proofs).

    Attributes:
        name: "fp32", "fp16" or "bf16".
        reason: why `auto` or a refusal chose it, for the user; "" when it was simply asked for.
    """

    name: str = "fp32"
    reason: str = ""

    @property
    def is_low(self) -> bool:
        return self.name != "fp32"

    def autocast(self) -> AbstractContextManager[None]:
        """O1 mixed precision: matrix products and convolutions in the low type, the rest in float32."""
        dtype: Literal["bfloat16", "float16"] = "bfloat16" if self.name == "bf16" else "float16"
        context: AbstractContextManager[None] = paddle.amp.auto_cast(enable=self.is_low, level="O1", dtype=dtype)
        return context


def resolve_precision(name: str) -> Precision:
    """Turn the configured choice into what this device can do.

    Raises:
        UsageError: the device can't compute in the type that was asked for.
    """
    if name not in CHOICES:
        raise UsageError(f"train.precision must be one of {', '.join(CHOICES)}, but got {name!r}")
    on_gpu = paddle.device.get_device().startswith("gpu")
    if name == "auto":
        return Precision("fp16", "a GPU computes fp16 fastest") if on_gpu else Precision("fp32", "a CPU gains nothing")
    if name in ("fp16", "bf16") and not on_gpu:
        # paddle's autocast does nothing on a CPU, so a run would be fp32 under another name
        raise UsageError(f"train.precision {name} needs a GPU, but the device is a CPU; use fp32 or auto")
    if name == "bf16":
        capability = paddle.device.cuda.get_device_capability()
        if capability < _BF16_COMPUTE_CAPABILITY:
            # asking the framework is not enough: emulated bf16 answers yes and then runs slower than fp32
            raise UsageError(
                f"train.precision bf16 needs compute capability 8.0, but this card has {capability[0]}.{capability[1]};"
                " use fp16"
            )
    return Precision(name)


class LossScale:
    """The factor that keeps small fp16 gradients from vanishing; constant within a window.

    It halves after an update in which any gradient overflowed, down to `floor`, and doubles after `growth_updates`
    without. An overflow costs time only, as its micro-batch is learnt again in float32; one at the floor, in
    `most_at_floor` updates in a row, is not a matter of scale.
    """

    def __init__(
        self,
        precision: Precision,
        *,
        start: float = 2.0**15,
        floor: float = 1.0,
        growth_updates: int = 200,
        most_at_floor: int = 10,
    ):
        self.is_dynamic = precision.name == "fp16"
        self.value = start if self.is_dynamic else 1.0
        self._floor = floor
        self._growth_updates = growth_updates
        self._most_at_floor = most_at_floor
        self._good_updates = 0
        self._at_floor = 0

    def after_update(self, *, had_overflow: bool) -> None:
        """Adapt to what one update saw.

        Raises:
            DataError: gradients overflow at the floor again and again.
        """
        if not self.is_dynamic:
            return
        if had_overflow:
            self._after_overflow()
            return
        self._good_updates, self._at_floor = self._good_updates + 1, 0
        if self._good_updates >= self._growth_updates:
            self.value, self._good_updates = self.value * 2, 0

    def _after_overflow(self) -> None:
        self._at_floor = self._at_floor + 1 if self.value <= self._floor else 0
        if self._at_floor >= self._most_at_floor:
            raise DataError(
                f"fp16 gradients overflow even at loss scale {self.value:g}, in {self._at_floor} updates in a row: this"
                " model does not train in fp16 on this data; set train.precision to fp32"
            )
        self.value, self._good_updates = max(self.value / 2, self._floor), 0

    def state(self) -> dict[str, float]:
        return {"value": self.value, "good_updates": self._good_updates}

    def restore(self, state: dict[str, float]) -> None:
        self.value, self._good_updates = state["value"], int(state["good_updates"])
