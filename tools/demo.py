"""From nothing to a fine-tuned model that runs in Paddle's own programs, each command shown before it runs.

`make demo` is `python tools/demo.py text`, `make demo-defect` is `python tools/demo.py defect`. Further arguments go to
the training as they are: `python tools/demo.py text -o train.updates=20`. Exit code 1 if training did not beat what it
started from, else that of the command that failed.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CONFIGS = Path(os.path.relpath(REPOSITORY / "configs"))
# ru_maxrss counts bytes on macOS, units of 1024 bytes elsewhere
RSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Demo:
    """One task's demonstration.

    Attributes:
        config: smoke configuration.
        run: run folder.
        images: folder whose first val images are predicted.
        numbers: head and key of the metrics that are shown.
        stages: label and key of the models that are compared, the last one trained.
        runtime: whose boxes must be the same.
    """

    config: Path
    run: Path
    images: Path
    numbers: tuple[tuple[str, str], ...]
    stages: tuple[tuple[str, str], ...]
    runtime: str

    @property
    def model(self) -> Path:
        return self.run / "model"

    @property
    def predictions(self) -> Path:
        return self.run / "predictions"


DEMOS = {
    "text": Demo(
        config=CONFIGS / "text_detection" / "smoke.yml",
        run=Path("runs/demo"),
        images=Path("datasets/smoke/images"),
        numbers=tuple((f"hmean .{iou}", f"hmean_{iou}0") for iou in (5, 7, 8)),
        stages=(("weights as shipped", "shipped"), ("same, setting tuned", "baseline"), ("trained", "best")),
        runtime="paddleocr",
    ),
    "defect": Demo(
        config=CONFIGS / "defect_detection" / "smoke.yml",
        run=Path("runs/demo_defect"),
        images=Path("datasets/smoke_defect/images"),
        numbers=(
            ("AP50", "ap_50"),
            ("mAP", "map"),
            ("missed", "image_miss_rate"),
            ("alarms", "image_false_alarm_rate"),
        ),
        stages=(("starting weights", "baseline"), ("trained", "best")),
        runtime="paddlex",
    ),
}


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in DEMOS:
        print(f"demo: expected {' or '.join(DEMOS)} first, but got {arguments[:1]}", file=sys.stderr)
        return 2
    demo, overrides = DEMOS[arguments[0]], arguments[1:]
    started = time.perf_counter()
    set_aside(demo.run)
    images = [demo.images / f"val_{number:04d}.jpg" for number in range(3)]
    commands: list[list[str | Path]] = [
        ["train", "-c", demo.config, "-o", f"run.name={demo.run.name}", *overrides],
        ["evaluate", "-c", demo.config, "--model", demo.run, *overrides],
        ["export", demo.run, "--to", demo.model],
        ["predict", demo.model, *images, "--out", demo.predictions],
        ["report", demo.run],
    ]
    for command in commands:
        exit_code = run(command)
        if exit_code:
            print(f"\ndemo: `wholebatch {command[0]}` ended with exit code {exit_code}; its message is above")
            return exit_code
    is_better = summarize(demo)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * RSS_UNIT_BYTES
    print(f"{time.perf_counter() - started:.0f} seconds, at most {memory / 2**30:.1f} GiB of memory")
    return 0 if is_better else 1


def set_aside(run: Path) -> None:
    """Move an earlier run out of the way: somebody may want it."""
    if not run.exists():
        return
    number = 1
    while (aside := run.with_name(f"{run.name}.{number}")).exists():
        number += 1
    run.rename(aside)
    print(f"the earlier {run} is now {aside}")


def run(command: list[str | Path]) -> int:
    """Show a command, run it, return its exit code."""
    name, *arguments = map(str, command)
    print(f"\n$ wholebatch {shlex.join([name, *arguments])}", flush=True)
    # tools/NAME.py is the same command, and works before the package is installed
    search_path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = REPOSITORY / "tools" / f"{name}.py"
    return subprocess.call([sys.executable, script, *arguments], env={**os.environ, "PYTHONPATH": search_path})


def summarize(demo: Demo) -> bool:
    """Show what training gave and where everything lies; returns whether it beat what it started from."""
    metrics = json.loads((demo.run / "metrics.json").read_text(encoding="utf-8"))
    parity = json.loads((demo.model / "parity.json").read_text(encoding="utf-8"))
    print(f"\n{'on val':32}" + "".join(f"{head:>10}" for head, _ in demo.numbers))
    for label, stage in demo.stages:
        print(f"{label:32}" + "".join(f"{metrics[stage][key] or 0.0:10.3f}" for _, key in demo.numbers))
    print(f"\n{parity['num_equal']} of {parity['num_theirs']} boxes are the same in {demo.runtime}")
    print(f"model: {demo.model}\npredictions: {demo.predictions}\nreport: {demo.run / 'report.html'}")
    is_better = metrics["best"]["update"] > 0
    if not is_better:
        print("training did not beat what it started from, so the model holds the untouched weights")
    return is_better


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
