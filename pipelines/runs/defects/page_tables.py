"""Tables, curves and remarks of a defect run's page, from what `evaluation.defects` found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipelines.batching.mix import EpochMix
from pipelines.config import DefectConfig
from pipelines.dataset import load_defect_split
from pipelines.errors import WholebatchError
from pipelines.records import Record
from pipelines.report import Line, Panel, RunResult, Table
from pipelines.report.content import difference, mark_of, number
from pipelines.runs.defects.parts import training_samples
from pipelines.runs.reporter import Quiet

_RATES = {"missed images": "image_miss_rate", "false alarms": "image_false_alarm_rate"}
_HEADLINE = {
    "AP50": "ap_50",
    "mAP": "map",
    "mean F1": "mean_f1",
    **_RATES,
}
_DEFINITIONS = (
    "AP50 is the average precision at IoU .5, mAP its mean over IoU .5 to .95, both over all thresholds and COCO's."
    " The rest is at the confidence threshold with the best F1, averaged over the classes, chosen on val itself."
    " Missed images: the share of images with a defect in which nothing at all is found. False alarms: the share of OK"
    " images in which something is."
)


def remarks(result: RunResult) -> list[str]:
    """What the best model's threshold means for a factory, and where it is worse than the starting weights."""
    best, baseline = result.metrics["best"], result.metrics["baseline"]
    said = [
        f"At confidence {best['threshold']:.3f} the best model finds nothing in"
        f" {_percent(best['image_miss_rate'])} of the images with a defect, and something in"
        f" {_percent(best['image_false_alarm_rate'])} of the OK images."
    ]
    lower = [
        f"{name} ({before['ap_50']:.3f} to {number(best['per_class'][name]['ap_50'])})"
        for name, before in baseline["per_class"].items()
        if (difference(best["per_class"][name]["ap_50"], before["ap_50"]) or 0) < 0
    ]
    return [*said, f"AP50 lower than with the {result.baseline_name}: {'; '.join(lower)}."] if lower else said


def result_table(result: RunResult) -> Table:
    """The headline figures of baseline and best."""
    baseline, best = result.metrics["baseline"], result.metrics["best"]
    rows: list[list[str]] = []
    marks: dict[tuple[int, int], str] = {}
    for name, key in _HEADLINE.items():
        change = difference(best[key], baseline[key])
        marks[len(rows), 3] = mark_of(change, lower_is_better=name in _RATES)
        rows.append([name, number(baseline[key]), number(best[key]), number(change, "+.3f")])
    rows.append(["at confidence", number(baseline["threshold"]), number(best["threshold"]), ""])
    columns = ["", result.baseline_name, result.best_name, f"best − {result.baseline_name}"]
    return Table(rows, columns, note=_DEFINITIONS, marks=marks)


def class_table(result: RunResult) -> Table:
    """Every class: AP of baseline and best, and what the best model finds at its threshold."""
    baseline, best = result.metrics["baseline"], result.metrics["best"]
    rows = [
        [
            name,
            f"{one['num_objects']}",
            number(baseline["per_class"][name]["ap_50"]),
            number(one["ap_50"]),
            number(one["map"]),
            *(number(one[key]) for key in ("precision", "recall", "f1")),
            *(f"{one[key]}" for key in ("tp", "fn", "fp")),
        ]
        for name, one in best["per_class"].items()
    ]
    columns = ["class", "defects", f"AP50, {result.baseline_name}", "AP50, best", "mAP", "precision", "recall", "F1"]
    title = f"Classes, the best model at confidence {best['threshold']:.3f} and IoU .5"
    return Table(rows, [*columns, "found", "missed", "false"], title)


def confusion_table(metrics: Mapping[str, Any]) -> Table:
    """Which defects were taken for which class; the last row and column are background."""
    names, counts = metrics["confusion"]["names"], metrics["confusion"]["counts"]
    rows = [[name, *(f"{count}" for count in row)] for name, row in zip(names, counts, strict=True)]
    rows[-1][0], rows[-1][-1] = "nothing", ""
    marks = {(i, i + 1): "strong" for i in range(len(names) - 1)}
    return Table(
        rows,
        ["labelled as", *names[:-1], "not found"],
        "Confusion: labels (rows) by what they were found as",
        "A label with a box of another class on it is one confusion here; in the classes above it is one missed"
        " and one false. The last row are boxes where nothing is labelled.",
        marks,
    )


