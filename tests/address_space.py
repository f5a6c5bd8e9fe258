"""How much more a process may map: with it the allocator itself fails, not a stand-in."""

from __future__ import annotations

import resource
from pathlib import Path


def leave_room(num_bytes: int) -> None:
    """From now on no more than this can be mapped on top of what is."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + num_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def leave_all_room() -> None:
    """Lift the limit."""
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
