"""Weights between where training started and where it is: what was learnt, without all that was forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import paddle

from pipelines.engine.ema import holding


class Blend:
    """Linear interpolation with the starting weights (WiSE-FT, Wortsman et al. 2022, eq. 1)."""

    def __init__(self, parameters: Sequence[paddle.Tensor]):
        self._parameters = list(parameters)
        self._start = [parameter.detach().clone() for parameter in self._parameters]

    def applied(self, share: float) -> AbstractContextManager[None]:
        """Inside, the parameters are (1 - share) start + share now; afterwards, bit for bit what they were."""
        if share == 1:
            return nullcontext()  # to the bit what they are, which start + (now - start) need not be
        return holding(
            self._parameters,
            [start + (now.detach() - start) * share for start, now in zip(self._start, self._parameters, strict=True)],
        )
