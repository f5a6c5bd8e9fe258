"""The tables of a defect evaluation: one row of headline numbers, then classes and images at the chosen threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.runs.reporter import Reporter
from pipelines.runs.wiring import Row

COLUMNS = ("model", "images", "OK images", "AP50", "mAP", "threshold", "missed images", "false alarms")


def metrics_row(label: str, metrics: Mapping[str, Any]) -> Row:
    """The headline of one evaluation; missed images and false alarms at the threshold with the best mean F1."""
    return [
        label,
        metrics["num_images"],
        metrics["num_ok_images"],
        number(metrics["ap_50"]),
        number(metrics["map"]),
        number(metrics["threshold"]),
        number(metrics["image_miss_rate"]),
        number(metrics["image_false_alarm_rate"]),
    ]


def tell_details(metrics: Mapping[str, Any], reporter: Reporter) -> None:
    """Per class at the chosen threshold, and what the wanted miss rate costs."""
    rows = [
        [name, one["num_objects"], *(number(one[key]) for key in ("ap_50", "precision", "recall", "f1"))]
        for name, one in metrics["per_class"].items()
    ]
    title = f"Per class at confidence {number(metrics['threshold'])}, IoU .5"
    reporter.table(title, ("class", "defects", "AP50", "precision", "recall", "F1"), rows)
    at = metrics["at_wanted_miss_rate"]
    if not at["is_reached"]:
        reporter.note(f"no threshold misses at most {at['wanted_miss_rate']:.1%} of the defective images")
        return
    reporter.note(
        f"at most {at['wanted_miss_rate']:.1%} of the defective images missed needs confidence"
        f" {number(at['threshold'])}: {number(at['image_miss_rate'])} missed,"
        f" {number(at['image_false_alarm_rate'])} of the OK images stopped"
    )


def number(value: float | None) -> str:
    """Three digits, or a dash where nothing is defined."""
    return "-" if value is None else f"{value:.3f}"
