"""What to do when an allocation fails: give back what can be given back, try again once, then say so.

One rule for training and evaluation. A first refusal is often not about the work itself: the allocator's cache is in
pieces, or a neighbour on the card held memory for a moment. A second one right after the cache was emptied is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pipelines.engine.memory import is_out_of_memory, release_cached
from pipelines.errors import OutOfMemoryError

Result = TypeVar("Result")


@dataclass(frozen=True)
class Refusal:
    """An allocation failed; holds the allocator's words, not the exception, whose frames keep tensors alive."""

    reason: str


def tried(function: Callable[[], Result]) -> Result | Refusal:
    """The function's result, or the refusal of the allocator, after which the cache is already empty.

    Whatever else the function raises passes. The function must leave nothing half done behind when it fails.
    """
    try:
        return function()
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        refusal = Refusal(_first_line(error))
    release_cached()  # here the exception and the frames it passed are gone
    return refusal


def tried_twice(function: Callable[[], Result]) -> Result | Refusal:
    """`tried`, and once more after a refusal."""
    result = tried(function)
    return tried(function) if isinstance(result, Refusal) else result


def with_second_try(function: Callable[[], Result], told: str) -> Result:
    """The function's result, at the first or the second try.

    Args:
        function: leaves nothing half done behind when it fails.
        told: what did not fit, its shape, and the way out.

    Raises:
        OutOfMemoryError: both tries were refused; says `told`.
    """
    result = tried_twice(function)
    if isinstance(result, Refusal):
        raise OutOfMemoryError(f"{told} (the allocator: {result.reason})")
    return result


def _first_line(error: Exception) -> str:
    """What Paddle says first that is no heading and no frame of its C++ stack, or the exception's name."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if "ResourceExhausted" in line or "emory" in line]
    return (telling or [line for line in lines if line] or [type(error).__name__])[0][:200]
