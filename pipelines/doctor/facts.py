"""Facts about the machine and the installed packages, gathered with the standard library.

Whatever can't be found out is None or empty; judging it is the business of `findings`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PROBE_SECONDS = 120
_SMI_SECONDS = 20
_UNLIMITED_BYTES = 2**60  # cgroup v1 writes "no limit" as a number of this order

# Asked in a process of its own: a build that does not fit the machine can kill the interpreter that imports it.
_PROBE = """
import json, paddle
facts = {"version": paddle.version.full_version, "is_cuda_build": paddle.is_compiled_with_cuda()}
facts["cuda"] = str(paddle.version.cuda() or "")
facts["num_devices"] = paddle.device.cuda.device_count() if facts["is_cuda_build"] else 0
facts["cudnn"] = (paddle.device.get_cudnn_version() or 0) if facts["num_devices"] else 0
print("FACTS" + json.dumps(facts))
"""


@dataclass(frozen=True)
class Gpu:
    """One card as the driver describes it.

    Attributes:
        capability: compute capability, (7, 5) on a T4; None if the driver is too old to tell.
    """

    name: str
    total_bytes: int
    free_bytes: int
    capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class Paddle:
    """What `import paddle` gave.

    Attributes:
        cuda: CUDA version of the build, "12.6"; "" for a CPU build.
        cudnn: as cuDNN numbers itself, 8103 for 8.1.3 and 90501 for 9.5.1; 0 when there is none.
        num_devices: cards that the build can use.
        error: last line of what the import said before it failed, or "".
    """

    version: str = ""
    is_cuda_build: bool = False
    cuda: str = ""
    cudnn: int = 0
    num_devices: int = 0
    error: str = ""


@dataclass(frozen=True)
class Facts:
    """Everything the findings are made from.

    Attributes:
        packages: version by distribution name, lower case with hyphens.
        paddle: None when no distribution of Paddle is installed.
        driver: version of the NVIDIA driver, or "".
        memory_bytes: physical memory; `memory_limit_bytes` is the container's, None without one.
        shm_bytes: size of /dev/shm; None where there is none.
        max_open_files: soft limit of this process; None where there is none.
        num_cores: cores this process may use.
        settings: environment variables that Paddle and CUDA read.
    """

    python: tuple[int, int, int]
    system: str = "Linux"
    machine: str = "x86_64"
    packages: Mapping[str, str] = field(default_factory=dict)
    paddle: Paddle | None = None
    driver: str = ""
    gpus: tuple[Gpu, ...] = ()
    num_gpu_processes: int = 0
    memory_bytes: int | None = None
    memory_available_bytes: int | None = None
    memory_limit_bytes: int | None = None
    shm_bytes: int | None = None
    max_open_files: int | None = None
    num_cores: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)


def gather_facts() -> Facts:
    """Look at this machine and this interpreter's packages."""
    packages = _installed_packages()
    driver, gpus = _gpus()
    total, available = _memory()
    return Facts(
        python=(sys.version_info.major, sys.version_info.minor, sys.version_info.micro),
        system=platform.system(),
        machine=platform.machine(),
        packages=packages,
        paddle=_probe_paddle() if any(name.startswith("paddlepaddle") for name in packages) else None,
        driver=driver,
        gpus=gpus,
        num_gpu_processes=len(_ask_driver("--query-compute-apps=pid")) if gpus else 0,
        memory_bytes=total,
        memory_available_bytes=available,
        memory_limit_bytes=memory_limit(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")),
        shm_bytes=shutil.disk_usage("/dev/shm").total if Path("/dev/shm").is_dir() else None,
        max_open_files=_max_open_files(),
        num_cores=_num_cores(),
        settings={name: value for name, value in sorted(os.environ.items()) if _is_setting(name)},
    )


def parse_gpus(rows: Sequence[str]) -> tuple[str, tuple[Gpu, ...]]:
    """The driver's version and its cards, from rows of `driver, name, total MiB, free MiB[, capability]`."""
    cards, driver = [], ""
    for row in rows:
        driver, name, total, free, *rest = (cell.strip() for cell in row.split(","))
        major, _, minor = (rest[0] if rest else "").partition(".")
        capability = (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None
        mebibytes = [int(cell) if cell.isdigit() else 0 for cell in (total, free)]
        cards.append(Gpu(name, mebibytes[0] << 20, mebibytes[1] << 20, capability))
    return driver, tuple(cards)


def memory_limit(cgroups: Path, membership: Path) -> int | None:
    """The container's memory limit in bytes, cgroup v1 or v2; None without one.

    A container sees its own group either at the root of `cgroups` or under the path that `membership` names.
    """
    own = [line.split(":", 2)[2].lstrip("/") for line in _read(membership).splitlines() if line.count(":") >= 2]
    files = [cgroups / folder / "memory.max" for folder in ("", *own)]
    files += [cgroups / "memory" / folder / "memory.limit_in_bytes" for folder in ("", *own)]
    limits = [int(text) for text in (_read(file).strip() for file in files) if text.isdigit()]
    return min((limit for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def _installed_packages() -> dict[str, str]:
    found = ((each.metadata["Name"], each.version) for each in importlib.metadata.distributions())
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found if name}


def _probe_paddle() -> Paddle:
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Paddle(error=f"importing it took more than {_PROBE_SECONDS} s")
    for line in done.stdout.splitlines():
        if line.startswith("FACTS"):
            return Paddle(**json.loads(line.removeprefix("FACTS")))
    said = done.stderr.strip().splitlines()
    return Paddle(error=said[-1] if said else f"importing it ended the process with status {done.returncode}")


def _gpus() -> tuple[str, tuple[Gpu, ...]]:
    fields = "driver_version,name,memory.total,memory.free"
    rows = _ask_driver(f"--query-gpu={fields},compute_cap")
    return parse_gpus(rows or _ask_driver(f"--query-gpu={fields}"))  # drivers before 470 don't know compute_cap


def _ask_driver(query: str) -> list[str]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def _memory() -> tuple[int | None, int | None]:
    try:
        import psutil
    except ImportError:
        return None, None
    memory = psutil.virtual_memory()
    return int(memory.total), int(memory.available)


def _max_open_files() -> int | None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _num_cores() -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _read(Path("/sys/fs/cgroup/cpu.max")).strip().partition(" ")
    return max(1, min(allowed, int(quota) // int(period))) if quota.isdigit() and period.isdigit() else allowed


def _is_setting(name: str) -> bool:
    return name.startswith("FLAGS_") or name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "LD_LIBRARY_PATH")


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
