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
_CGROUPS = (Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
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
        memory_limit_bytes=memory_limit(*_CGROUPS),
        shm_bytes=shutil.disk_usage("/dev/shm").total if Path("/dev/shm").is_dir() else None,
        max_open_files=open_files_limit(),
        num_cores=num_cores(),
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
    """The container's memory limit in bytes, cgroup v1 or v2; None without one."""
    names = ("memory.max", "memory.limit_in_bytes")
    texts = (_read(folder / name).strip() for folder in _groups(cgroups, membership) for name in names)
    limits = [int(text) for text in texts if text.isdigit()]
    return min((limit for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def memory_in_use(cgroups: Path, membership: Path) -> int:
    """Bytes that the container holds, without the page cache that the kernel gives back first; 0 if unknown."""
    for folder in _groups(cgroups, membership):
        used = (_read(folder / "memory.current") or _read(folder / "memory.usage_in_bytes")).strip()
        cached = re.search(r"^(?:total_)?inactive_file (\d+)$", _read(folder / "memory.stat"), re.MULTILINE)
        if used.isdigit():
            return max(0, int(used) - (int(cached.group(1)) if cached else 0))
    return 0


def _groups(cgroups: Path, membership: Path) -> list[Path]:
    """Folders of the own control group, version 2 then 1.

    A container sees its own group either at the root of `cgroups` or under the path that `membership` names.
    """
    own = [line.split(":", 2)[2].lstrip("/") for line in _read(membership).splitlines() if line.count(":") >= 2]
    return [root / folder for root in (cgroups, cgroups / "memory") for folder in ("", *own)]


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


def usable_memory_bytes() -> int | None:
    """What this process may still take: available on the machine, and left in its container; None if unknown."""
    _, available = _memory()
    if available is None:
        return None
    limit = memory_limit(*_CGROUPS)
    return available if limit is None else max(0, min(available, limit - memory_in_use(*_CGROUPS)))


def open_files_limit() -> int | None:
    """Soft limit of open files of this process; None where there is none."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def num_open_files() -> int | None:
    """Files that this process has open; None where the system does not list them."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return None


def num_cores() -> int:
    """Cores that this process may use: its affinity, within its container's quota."""
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
