"""The run's curves as SVG: loss and its parts, learning rate, gradient norm, hmean against the baseline."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipelines.report.content import HMEANS, RunResult

# Okabe and Ito's colours: told apart by the colour-blind too.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_DASHES = ("-", "--", ":", "-.")  # shrink and binary loss run so close that one would hide the other
# Fixed salt and no date: the same run gives the same bytes.
_STYLE: Any = {"svg.hashsalt": "wholebatch", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
_PANEL_INCHES = (5.2, 2.6)


@dataclass(frozen=True)
class Curve:
    """One figure: its name, the SVG, and whether it has several panels side by side."""

    name: str
    svg: bytes
    is_wide: bool = False


@matplotlib.rc_context(_STYLE)
def training_curves(log: Sequence[Mapping[str, Any]]) -> list[Curve]:
    """Loss, its parts, learning rate and gradient norm over updates; none for an empty log.

    Skipped updates are left out: they have no finite loss and no gradient.
    """
    done = [line for line in log if not line["skipped"]]
    if not done:
        return []
    parts = [name for name in done[0] if name.startswith("loss_") and name != "loss_scale"]
    updates = [line["update"] for line in done]

    def plot(names: Sequence[str], title: str) -> Curve:
        figure, (axes,) = _panels(1, title)
        for name, colour, dashes in zip(names, _COLOURS, _DASHES, strict=False):
            values = [float("nan") if line[name] is None else line[name] for line in done]
            label = name.removeprefix("loss_")
            axes.plot(updates, values, color=colour, linestyle=dashes, label=label, marker=_marker(updates))
        axes.set_ylim(bottom=0)
        if len(names) > 1:
            axes.legend(frameon=False, ncols=len(names))
        return Curve(title, _svg(figure))

    return [
        plot(["loss"], "loss"),
        *([plot(parts, "parts of the loss, before their weights")] if parts else []),
        plot(["lr"], "learning rate"),
        plot(["grad_norm"], "gradient norm before clipping"),
    ]


@matplotlib.rc_context(_STYLE)
def hmean_curves(result: RunResult) -> Curve | None:
    """hmean of every evaluation, a panel a size bucket, with the baseline as lines; None before the first one."""
    evaluations = result.metrics["evaluations"]
    if not evaluations:
        return None
    buckets = list(result.metrics["baseline"]["by_bucket"])
    figure, panels = _panels(len(buckets), *(f"hmean on val, {bucket}" for bucket in buckets))
    updates = [evaluation["update"] for evaluation in evaluations]
    for axes, bucket in zip(panels, buckets, strict=True):
        for name, colour in zip(HMEANS, _COLOURS, strict=False):
            values = [_value(evaluation, bucket, name) for evaluation in evaluations]
            axes.plot(updates, values, color=colour, marker="o", label=f"IoU .{name[6:].rstrip('0')}")
            axes.axhline(_value(result.metrics["baseline"], bucket, name), color=colour, linestyle="--", linewidth=1)
            if result.was_tuned:
                shipped = _value(result.metrics["shipped"], bucket, name)
                axes.axhline(shipped, color=colour, linestyle=":", linewidth=1)
        axes.set_xlim(left=0)
        axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return Curve("hmean on val", _svg(figure), is_wide=len(buckets) > 1)


def _panels(count: int, *titles: str) -> tuple[Figure, list[Axes]]:
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(width * count, height), layout="constrained")
    panels = [figure.add_subplot(1, count, position + 1) for position in range(count)]
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set_xlabel("update")
        axes.grid(alpha=0.25)
    return figure, panels


def _value(metrics: Mapping[str, Any], bucket: str, name: str) -> float:
    """The cell's hmean; nan, which is not drawn, where it is undefined."""
    value = metrics["by_bucket"][bucket][name]
    return float("nan") if value is None else float(value)


def _marker(updates: Sequence[int]) -> str:
    return "o" if len(updates) == 1 else ""  # a line through one point is nothing


def _svg(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
