"""Measure how far an accumulated gradient is from the whole batch's, on the user's own model and window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import paddle

from pipelines.engine.accumulate import Accumulated, accumulate
from pipelines.engine.gradient_buffer import GradientBuffer
from pipelines.engine.recovery import evenly_split
from pipelines.engine.totals import Statistics, derivative, sum_statistics
from pipelines.records import MicroBatch
from pipelines.task import Task

# a tensor whose gradient is this much smaller than the largest one is rounding noise, not a direction
_NEGLIGIBLE = 1e-6

Gradients = dict[str, np.ndarray]


@dataclass(frozen=True)
class Difference:
    """One method's gradient against the whole batch's.

    Attributes:
        per_tensor: relative error of each parameter tensor, |g - g*| / |g*|.
        max_relative_error: the largest of them.
        relative_error: over all parameters together.
        cosine: of the angle between both, over all parameters.
        norm_ratio: |g| / |g*|.
    """

    per_tensor: dict[str, float]
    max_relative_error: float
    relative_error: float
    cosine: float
    norm_ratio: float


def named_parameters(task: Task) -> dict[str, paddle.Tensor]:
    """The trainable parameters by name."""
    return {name: p for name, p in task.network.named_parameters() if not p.stop_gradient}


def whole_batch_gradient(task: Task, window: Sequence[MicroBatch]) -> Gradients:
    """The reference: all forwards with their graphs kept, the loss once, one backward; needs all their memory."""
    parameters = named_parameters(task)
    statistics = [task.statistics(micro_batch) for micro_batch in window]
    totals = {name: paddle.add_n([part[name] for part in statistics]) for name in statistics[0]}
    task.combine(totals)["loss"].backward()
    return _harvest(parameters)


def accumulated_gradient(task: Task, window: Sequence[MicroBatch], method: str) -> tuple[Gradients, Accumulated]:
    """The gradient that an update with `method` would step along, and how it was weighted."""
    parameters = named_parameters(task)
    buffer = GradientBuffer(list(parameters.values()))
    accumulated = accumulate(task, window, method, buffer)
    buffer.release(1.0 if accumulated.factor is None else accumulated.factor)
    return _harvest(parameters), accumulated


def compare(gradient: Gradients, reference: Gradients) -> Difference:
    """Per tensor and over all; tensors that are negligible in the reference are measured against the largest."""
    norms = {name: float(np.linalg.norm(value)) for name, value in reference.items()}
    largest = max(norms.values())
    per_tensor = {
        name: _ratio(
            float(np.linalg.norm(gradient[name] - value)),
            norms[name] if norms[name] > _NEGLIGIBLE * largest else largest,
        )
        for name, value in reference.items()
    }
    ours, theirs = _flat(gradient, reference), _flat(reference, reference)
    ours_norm, theirs_norm = float(np.linalg.norm(ours)), float(np.linalg.norm(theirs))
    return Difference(
        per_tensor=per_tensor,
        max_relative_error=max(per_tensor.values()),
        relative_error=_ratio(float(np.linalg.norm(ours - theirs)), theirs_norm),
        cosine=1.0 if ours_norm == theirs_norm == 0.0 else _ratio(float(ours @ theirs), ours_norm * theirs_norm),
        norm_ratio=1.0 if ours_norm == theirs_norm == 0.0 else _ratio(ours_norm, theirs_norm),
    )


def image_weights(task: Task, window: Sequence[MicroBatch], method: str) -> list[float]:
    """The weight each image's gradient gets under `method`, relative to what the whole batch gives it.

    For image i with statistics s_i, the whole batch moves along g_i = grad(lambda . s_i) and the method along
    h_i = grad(lambda_k . s_i), with the lambda_k of i's micro-batch. The weight is (h_i . g_i) / (g_i . g_i): 1
    where the image counts as it should. An image without gradient (g_i = 0) has weight 1 if h_i = 0 too, else inf.
    """
    parameters = list(named_parameters(task).values())
    _, accumulated = accumulated_gradient(task, window, method)
    with paddle.no_grad():
        totals = sum_statistics([task.statistics(micro_batch) for micro_batch in window])
    true = derivative(task, totals)
    weights = []
    for piece in accumulated.pieces:
        used = piece.weights
        if accumulated.factor is not None:
            used = {name: value * accumulated.factor for name, value in used.items()}
        for single in evenly_split(piece.micro_batch, 1):
            weights.append(_image_weight(task.statistics(single), true, used, parameters))
    return weights


def _image_weight(statistics: Statistics, true: Statistics, used: Statistics, parameters: list[paddle.Tensor]) -> float:
    g = _gradient_of(_weighted(statistics, true), parameters, retain=True)
    h = _gradient_of(_weighted(statistics, used), parameters, retain=False)
    square = float(g @ g)
    if square == 0.0:
        return 1.0 if float(h @ h) == 0.0 else float("inf")
    return float(h @ g) / square


def _weighted(statistics: Statistics, weights: Statistics) -> paddle.Tensor:
    return paddle.add_n([weights[name] * value for name, value in statistics.items() if not value.stop_gradient])


def _gradient_of(value: paddle.Tensor, parameters: list[paddle.Tensor], *, retain: bool) -> np.ndarray:
    gradients = paddle.grad(value, parameters, retain_graph=retain, allow_unused=True)
    flat = [
        (np.zeros(parameter.size) if gradient is None else gradient.numpy().ravel()).astype(np.float64)
        for parameter, gradient in zip(parameters, gradients, strict=True)
    ]
    return np.concatenate(flat)


def _harvest(parameters: dict[str, paddle.Tensor]) -> Gradients:
    gradients = {}
    for name, parameter in parameters.items():
        held = parameter.grad
        gradients[name] = (np.zeros(parameter.shape) if held is None else held.numpy()).astype(np.float64)
        parameter.clear_gradient(False)
    return gradients


def _ratio(value: float, size: float) -> float:
    """`value / size`; against nothing (a window of blank pages can have no gradient) only nothing is near."""
    if size == 0.0:
        return 0.0 if value == 0.0 else float("inf")
    return value / size


def _flat(gradient: Gradients, order: Gradients) -> np.ndarray:
    return np.concatenate([gradient[name].ravel() for name in order])
