"""A failed allocation is tried again once, with nothing of the first attempt alive, then told in one typed error.

Run: pytest tests/unit/engine/test_retry.py
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np
import pytest

from pipelines.engine.retry import Refusal, tried, tried_twice, with_second_try
from pipelines.errors import OutOfMemoryError


def failing(times: int, error: Exception) -> tuple[Callable[[], str], list[int]]:
    calls: list[int] = []

    def function() -> str:
        calls.append(len(calls))
        if len(calls) <= times:
            raise error
        return "done"

    return function, calls


def test_what_succeeds_is_called_once() -> None:
    function, calls = failing(0, MemoryError())
    assert with_second_try(function, "the work does not fit") == "done"
    assert len(calls) == 1


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 3 GiB"),
        np._core._exceptions._ArrayMemoryError((4, 4), np.dtype("float32")),  # type: ignore[attr-defined]
        RuntimeError("(ResourceExhausted) Out of memory error on GPU 0"),
    ],
    ids=["cpu", "numpy", "gpu"],
)
def test_one_refusal_costs_a_second_try(error: Exception) -> None:
    function, calls = failing(1, error)
    assert with_second_try(function, "the work does not fit") == "done"
    assert len(calls) == 2


def test_a_second_refusal_is_told_with_the_allocators_words_and_no_chain_of_tracebacks() -> None:
    function, calls = failing(2, MemoryError("Unable to allocate 3 GiB"))
    with pytest.raises(OutOfMemoryError) as caught:
        with_second_try(function, "image a.jpg at 640 x 480: set limit_side lower")
    assert str(caught.value) == (
        "image a.jpg at 640 x 480: set limit_side lower (the allocator: Unable to allocate 3 GiB)"
    )
    assert caught.value.__context__ is None
    assert len(calls) == 2


def test_any_other_fault_passes_at_once() -> None:
    function, calls = failing(1, RuntimeError("(InvalidArgument) shapes differ"))
    with pytest.raises(RuntimeError, match="InvalidArgument"):
        tried_twice(function)
    assert len(calls) == 1


def test_nothing_of_the_first_attempt_is_alive_at_the_second() -> None:
    held: list[weakref.ref[np.ndarray]] = []
    alive_at_second: list[bool] = []

    def function() -> str:
        if held:
            alive_at_second.append(held[0]() is not None)
            return "done"
        activation = np.zeros(1000)
        held.append(weakref.ref(activation))
        raise MemoryError

    assert tried_twice(function) == "done"
    assert alive_at_second == [False]


def test_a_refusal_without_words_names_the_exception() -> None:
    assert tried(failing(1, MemoryError())[0]) == Refusal("MemoryError")


def test_of_paddles_long_message_the_telling_line_is_kept() -> None:
    message = "\n\n----\nC++ Traceback\n----\n0 paddle::f()\nResourceExhaustedError: Out of memory on GPU 0.\n[Hint]"
    refusal = tried(failing(1, RuntimeError(message))[0])
    assert refusal == Refusal("ResourceExhaustedError: Out of memory on GPU 0.")
