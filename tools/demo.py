"""From nothing to a fine-tuned model that runs in paddleocr, each command shown before it runs: `make demo`.

Arguments go to the training as they are: `python tools/demo.py -o train.updates=20`. Exit code 1 if training did not
beat the tuned baseline, else that of the command that failed.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CONFIG = Path(os.path.relpath(REPOSITORY / "configs" / "text_detection" / "smoke.yml"))
RUN = Path("runs/demo")
MODEL = RUN / "model"
PREDICTIONS = RUN / "predictions"
IMAGES = [Path(f"datasets/smoke/images/val_{number:04d}.jpg") for number in range(3)]
HMEANS = ("hmean_50", "hmean_70", "hmean_80")
# ru_maxrss counts bytes on macOS, units of 1024 bytes elsewhere
RSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


def main(overrides: list[str]) -> int:
    started = time.perf_counter()
    set_aside(RUN)
    commands: list[list[str | Path]] = [
        ["train", "-c", CONFIG, "-o", "run.name=demo", *overrides],
        ["evaluate", "-c", CONFIG, "--model", RUN, *overrides],
        ["export", RUN, "--to", MODEL],
        ["predict", MODEL, *IMAGES, "--out", PREDICTIONS],
        ["report", RUN],
    ]
    for command in commands:
        exit_code = run(command)
        if exit_code:
            print(f"\ndemo: `wholebatch {command[0]}` ended with exit code {exit_code}; its message is above")
            return exit_code
    is_better = summarize()
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


def summarize() -> bool:
    """Show what training gave and where everything lies; returns whether it beat the tuned baseline."""
    metrics = json.loads((RUN / "metrics.json").read_text(encoding="utf-8"))
    parity = json.loads((MODEL / "parity.json").read_text(encoding="utf-8"))
    print(f"\n{'on val':32}" + "".join(f"{'hmean .' + name[-2]:>10}" for name in HMEANS))
    for label, key in (("weights as shipped", "shipped"), ("same, setting tuned", "baseline"), ("trained", "best")):
        print(f"{label:32}" + "".join(f"{metrics[key][name]:10.3f}" for name in HMEANS))
    print(f"\n{parity['num_equal']} of {parity['num_theirs']} boxes are the same in paddleocr")
    print(f"model: {MODEL}\npredictions: {PREDICTIONS}\nreport: {RUN / 'report.html'}")
    is_better = metrics["best"]["update"] > 0
    if not is_better:
        print("training did not beat the tuned baseline, so the model holds the untouched weights")
    return is_better


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
