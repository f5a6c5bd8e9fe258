"""`verify`: on the user's own model and data, how close each method's gradient is to the whole batch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle

from pipelines.config import Config
from pipelines.engine.batch_norm import train_with_frozen_statistics
from pipelines.engine.equivalence import accumulated_gradient, compare, image_weights, whole_batch_gradient
from pipelines.errors import DataError
from pipelines.runs.reporter import Reporter
from pipelines.runs.wiring import wiring_of

BOUNDS = {"float32": 1e-4, "float64": 1e-9}
METHODS = ("exact", "mean")
_LAYERS_SHOWN = 5


def verify(config: Config, reporter: Reporter, *, float64: bool = False) -> dict[str, Any]:
    """Compare on the first training window.

    Args:
        config: names the model and the data.
        reporter: gets the table.
        float64: compute in double precision, where rounding can't hide a wrong formula.

    Returns:
        {"exact": {"max_relative_error", …}, "mean": {…}, "image_weight": {"exact": {min, max}, "mean": {min, max}},
        "group_weight": {name: {"exact": …, "mean": …}}}: how much what the task tells apart counts, 1 being right.

    Raises:
        DataError: the exact gradient is farther from the whole batch's than rounding explains.
    """
    dtype = "float64" if float64 else "float32"
    wiring = wiring_of(config, reporter)
    setting = wiring.configured_setting()
    task = wiring.build_task(setting)
    with wiring.window_loader(wiring.samples(wiring.records("train")), setting) as loader:
        window = next(iter(loader)).micro_batches
    task.network.to(dtype=dtype)
    train_with_frozen_statistics(task.network)
    reporter.note(
        f"one window of {sum(len(mb) for mb in window)} samples in {len(window)} micro-batches of"
        f" {len({mb.shape_hw for mb in window})} shapes, {dtype}, {paddle.device.get_device()}"
    )
    reference = whole_batch_gradient(task, window)
    groups = wiring.image_groups(window)
    result: dict[str, Any] = {"dtype": dtype, "samples": sum(len(mb) for mb in window)}
    result |= {"image_weight": {}, "group_weight": {}}
    per_layer: dict[str, dict[str, float]] = {}
    for method in METHODS:
        gradient, _ = accumulated_gradient(task, window, method)
        difference = compare(gradient, reference)
        per_layer[method] = difference.per_tensor
        result[method] = {
            "max_relative_error": difference.max_relative_error,
            "relative_error": difference.relative_error,
            "cosine": difference.cosine,
            "norm_ratio": difference.norm_ratio,
        }
        # infinite where the whole batch gives an image no gradient at all, but the method does
        weights = np.array(image_weights(task, window, method))
        finite = weights[np.isfinite(weights)]
        result["image_weight"][method] = {"min": float(finite.min()), "max": float(finite.max())}
        for name, amounts in groups.items():
            result["group_weight"].setdefault(name, {})[method] = _weight_of(weights, amounts)
    _tell(result, per_layer, reporter)
    if result["exact"]["max_relative_error"] > BOUNDS[dtype]:
        raise DataError(
            f"the accumulated gradient is {result['exact']['max_relative_error']:.1e} from the whole batch's, more than"
            f" {BOUNDS[dtype]:g}, the bound for {dtype}; this is a fault of the program or of the device's arithmetic:"
            " please report it with this table"
        )
    return result


def _weight_of(weights: np.ndarray, amounts: np.ndarray) -> float:
    """Mean weight of what images hold by `amounts`; images that the whole batch gives no gradient are left out."""
    counted = np.isfinite(weights) & (amounts > 0)
    return (
        float(np.average(weights[counted], weights=amounts[counted].astype(float))) if counted.any() else float("nan")
    )


def _tell(result: dict[str, Any], per_layer: dict[str, dict[str, float]], reporter: Reporter) -> None:
    rows = []
    for method in METHODS:
        numbers, weight = result[method], result["image_weight"][method]
        rows.append(
            [
                method,
                f"{numbers['max_relative_error']:.1e}",
                f"{numbers['relative_error']:.1e}",
                f"{numbers['cosine']:.6f}",
                f"{numbers['norm_ratio']:.4f}",
                f"{weight['min']:.3f} to {weight['max']:.3f}",
            ]
        )
    columns = ("accumulation", "worst tensor", "all tensors", "cosine", "norm ratio", "weight of an image")
    reporter.table("Gradient of the window against the whole batch's", columns, rows)
    if result["group_weight"]:
        reporter.table(
            "Weight of what images show, 1 where it counts as in the whole batch",
            ("what", *METHODS),
            [[name, *(f"{by_method[m]:.3f}" for m in METHODS)] for name, by_method in result["group_weight"].items()],
        )
    worst = sorted(per_layer["mean"], key=lambda name: per_layer["mean"][name], reverse=True)[:_LAYERS_SHOWN]
    reporter.table(
        "Relative error by tensor, where mean is farthest off",
        ("tensor", *METHODS),
        [[name, *(f"{per_layer[method][name]:.1e}" for method in METHODS)] for name in worst],
    )
