"""Weights between where training started and where it is: what was learnt, without all that was forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import paddle

from pipelines.engine.ema import assign_all


class Blend:
    """Linear interpolation with the starting weights (WiSE-FT, Wortsman et al. 2022, eq. 1)."""

    def __init__(self, parameters: Sequence[paddle.Tensor]):
        self._parameters = list(parameters)
        self._start = [parameter.detach().clone() for parameter in self._parameters]

    @contextmanager
    def applied(self, share: float) -> Iterator[None]:
        """Inside, the parameters are (1 - share) start + share now; afterwards, bit for bit what they were."""
        now = [parameter.detach().clone() for parameter in self._parameters]
        if share != 1:
            assign_all(self._parameters, [a + (b - a) * share for a, b in zip(self._start, now, strict=True)])
        try:
            yield
        finally:
            assign_all(self._parameters, now)
