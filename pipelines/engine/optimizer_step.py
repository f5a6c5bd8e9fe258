"""One step of an optimizer that is made whole even if memory runs out in its middle."""

from __future__ import annotations

from collections.abc import Sequence

import paddle

from pipelines.engine.retry import Refusal, tried
from pipelines.errors import OutOfMemoryError

_MOST_ATTEMPTS = 3


def step_whole(optimizer: paddle.optimizer.AdamW, parameters: Sequence[paddle.Tensor]) -> int:
    """Step every parameter that has a gradient, each once; gradients of a broken-off step may be gone afterwards.

    Paddle steps one parameter after the other, and each has its own power of beta 2, which its step multiplies: that
    tells which parameters a broken-off step had reached (the power of beta 1 is 0 in float32 after 900 steps). They
    keep what they got, and the others follow.

    Returns:
        How often memory ran out.

    Raises:
        OutOfMemoryError: it does so every time.
    """
    before = {name: power.clone() for name, power in _powers(optimizer, parameters).items()}
    for num_failures in range(_MOST_ATTEMPTS):
        if not isinstance(tried(optimizer.step), Refusal):
            return num_failures
        now = _powers(optimizer, parameters)
        for parameter in parameters:
            if _was_stepped(before.get(parameter.name), now.get(parameter.name), optimizer._beta2):
                parameter.clear_gradient(False)
    raise OutOfMemoryError("the optimizer's step does not fit in memory; lower train.micro_batch or free some memory")


def _powers(optimizer: paddle.optimizer.AdamW, parameters: Sequence[paddle.Tensor]) -> dict[str, paddle.Tensor]:
    """The power of beta 2 of each parameter, by name; none before its first step."""
    state = optimizer.state_dict()
    keys = {parameter.name: f"{parameter.name}_beta2_pow_acc_0" for parameter in parameters}
    return {name: state[key] for name, key in keys.items() if key in state}


def _was_stepped(before: paddle.Tensor | None, now: paddle.Tensor | None, beta: float) -> bool:
    """Whether a power went from beta^k to beta^(k + 1); it starts at beta itself."""
    if now is None:
        return False
    start = beta if before is None else before.item()
    return bool(now.item() < start * (1 + beta) / 2)
