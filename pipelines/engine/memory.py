"""What Paddle's allocator holds on the device in use, and what its refusals look like."""

from __future__ import annotations

import gc

import paddle


def on_gpu() -> bool:
    """Whether the device in use is a GPU."""
    return bool(paddle.device.get_device().startswith("gpu"))


def held_bytes() -> int:
    """Tensor memory handed out now, on the device in use."""
    if on_gpu():
        return int(paddle.device.cuda.memory_allocated())
    return int(paddle.base.core.host_memory_stat_current_value("Allocated", 0))


def peak_bytes() -> int:
    """The most that `held_bytes` was since `reset_peak`."""
    if on_gpu():
        return int(paddle.device.cuda.max_memory_allocated())
    return int(paddle.base.core.host_memory_stat_peak_value("Allocated", 0))


def reset_peak() -> None:
    """Start `peak_bytes` anew from what is held now."""
    if on_gpu():
        paddle.device.cuda.reset_max_memory_allocated()
    else:
        paddle.base.core.host_memory_stat_reset_peak_value("Allocated", 0)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed.

    A MemoryError on the CPU, a RuntimeError that says so on a GPU, OpenCV's code -4; an OSError that quotes either
    where Python code that Paddle's C++ had called met it.
    """
    if isinstance(error, MemoryError):
        return True
    if type(error).__module__ == "cv2":
        return "(-4:" in str(error)
    is_paddles = isinstance(error, (RuntimeError, OSError))
    return is_paddles and any(words in str(error) for words in ("ResourceExhausted", "Out of memory", "MemoryError"))


def release_cached() -> None:
    """Give back what only a failed attempt or the allocator's cache still holds.

    An exception's traceback keeps every tensor of the frames it passed alive: call this after the `except` block.
    """
    gc.collect()
    if on_gpu():
        paddle.device.cuda.empty_cache()