def threshold_table(metrics: Mapping[str, Any]) -> Table:
    """The chosen threshold beside the one that a wanted miss rate asks for, and what each costs."""
    wanted = metrics["at_wanted_miss_rate"]
    chosen_by = {"mean_f1": "best mean F1", "given": "given", "default": "default: no box is right"}
    points = [
        (chosen_by[metrics["threshold_by"]], metrics),
        (f"at most {wanted['wanted_miss_rate']:.1%} missed images", wanted),
    ]
    rows = [
        [name, number(point["threshold"]), *(_percent(point[key]) for key in _RATES.values())] for name, point in points
    ]
    note = "" if wanted["is_reached"] else (
        "The wanted miss rate is out of reach at any threshold: in more images with a defect than that nothing at all"
        " is found. Shown are the rates at the lowest threshold."
    )  # fmt: skip
    columns = ["threshold with", "confidence", *_RATES]
    return Table(rows, columns, "What a threshold costs", note)


def panels(result: RunResult) -> list[Panel]:
    """AP and image rates of every evaluation, and the best model's rates over thresholds."""
    evaluations, baseline = result.metrics["evaluations"], result.metrics["baseline"]
    updates = [evaluation["update"] for evaluation in evaluations]

    def over_updates(title: str, names: Mapping[str, str]) -> Panel:
        lines = [Line(name, [each[key] for each in evaluations], baseline[key]) for name, key in names.items()]
        return Panel(title, updates, lines)

    curve = sorted(result.metrics["best"]["image_curve"], key=lambda point: point["threshold"])
    by_threshold = [Line(name, [point[key] for point in curve]) for name, key in _RATES.items()]
    return [
        over_updates("average precision on val", {"AP50": "ap_50", "mAP": "map"}),
        over_updates("images on val, each at its own threshold", _RATES),
        Panel(
            "images on val by threshold, best model",
            [point["threshold"] for point in curve],
            by_threshold,
            "confidence threshold",
        ),
    ]


def facts(result: RunResult) -> list[list[str]]:
    """Network and dataset."""
    model, evaluated = result.config["model"], result.metrics["baseline"]
    amounts = (
        f"{evaluated['num_images']} images, {evaluated['num_ok_images']} of them OK, {evaluated['num_objects']}"
        f" defects, {evaluated['num_ignored_regions']} ignore regions"
    )
    return [
        ["network", f"{model['network']}, from {model['weights']}"],
        ["dataset", f"{result.config['data']['root']}; val: {amounts}"],
    ]


def data_tables(config: DefectConfig, class_names: Sequence[str]) -> list[Table]:
    """What the splits hold and what an epoch takes of them; one that says why, if the dataset is gone."""
    try:
        splits = {split: load_defect_split(config.data.root, split) for split in ("train", "val")}
        mix = training_samples(config, splits["train"], class_names, Quiet()).mix
    except WholebatchError as fault:
        return [Table([["not shown", f"{fault}"]])]
    assert isinstance(mix, EpochMix)  # `training_samples` made it
    rows = [[f"{split} images", *_amounts(records, len(class_names))] for split, records in splits.items()]
    for name, part in (("training samples", mix.composition()), ("an epoch", mix.composition(mix.indices(0)))):
        objects = [part.objects_by_class.get(class_id, 0) for class_id in range(len(class_names))]
        rows.append([name, *map(str, (part.num_samples, part.num_ok, sum(objects), *objects))])
    note = "A training sample is an image, or a tile of one that is larger than a sample; an epoch mixes them."
    return [Table(rows, ["", "number", "OK", "defects", *class_names], note=note)]


def _amounts(records: Sequence[Record], num_classes: int) -> list[str]:
    annotations = [record.annotation for record in records]
    num_ok = sum(annotation.is_ok for annotation in annotations)
    class_ids = [annotation.class_ids[~annotation.is_ignored] for annotation in annotations]
    objects = np.bincount(np.concatenate([np.zeros(0, np.int64), *class_ids]), minlength=num_classes)
    return [f"{value}" for value in (len(records), num_ok, objects.sum(), *objects)]


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.1%}"
