"""Where the gradients of a window's micro-batches come together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import paddle

SumOverProcesses = Callable[[list[paddle.Tensor]], list[paddle.Tensor]]


class GradientBuffer:
    """The sum of the micro-batches' gradients, apart from the parameters' own `.grad`.

    A backward writes into `.grad`; `take` moves it here once the backward is through, `discard` drops what a
    backward that failed half-way left. So a micro-batch is in the sum whole or not at all, and can be run again.
    """

    def __init__(self, parameters: Sequence[paddle.Tensor]):
        self._parameters = list(parameters)
        self._sums: list[paddle.Tensor | None] = [None] * len(self._parameters)

    def reset(self) -> None:
        """Forget everything, a leftover in `.grad` included."""
        self._sums = [None] * len(self._parameters)
        self.discard()

    def discard(self) -> None:
        """Drop what the parameters hold in `.grad`; the sum stays as it is."""
        for parameter in self._parameters:
            parameter.clear_gradient(False)

    @paddle.no_grad()
    def take(self, *, only_finite: bool = False) -> paddle.Tensor:
        """Add every `.grad` to the sum and clear it.

        Should memory run out here, the sum is as it was before: what has to be allocated is allocated first.

        Args:
            only_finite: add nothing where any number is not finite, so that the micro-batch can be learnt again.

        Returns:
            Whether all of it was finite, as a bool scalar on the device: asking the host here would stall the
            device once a micro-batch. A gradient that is not finite leaves the sum so, and the update notices.
        """
        found = [(i, parameter.grad) for i, parameter in enumerate(self._parameters) if parameter.grad is not None]
        is_finite = all_finite([gradient for _, gradient in found])
        if only_finite:
            found = [(i, paddle.where(is_finite, gradient, paddle.zeros_like(gradient))) for i, gradient in found]
        # a copy: clearing `.grad` empties every other name of the same memory
        fresh = {i: gradient.clone() for i, gradient in found if self._sums[i] is None}
        for i, gradient in found:
            so_far = self._sums[i]
            if so_far is not None:
                so_far.add_(gradient)
        for i, gradient in fresh.items():
            self._sums[i] = gradient
        self.discard()
        return is_finite

    @paddle.no_grad()
    def global_norm(self) -> paddle.Tensor:
        """L2 norm over all summed gradients, a scalar."""
        squares = [total.square().sum() for total in self._sums if total is not None]
        return paddle.add_n(squares).sqrt() if squares else paddle.zeros([])

    @paddle.no_grad()
    def sum_over(self, processes: SumOverProcesses) -> None:
        """Replace every sum by the sum over all processes.

        A parameter may have a gradient in one process only, so zeros stand in and a mark tells who had one:
        a parameter that had none anywhere must be left alone by the optimizer, as in one process.
        """
        trainable = [i for i, parameter in enumerate(self._parameters) if not parameter.stop_gradient]
        if not trainable:
            return
        present = paddle.to_tensor([float(self._sums[i] is not None) for i in trainable])
        filled = [_or_zeros(self._sums[i], self._parameters[i]) for i in trainable]
        *sums, present = processes([*filled, present.astype(filled[0].dtype)])
        for i, total, count in zip(trainable, sums, present.numpy(), strict=True):
            self._sums[i] = total if count > 0 else None

    @paddle.no_grad()
    def release(self, factor: paddle.Tensor | float) -> None:
        """Move the sums times `factor` into the parameters' `.grad`, for the optimizer step; allocates nothing."""
        for i, total in enumerate(self._sums):
            if total is not None:
                self._parameters[i].grad = (
                    total.scale_(factor) if isinstance(factor, float) else total.multiply_(factor.astype(total.dtype))
                )
                self._sums[i] = None


def all_finite(tensors: Sequence[paddle.Tensor]) -> paddle.Tensor:
    """Whether every element of every tensor is finite, as a bool scalar on the device."""
    if not tensors:
        return paddle.ones([], dtype="bool")
    # a sum with an inf or nan in it is inf or nan, whatever else it adds up
    return paddle.isfinite(paddle.add_n([tensor.sum() for tensor in tensors]))


def _or_zeros(total: paddle.Tensor | None, parameter: paddle.Tensor) -> paddle.Tensor:
    zeros: paddle.Tensor = paddle.zeros_like(parameter)
    return zeros if total is None else total
