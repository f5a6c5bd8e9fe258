"""Exponential moving average of the weights, counted in updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import paddle


class ExponentialMovingAverage:
    """Averages of parameters in their own type, warmed up so that the start does not dominate.

    After update n the decay is min(decay, (1 + n) / (10 + n)), as in TensorFlow's
    `ExponentialMovingAverage(num_updates=n)`. A skipped update does not count.
    """

    def __init__(self, parameters: Sequence[paddle.Tensor], decay: float):
        if not 0 < decay < 1:
            raise ValueError(f"decay must lie between 0 and 1, but got {decay}")
        self._parameters = list(parameters)
        self._averages = [parameter.detach().clone() for parameter in self._parameters]
        self._decay = decay
        self.num_updates = 0

    @paddle.no_grad()
    def update(self) -> None:
        self.num_updates += 1
        decay = min(self._decay, (1 + self.num_updates) / (10 + self.num_updates))
        for average, parameter in zip(self._averages, self._parameters, strict=True):
            # as a step towards the parameter: a frozen one's average then stays bit for bit what it is
            average.add_((parameter - average) * (1 - decay))

    def applied(self) -> AbstractContextManager[None]:
        """Inside, the parameters hold the averages; afterwards, bit for bit what they held before."""
        return holding(self._parameters, self._averages)

    def state(self) -> dict[str, Any]:
        return {"averages": self._averages, "num_updates": self.num_updates}

    def restore(self, state: dict[str, Any]) -> None:
        assign_all(self._averages, state["averages"])
        self.num_updates = int(state["num_updates"])


@contextmanager
def holding(parameters: Sequence[paddle.Tensor], values: Sequence[paddle.Tensor]) -> Iterator[None]:
    """Inside, the parameters hold `values`; afterwards, bit for bit what they held before."""
    before = [parameter.detach().clone() for parameter in parameters]
    assign_all(parameters, values)
    try:
        yield
    finally:
        assign_all(parameters, before)


@paddle.no_grad()
def assign_all(targets: Sequence[paddle.Tensor], values: Sequence[paddle.Tensor]) -> None:
    """Copy values into tensors, one by one."""
    for target, value in zip(targets, values, strict=True):
        paddle.assign(value, target)
