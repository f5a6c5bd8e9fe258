"""What this machine and its packages can do, what will go wrong, and the way out; works without Paddle."""

from pipelines.doctor.facts import (
    Facts,
    Gpu,
    Paddle,
    gather_facts,
    num_cores,
    num_open_files,
    open_files_limit,
    usable_memory_bytes,
)
from pipelines.doctor.findings import Finding, findings_of

__all__ = [
    "Facts",
    "Finding",
    "Gpu",
    "Paddle",
    "diagnose",
    "findings_of",
    "gather_facts",
    "num_cores",
    "num_open_files",
    "open_files_limit",
    "usable_memory_bytes",
]


def diagnose() -> list[Finding]:
    """Look at this environment and judge it; asks the network nothing and changes nothing."""
    return findings_of(gather_facts())
