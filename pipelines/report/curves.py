"""The run's curves as SVG: loss and its parts, learning rate, gradient norm, and the metrics that a task names."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart by the colour-blind too.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
_DASHES = ("-", "--", ":", "-.")  # shrink and binary loss run so close that one would hide the other
# Fixed salt and no date: the same run gives the same bytes.
_STYLE: Any = {"svg.hashsalt": "wholebatch", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
_PANEL_INCHES = (5.2, 2.6)


@dataclass(frozen=True)
class Line:
    """One metric.

    Attributes:
        label: in the legend.
        values: one a point of the panel; undefined ones are not drawn.
        baseline: what training has to beat, a dashed line across; or None.
        shipped: the untuned baseline, a dotted one; or None.
    """

    label: str
    values: Sequence[float | None]
    baseline: float | None = None
    shipped: float | None = None


@dataclass(frozen=True)
class Panel:
    """Metrics that share their axes.

    Attributes:
        title: above it.
        points: where on the horizontal axis the values lie.
        lines: at most four.
        across: what the horizontal axis is.
    """

    title: str
    points: Sequence[float]
    lines: Sequence[Line]
    across: str = "update"


@dataclass(frozen=True)
class Curve:
    """One figure: its name and the SVG."""

    name: str
    svg: bytes


@matplotlib.rc_context(_STYLE)
def training_curves(log: Sequence[Mapping[str, Any]]) -> list[Curve]:
    """Loss, its parts, learning rate and gradient norm over updates; none for an empty log."""
    if not log:
        return []
    parts = [name for name in log[0] if name.startswith("loss_") and name != "loss_scale"]
    updates = [line["update"] for line in log]

    def plot(names: Sequence[str], title: str) -> Curve:
        figure, axes = _figure(title, "update")
        for name, colour, dashes in zip(names, _COLOURS, _DASHES, strict=False):
            values = _drawn(line[name] for line in log)
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
def metric_curves(panels: Sequence[Panel]) -> list[Curve]:
    """A figure for each panel that has points."""
    return [_metric_curve(panel) for panel in panels if panel.points]


def _metric_curve(panel: Panel) -> Curve:
    figure, axes = _figure(panel.title, panel.across)
    for line, colour in zip(panel.lines, _COLOURS, strict=False):
        axes.plot(panel.points, _drawn(line.values), color=colour, marker="o", markersize=4, label=line.label)
        for level, dashes in ((line.baseline, "--"), (line.shipped, ":")):
            if level is not None:
                axes.axhline(level, color=colour, linestyle=dashes, linewidth=1)
    axes.set_xlim(left=0)
    axes.legend(frameon=False, ncols=len(panel.lines), loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return Curve(panel.title, _svg(figure))


def _figure(title: str, across: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=_PANEL_INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(across)
    axes.grid(alpha=0.25)
    return figure, axes


def _drawn(values: Iterable[float | None]) -> list[float]:
    """Undefined values as nan, which is not drawn."""
    return [float("nan") if value is None else float(value) for value in values]


def _marker(updates: Sequence[int]) -> str:
    return "o" if len(updates) == 1 else ""  # a line through one point is nothing


def _svg(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
