"""Several processes, one update: each runs its share of the window, sums cross over once.

Only two things are exchanged in a window: the statistics (a few numbers, before lambda is taken) and the summed
gradients. So the result equals one process's, whatever share each has, and their numbers of micro-batches may differ.
Start the processes with `python -m paddle.distributed.launch`, which ends all of them when one fails.
"""

from __future__ import annotations

import numpy as np
import paddle
import paddle.distributed

from pipelines.engine.gradient_buffer import SumOverProcesses


def join_processes() -> SumOverProcesses | None:
    """Meet the other processes of this launch; None when there are none (the launcher sets the environment)."""
    if paddle.distributed.get_world_size() < 2:
        return None
    paddle.distributed.init_parallel_env()
    return sum_over_processes


@paddle.no_grad()
def sum_over_processes(tensors: list[paddle.Tensor]) -> list[paddle.Tensor]:
    """The sum of each tensor over all processes, in one exchange; every process passes the same shapes and dtype."""
    flat = paddle.concat([tensor.reshape([-1]) for tensor in tensors])
    paddle.distributed.all_reduce(flat)
    parts = paddle.split(flat, [int(np.prod(tensor.shape)) for tensor in tensors])
    return [part.reshape(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]
