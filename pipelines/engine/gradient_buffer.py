"""Where the gradients of a window's micro-batches come together."""

from __future__ import annotations

from collections.abc import Sequence

import paddle


class GradientBuffer:
    """The sum of the micro-batches' gradients, apart from the parameters' own `.grad`.

    A backward writes into `.grad`; `take` moves it here only when it is whole and finite. So a micro-batch
    that fails in the middle of its backward leaves nothing half-added.
    """

    def __init__(self, parameters: Sequence[paddle.Tensor]):
        self._parameters = list(parameters)
        self._sums: list[paddle.Tensor | None] = [None] * len(self._parameters)

    @property
    def parameters(self) -> list[paddle.Tensor]:
        return self._parameters

    def reset(self) -> None:
        self._sums = [None] * len(self._parameters)
        self._clear_gradients()

    @paddle.no_grad()
    def take(self) -> paddle.Tensor:
        """Add every `.grad` if all of them are finite, clear them; returns that as a bool tensor (no host sync)."""
        held = [(i, p.grad) for i, p in enumerate(self._parameters) if p.grad is not None]
        is_finite = all_finite([gradient for _, gradient in held])
        for i, gradient in held:
            kept = paddle.where(is_finite, gradient, paddle.zeros_like(gradient))
            so_far = self._sums[i]
            self._sums[i] = kept if so_far is None else so_far.add_(kept)
        self._clear_gradients()
        return is_finite

    @paddle.no_grad()
    def global_norm(self) -> paddle.Tensor:
        """L2 norm over all summed gradients, a scalar."""
        squares = [total.square().sum() for total in self._sums if total is not None]
        return paddle.add_n(squares).sqrt() if squares else paddle.zeros([])

    @paddle.no_grad()
    def release(self, factor: paddle.Tensor | float) -> None:
        """Write the sums times `factor` into the parameters' `.grad`, for the optimizer step."""
        for parameter, total in zip(self._parameters, self._sums, strict=True):
            if total is not None:
                parameter.grad = total * factor

    def _clear_gradients(self) -> None:
        for parameter in self._parameters:
            parameter.clear_gradient(False)


def all_finite(tensors: Sequence[paddle.Tensor]) -> paddle.Tensor:
    """Whether every element of every tensor is finite, as a bool scalar on the device."""
    if not tensors:
        return paddle.ones([], dtype="bool")
    # a sum is finite only if all its terms are, barring overflow, which is not finite either
    return paddle.isfinite(paddle.add_n([tensor.abs().sum() for tensor in tensors]))
