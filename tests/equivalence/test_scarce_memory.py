"""Fifty allocations that really fail, in twenty updates and their evaluations, change nothing but the time.

Run: python -m pytest tests/equivalence/test_scarce_memory.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("scarce_memory.py")
NUM_FAILURES = 50
DEADLINE_SECONDS = 200

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and glibc's way to take memory")


def outcome(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {"MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1", "GLOG_minloglevel": "3"}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def facts_of(exact_by: str, dtype: str) -> dict[str, Any]:
    done = outcome(exact_by, dtype, NUM_FAILURES)
    assert done.returncode == 0, done.stderr[-2000:]
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


@pytest.mark.parametrize(
    ("exact_by", "dtype"), [("labels", "float64"), ("rescale", "float64"), ("replay", "float64"), ("replay", "float32")]
)
def test_every_window_has_its_32_samples_and_the_weights_are_those_of_an_undisturbed_run(
    exact_by: str, dtype: str
) -> None:
    """In float32 the bound is what cutting the same windows into single images moves the weights, times three."""
    facts = facts_of(exact_by, dtype)
    print(f"{exact_by} {dtype}: error {facts['error']:.1e}, spread of sums in another order {facts['spread']:.1e}")
    assert facts["failures"] + facts["places"]["evaluation"] == NUM_FAILURES, facts
    assert min(facts["places"].values()) >= 3, facts
    assert facts["samples"] == [32] and facts["smallest"] == 1, facts
    assert facts["evaluated"] <= (1e-9 if dtype == "float64" else 1e-3), facts
    assert facts["error"] <= (1e-7 if dtype == "float64" else 3 * facts["spread"]), facts
    assert facts["held"] == pytest.approx(1.0, abs=0.02), facts


def test_control_without_recovery_the_first_failure_ends_the_run() -> None:
    done = outcome("labels", "float64", NUM_FAILURES, "helpless")
    assert done.returncode == 1 and "MemoryError: (ResourceExhausted)" in done.stderr
