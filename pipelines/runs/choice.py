"""A few of many, of every kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Value = TypeVar("Value")


def spread_evenly(kinds: Sequence[Sequence[Value]], most: int) -> list[Value]:
    """At most `most` values, each kind with an equal share, evenly spaced inside a kind.

    What a small kind leaves goes to the larger ones.
    """
    chosen: list[Value] = []
    for position, members in enumerate(sorted(kinds, key=len)):
        share = (most - len(chosen)) // (len(kinds) - position)
        picks = np.unique(np.linspace(0, len(members) - 1, min(share, len(members))).round().astype(int))
        chosen.extend(members[i] for i in picks)
    return chosen
