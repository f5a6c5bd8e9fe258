"""How many loader workers this machine can carry: each needs a core, memory and open files."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.batching.image_cache import DEFAULT_BYTES
from pipelines.doctor import num_cores, num_open_files, open_files_limit, usable_memory_bytes
from pipelines.runs.reporter import Reporter

WORKER_BYTES = 320 * 2**20
"""Resident size of a worker beside its share of the image cache: 219 MiB with pages of 600 dpi, and some slack."""
_FILES_A_WORKER = 2
"""The parent's ends of the two pipes."""
_SPARE_FILES = 40
"""For what the run itself opens: six while a worker starts, logs, images, Paddle's own."""


@dataclass(frozen=True)
class Room:
    """What a machine has left; None where that can't be found out.

    Attributes:
        cores: that this process may use.
        memory_bytes: available, within the container's limit.
        files: that this process may still open.
    """

    cores: int
    memory_bytes: int | None
    files: int | None


def worker_count(asked: int, reporter: Reporter) -> int:
    """The workers asked for, or as many as there is room for; tells if that is fewer."""
    if not asked:
        return 0
    count, why = affordable(asked, room_here())
    if count < asked:
        instead = f"{count} instead of {asked} loader workers" if count else "images are loaded in this process"
        reporter.warn(f"batching.workers: {instead}, because {why}; samples and results stay the same")
    return count


def affordable(asked: int, room: Room) -> tuple[int, str]:
    """How many of the workers there is room for, and what is short if not for all."""
    choices = [(asked, ""), (max(1, room.cores), f"this process may use {room.cores} core(s)")]
    if room.memory_bytes is not None:
        needed = DEFAULT_BYTES + asked * WORKER_BYTES
        why = f"{_mib(room.memory_bytes)} of memory are free and they may need {_mib(needed)}"
        choices.append((max(0, room.memory_bytes - DEFAULT_BYTES) // WORKER_BYTES, why))
    if room.files is not None:
        why = f"only {room.files} more files may be open (ulimit -n 4096 raises that)"
        choices.append((max(0, room.files - _SPARE_FILES) // _FILES_A_WORKER, why))
    return min(choices, key=lambda choice: choice[0])


def room_here() -> Room:
    """Of this process, now."""
    limit, in_use = open_files_limit(), num_open_files()
    files = None if limit is None or in_use is None else max(0, limit - in_use)
    return Room(num_cores(), usable_memory_bytes(), files)


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:.0f} MiB"
