"""A window's loss as a function of its sums, and how much each sum weighs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import paddle

from pipelines.task import Task

Statistics = dict[str, paddle.Tensor]


def derivative(task: Task, totals: Statistics) -> Statistics:
    """lambda = dF/dS at `totals`: one number a statistic (0 where the loss does not depend on it)."""
    leaves = {name: total.detach() for name, total in totals.items()}
    for leaf in leaves.values():
        leaf.stop_gradient = False
    with paddle.enable_grad():
        loss = task.combine(leaves)["loss"]
        gradients = paddle.grad(loss, list(leaves.values()), allow_unused=True)
    zero = paddle.zeros_like(loss).detach()
    return {name: zero if gradient is None else gradient for name, gradient in zip(leaves, gradients, strict=True)}


def sum_statistics(parts: Sequence[Statistics]) -> Statistics:
    """Add the statistics of several micro-batches, name by name, without their graphs."""
    return {name: paddle.add_n([part[name].detach() for part in parts]) for name in parts[0]}


def without_graph(statistics: Statistics) -> Statistics:
    """The same numbers."""
    return {name: value.detach() for name, value in statistics.items()}


def mismatch(used: Statistics, wanted: Statistics, names: Collection[str]) -> paddle.Tensor:
    """The largest difference among `names`, relative to the largest wanted number; a scalar on the device."""
    largest = paddle.amax(paddle.stack([wanted[name].abs() for name in names]))
    return paddle.amax(paddle.stack([relative(used[name], wanted[name], largest) for name in names]))


def relative(value: paddle.Tensor, other: paddle.Tensor, size: paddle.Tensor) -> paddle.Tensor:
    """How far two numbers are apart, as a share of `size`."""
    return (value - other).abs() / (size.abs() + 1e-12)
