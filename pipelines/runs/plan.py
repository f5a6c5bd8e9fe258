"""`plan`: what training and evaluation take by shape, and the micro-batches that fit, before anything is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.batching.shapes import ShapeHW
from pipelines.config import Config
from pipelines.engine.batch_norm import evaluation_mode
from pipelines.engine.memory import held_bytes, on_gpu, peak_bytes, reset_peak
from pipelines.engine.memory_plan import EvaluationPlan, Measurement, MemoryModel, MemoryPlan
from pipelines.runs.assemble import build_updater
from pipelines.runs.memory import Budget, budget_of, plan_training, sized
from pipelines.runs.reporter import Reporter
from pipelines.runs.wiring import Wiring, wiring_of
from pipelines.task import Task

_EVALUATED_HW = ((320, 320), (640, 640))
_SHOWN_SHAPES = 8


def plan(config: Config, reporter: Reporter) -> dict[str, Any]:
    """Measure, fit, and tell what every shape of the dataset takes.

    Returns:
        {"budget_bytes", "resting_bytes", "training": [{"shape", "share", "micro_batch", "recompute", "peak_bytes"}],
        "evaluation": [{"shape", "images", "peak_bytes", "fits"}], "largest_side": {"training", "evaluation"}}.

    Raises:
        OutOfMemoryError: not even a small image fits.
    """
    wiring = wiring_of(config, reporter)
    train_records, val_records = wiring.records("train"), wiring.records("val")
    setting, samples = wiring.configured_setting(), wiring.samples(train_records)
    task = wiring.build_task(setting)
    updater, _ = build_updater(config, task, wiring.parameter_groups(task), samples.num_an_epoch, reporter)
    budget = budget_of(config)
    with wiring.window_loader(samples, setting) as loader:
        training = plan_training(config, task, updater, loader, budget)
        shares = loader.shape_shares()
    evaluation = plan_evaluation(wiring, task, training.resting_bytes)
    result = {
        "budget_bytes": budget.tensor_bytes,
        "resting_bytes": training.resting_bytes,
        "training": _training_rows(training, shares),
        "evaluation": _evaluation_rows(evaluation, budget, wiring.evaluation_shapes(val_records)),
        "largest_side": {
            "training": training.largest_side(),
            "evaluation": evaluation.largest_side(budget.tensor_bytes),
        },
    }
    _tell(result, budget, reporter)
    return result


def plan_evaluation(wiring: Wiring, task: Task, resting_bytes: int) -> EvaluationPlan:
    """Measure the forward of evaluation at two sizes; the weights rest as in training."""
    found = []
    with evaluation_mode(task.network):
        for size_hw in _EVALUATED_HW:
            held = held_bytes()
            reset_peak()
            wiring.look(task, size_hw)
            found.append(Measurement(1, size_hw, peak_bytes() - held))
    return EvaluationPlan(resting_bytes, MemoryModel.fitted(found))


def _training_rows(training: MemoryPlan, shares: Mapping[ShapeHW, float]) -> list[dict[str, Any]]:
    rows = []
    for shape in sorted(shares, key=_pixels):
        fit = training.fit(shape)
        rows.append(
            {
                "shape": list(shape),
                "share": round(shares[shape], 4),
                "micro_batch": fit.number,
                "recompute": fit.is_recomputed,
                "peak_bytes": fit.peak_bytes,
            }
        )
    return rows


def _evaluation_rows(evaluation: EvaluationPlan, budget: Budget, shapes: Mapping[ShapeHW, int]) -> list[dict[str, Any]]:
    largest = evaluation.largest_side(budget.tensor_bytes)
    rows = []
    for shape in sorted(shapes, key=_pixels):
        peak, fits = evaluation.peak_bytes(shape), _pixels(shape) <= largest**2
        rows.append({"shape": list(shape), "images": shapes[shape], "peak_bytes": peak, "fits": fits})
    return rows


def _pixels(shape: ShapeHW) -> int:
    return shape[0] * shape[1]


def _tell(result: Mapping[str, Any], budget: Budget, reporter: Reporter) -> None:
    reporter.note(
        f"{sized(budget.tensor_bytes)} for tensors ({budget.origin}), {sized(result['resting_bytes'])} of them at"
        " rest: weights, moments, averages and summed gradients"
    )
    reporter.table(
        "Training, by shape of a sample",
        ("height x width", "share", "micro-batch", "peak"),
        [
            [_shown(row), f"{row['share']:.1%}", _micro_batch(row), sized(row["peak_bytes"])]
            for row in _spread(result["training"])
        ],
    )
    reporter.table(
        "Evaluation, by what the network sees at once",
        ("height x width", "images", "peak", "fits"),
        [
            [_shown(row), row["images"], sized(row["peak_bytes"]), "yes" if row["fits"] else "no"]
            for row in _spread(result["evaluation"])
        ],
    )
    side = result["largest_side"]
    reporter.note(f"largest square that fits: {side['training']} px in training, {side['evaluation']} px in evaluation")
    measured = (
        "fitted to peaks measured on this device; context and workspace are an estimate"
        if on_gpu()
        else ("fitted to peaks that the CPU allocator reports; a GPU adds context and workspace")
    )
    reporter.note(f"peaks are {measured}")


def _shown(row: Mapping[str, Any]) -> str:
    return f"{row['shape'][0]} x {row['shape'][1]}"


def _micro_batch(row: Mapping[str, Any]) -> str:
    if not row["micro_batch"]:
        return "none fits"
    return f"{row['micro_batch']}{', recomputed' if row['recompute'] else ''}"


def _spread(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most so many as a table shows, the smallest and the largest among them."""
    if len(rows) <= _SHOWN_SHAPES:
        return rows
    step = (len(rows) - 1) / (_SHOWN_SHAPES - 1)
    return [rows[round(k * step)] for k in range(_SHOWN_SHAPES)]
