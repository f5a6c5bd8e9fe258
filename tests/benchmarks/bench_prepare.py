"""Time and memory of `prepare` on threads and on processes, each variant in a process of its own.

python tests/benchmarks/bench_prepare.py receipts --repeats 3
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout that is not installed

from pipelines.prep import prepare_text

KINDS = ("threads", "processes")


def executor_of(kind: str, workers: int) -> AbstractContextManager[Executor | None]:
    """None stands for the threads of `prepare` itself."""
    if kind == "threads":
        return nullcontext()
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def measured(source: Path, kind: str, workers: int) -> dict[str, float]:
    """Seconds and MiB of one `prepare`; CPU seconds are what other programs on the cores change least."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        with executor_of(kind, workers) as executor:
            prepare_text(source, "auto", Path(folder) / "out", workers=workers, executor=executor)
        seconds = time.perf_counter() - started
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "seconds": seconds,
        "cpu_seconds": sum(usage.ru_utime + usage.ru_stime for usage in (own, children)),
        "mib": own.ru_maxrss / 1024,
        "mib_of_a_worker": children.ru_maxrss / 1024,
    }


def main() -> None:
    """Print a line for every variant: the least of some repeats, taken in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a text source whose format is recognised")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", choices=KINDS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.source, arguments.one, arguments.workers[0])))
        return
    variants = [(kind, workers) for workers in arguments.workers for kind in KINDS]
    found: dict[tuple[str, int], list[dict[str, float]]] = {variant: [] for variant in variants}
    for kind, workers in variants * arguments.repeats:
        command = [sys.executable, __file__, str(arguments.source), "--one", kind, "--workers", str(workers)]
        found[kind, workers].append(json.loads(subprocess.check_output(command)))
    for (kind, workers), runs in found.items():
        least = {name: min(run[name] for run in runs) for name in runs[0]}
        memory = f"{least['mib']:.0f} MiB"
        if kind == "processes":
            memory += f" and {least['mib_of_a_worker']:.0f} MiB a worker"
        print(f"{workers} {kind}: {least['seconds']:.1f} s, {least['cpu_seconds']:.1f} s of CPU, peak {memory}")


if __name__ == "__main__":
    main()
