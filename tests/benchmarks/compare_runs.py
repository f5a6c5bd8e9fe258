"""Two or more runs side by side: a table of hmean by size bucket, and their curves as one picture.

    python tests/benchmarks/compare_runs.py runs/receipts_exact runs/receipts_mean --out docs/images/receipts_curves.png

Prints Markdown. Reads log.jsonl and metrics.json of each run; computes nothing that a run did not measure.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HMEANS = ("hmean_50", "hmean_70", "hmean_80")
PARTS = ("loss_shrink", "loss_threshold", "loss_binary")
COLOURS = ("tab:blue", "tab:orange", "tab:green")
STYLES = ("-", "--", ":", "-.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    runs = {run.name: _read(run) for run in arguments.runs}
    print("\n".join(_table(runs)))
    _draw(runs, arguments.out)


def _read(run: Path) -> dict[str, Any]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        "metrics": json.loads((run / "metrics.json").read_text(encoding="utf-8")),
        "log": [json.loads(line) for line in lines],
    }


def _table(runs: dict[str, dict[str, Any]]) -> list[str]:
    first = next(iter(runs.values()))["metrics"]
    buckets = list(first["baseline"]["by_bucket"])
    rows = [_row("as shipped", first["shipped"], buckets), _row("setting tuned", first["baseline"], buckets)]
    for name, run in runs.items():
        rows += [_row(f"{name}, update {entry['update']}", entry, buckets) for entry in run["metrics"]["evaluations"]]
        rows.append(
            _row(f"**{name}, best** (update {run['metrics']['best']['update']})", run["metrics"]["best"], buckets)
        )
    costs = [
        f"{name}: {len(run['log'])} updates, median {median(line['seconds'] for line in run['log']):.1f} s each,"
        f" {len({tuple(shape[1:]) for line in run['log'] for shape in line['shapes']})} distinct shapes, peak"
        f" {max(line['peak_bytes'] for line in run['log']) / 2**30:.2f} GiB"
        for name, run in runs.items()
    ]
    head = f"| model | {' | '.join(buckets)} | side | setting (binary, box, unclip; blend) |"
    return [head, "|---" * (len(buckets) + 3) + "|", *rows, "", *costs]


def _row(label: str, entry: dict[str, Any], buckets: list[str]) -> str:
    cells = [" / ".join(f"{entry['by_bucket'][bucket][name]:.3f}" for name in HMEANS) for bucket in buckets]
    setting = entry["setting"]
    knobs = f"{setting['binary_threshold']:g}, {setting['box_threshold']:g}, {setting['unclip_ratio']:g}"
    return f"| {label} | {' | '.join(cells)} | {setting['limit_side']} | {knobs}; {entry['blend']:g} |"


def _draw(runs: dict[str, dict[str, Any]], out: Path) -> None:
    figure, (losses, *panels) = plt.subplots(1, 3, figsize=(13, 3.6), constrained_layout=True)
    buckets = list(next(iter(runs.values()))["metrics"]["baseline"]["by_bucket"])
    for style, (name, run) in zip(STYLES, runs.items(), strict=False):
        updates = [line["update"] for line in run["log"]]
        for part, colour in zip(PARTS, COLOURS, strict=True):
            losses.plot(updates, [line[part] for line in run["log"]], style, color=colour, label=f"{name}: {part}")
        stages = [run["metrics"]["baseline"], *run["metrics"]["evaluations"]]
        for panel, bucket in zip(panels, buckets, strict=False):
            for metric, colour in zip(HMEANS, COLOURS, strict=True):
                values = [stage["by_bucket"][bucket][metric] for stage in stages]
                panel.plot([stage["update"] for stage in stages], values, style, marker="o", color=colour,
                           label=f"{name}: {metric}")  # fmt: skip
            panel.set_title(f"val, longest side {bucket}", fontsize=9)
    for panel in (losses, *panels):
        panel.set_xlabel("updates")
        panel.legend(fontsize=6)
    figure.savefig(out, dpi=100)


if __name__ == "__main__":
    main()
