"""From facts to findings: pure functions, one a concern."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pipelines.doctor.facts import Facts, Gpu
from pipelines.doctor.known_bad import known_bad, version_tuple

Verdict = Literal["ok", "warn", "bad"]

_GIB = 2**30
_PADDLE = "3.2.2"
_BUILDS = ("paddlepaddle", "paddlepaddle-gpu")
_CV2_PROVIDERS = (
    "opencv-python",
    "opencv-python-headless",
    "opencv-contrib-python",
    "opencv-contrib-python-headless",
)
_CV2 = "opencv-contrib-python==4.10.0.84"
_CV2_REMEDY = f"pip uninstall -y {' '.join(_CV2_PROVIDERS)} && pip install --no-deps {_CV2}"
_IS_NEEDED = {"paddleocr": True, "paddlex": True, "numpy": True, "setuptools": False, "paddledet": False}
_BF16_CAPABILITY = (8, 0)
_BLACKWELL_CAPABILITY, _BLACKWELL_CUDA = (10, 0), (12, 8)
# Paddle's packages by CUDA, with the oldest Linux driver that its install page names for each.
_DRIVER_OF_CUDA = {"cu129": (550, 54), "cu126": (550, 54), "cu118": (450, 80)}
_LEAST_MEMORY_BYTES = 6 * _GIB
_LEAST_SHM_BYTES = 1 * _GIB
_LEAST_OPEN_FILES = 1024


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's table.

    Attributes:
        name: what was looked at.
        value: what was found.
        verdict: "ok", "warn" (works, with a cost or a risk) or "bad" (something will fail).
        advice: why, and the way out; "" when there is nothing to do.
    """

    name: str
    value: str
    verdict: Verdict = "ok"
    advice: str = ""


def findings_of(facts: Facts) -> list[Finding]:
    """Judge an environment."""
    return [
        _python(facts),
        _platform(facts),
        _paddle(facts),
        *_gpus(facts),
        *_cuda(facts),
        *_packages(facts),
        _cv2(facts),
        _memory(facts),
        *_shared_memory(facts),
        *_open_files(facts),
        Finding("cores", str(facts.num_cores)),
        *_settings(facts),
        Finding("install line", install_line(facts)),
    ]


def install_line(facts: Facts) -> str:
    """How to install what this machine can use; Paddle's GPU packages lie in Paddle's own index, one a CUDA."""
    if not facts.gpus:
        return "pip install --no-deps -r requirements/cpu.txt"
    cuda = _best_cuda(facts)
    if not cuda:
        return f"update the NVIDIA driver ({facts.driver}) to 550.54 or later first; until then requirements/cpu.txt"
    return (
        f"pip install paddlepaddle-gpu=={_PADDLE} from Paddle's package index for {cuda},"
        " then pip install --no-deps -r requirements/gpu.txt"
    )


def _python(facts: Facts) -> Finding:
    value = ".".join(str(number) for number in facts.python)
    if (3, 10) <= facts.python[:2] <= (3, 12):
        return Finding("python", value)
    return Finding("python", value, "bad", "3.10, 3.11 and 3.12 are supported; make a venv with one of them")


def _platform(facts: Facts) -> Finding:
    value = f"{facts.system} {facts.machine}"
    if facts.system == "Windows":
        return Finding("platform", value, "warn", "not tested on Windows; WSL 2 with Linux is the safe way")
    if facts.gpus and facts.machine not in ("x86_64", "AMD64"):
        return Finding("platform", value, "warn", "Paddle has no GPU packages for this processor")
    return Finding("platform", value)


def _paddle(facts: Facts) -> Finding:
    builds = [name for name in _BUILDS if name in facts.packages]
    if facts.paddle is None or not builds:
        return Finding("paddle", "not installed", "bad", install_line(facts))
    value = ", ".join(f"{name} {facts.packages[name]}" for name in builds)
    if len(builds) > 1:
        remedy = f"pip uninstall -y {' '.join(builds)}, then {install_line(facts)}"
        return Finding("paddle", value, "bad", f"both builds write the same folder: {remedy}")
    if facts.paddle.error:
        return Finding("paddle", value, "bad", f"can't be imported: {facts.paddle.error}; {install_line(facts)}")
    entry = known_bad(builds[0], facts.paddle.version or facts.packages[builds[0]], frozenset(facts.packages))
    if entry:
        return Finding("paddle", value, entry.verdict, f"{entry.reason}; {entry.remedy}")
    if facts.gpus and not facts.paddle.is_cuda_build:
        return Finding("paddle", value, "warn", f"a CPU build beside a GPU, which stays unused: {install_line(facts)}")
    if _is_too_old_for_the_card(facts):
        return Finding("paddle", value, "bad", f"CUDA {facts.paddle.cuda} can't run this card: {install_line(facts)}")
    if facts.paddle.is_cuda_build and not facts.paddle.num_devices:
        return Finding(
            "paddle", value, "warn", "a GPU build that sees no GPU: check the driver and CUDA_VISIBLE_DEVICES"
        )
    return Finding("paddle", value)


def _is_too_old_for_the_card(facts: Facts) -> bool:
    cuda = version_tuple(facts.paddle.cuda) if facts.paddle else ()
    return bool(cuda) and cuda < _BLACKWELL_CUDA and _has_blackwell(facts)


def _gpus(facts: Facts) -> Iterator[Finding]:
    if not facts.gpus:
        yield Finding("gpu", "none", "ok", "everything runs on the CPU, training slowly: a smoke run takes minutes")
    for index, gpu in enumerate(facts.gpus):
        value = f"{gpu.name}, {_gib(gpu.free_bytes)} of {_gib(gpu.total_bytes)} free"
        if gpu.capability:
            value += f", compute capability {gpu.capability[0]}.{gpu.capability[1]}"
        if gpu.free_bytes < gpu.total_bytes * 0.8:
            yield Finding(f"gpu {index}", value, "warn", f"{_occupied(facts)}; {_precision_advice(gpu)}")
        else:
            yield Finding(f"gpu {index}", value, "ok", _precision_advice(gpu))


def _occupied(facts: Facts) -> str:
    if facts.num_gpu_processes:
        return f"{facts.num_gpu_processes} other process(es) hold memory; nvidia-smi lists them"
    return "memory is held but by no process that this one can see: another container, or a process that died"


def _precision_advice(gpu: Gpu) -> str:
    if gpu.capability is None:
        return "precision fp16; the driver does not tell the compute capability"
    if gpu.capability < _BF16_CAPABILITY:
        return "precision fp16; bf16 needs compute capability 8.0 and would be emulated, slower than fp32"
    return "precision bf16 or fp16"


def _cuda(facts: Facts) -> Iterator[Finding]:
    if facts.driver:
        build = f"cu{facts.paddle.cuda.replace('.', '')}" if facts.paddle and facts.paddle.cuda else ""
        least = _DRIVER_OF_CUDA.get(build, (0, 0))
        advice = f"Paddle's {build} packages need {least[0]}.{least[1]} or later; update it, or {install_line(facts)}"
        is_old = version_tuple(facts.driver) < least
        yield Finding("driver", facts.driver, "bad" if is_old else "ok", advice if is_old else "")
    if facts.paddle and facts.paddle.num_devices:
        version = _cudnn_version(facts.paddle.cudnn)
        entry = known_bad("cudnn", version, frozenset(facts.packages))
        if not facts.paddle.cudnn:
            yield Finding("cudnn", "not found", "bad", f"the nvidia-cudnn package is missing: {install_line(facts)}")
        elif entry:
            yield Finding("cudnn", version, entry.verdict, f"{entry.reason}; {entry.remedy}")
        else:
            yield Finding("cudnn", version)


def _packages(facts: Facts) -> Iterator[Finding]:
    installed = frozenset(facts.packages)
    for name, is_needed in _IS_NEEDED.items():
        version = facts.packages.get(name)
        entry = known_bad(name, version, installed) if version else None
        if entry and version:
            yield Finding(name, version, entry.verdict, f"{entry.reason}; {entry.remedy}")
        elif version:
            yield Finding(name, version)
        elif is_needed:
            yield Finding(name, "not installed", "bad", install_line(facts))
        elif name == "paddledet":
            yield Finding(name, "not installed", "ok", "only defect detection needs it")
        elif "paddledet" in installed:
            yield Finding(name, "not installed", "bad", "ppdet imports its pkg_resources; pip install 'setuptools<81'")


def _cv2(facts: Facts) -> Finding:
    found = [f"{name} {facts.packages[name]}" for name in _CV2_PROVIDERS if name in facts.packages]
    if len(found) > 1:
        why = "they overwrite each other's cv2, and which one is imported depends on the order of installation"
        return Finding("cv2", ", ".join(found), "bad", f"{why}: {_CV2_REMEDY}")
    if not found:
        return Finding("cv2", "not installed", "bad", f"pip install --no-deps {_CV2}")
    return Finding("cv2", found[0])


def _memory(facts: Facts) -> Finding:
    if facts.memory_bytes is None:
        return Finding("memory", "unknown", "warn", "psutil is not installed, so memory can't be read")
    value = f"{_gib(facts.memory_available_bytes or 0)} of {_gib(facts.memory_bytes)} available"
    usable = facts.memory_available_bytes or facts.memory_bytes
    if facts.memory_limit_bytes is not None and facts.memory_limit_bytes < facts.memory_bytes:
        value += f", container limit {_gib(facts.memory_limit_bytes)}"
        usable = min(usable, facts.memory_limit_bytes)
    if usable < _LEAST_MEMORY_BYTES:
        return Finding("memory", value, "warn", "under 6 GiB the kernel may end a run; fewer workers need less")
    return Finding("memory", value)


def _shared_memory(facts: Facts) -> Iterator[Finding]:
    if facts.shm_bytes is None:
        return
    is_small = facts.shm_bytes < _LEAST_SHM_BYTES
    if is_small and len(facts.gpus) > 1:
        advice = "several cards exchange gradients through it and stop when it is full; docker run --shm-size=2g"
        yield Finding("/dev/shm", _gib(facts.shm_bytes), "warn", advice)
    else:
        yield Finding(
            "/dev/shm", _gib(facts.shm_bytes), "ok", "small, but loader workers use pipes" if is_small else ""
        )


def _open_files(facts: Facts) -> Iterator[Finding]:
    if facts.max_open_files is None:
        return
    is_low = 0 <= facts.max_open_files < _LEAST_OPEN_FILES
    advice = "a run lowers its loader workers to what that allows; ulimit -n 4096" if is_low else ""
    yield Finding("open files", str(facts.max_open_files), "warn" if is_low else "ok", advice)


def _settings(facts: Facts) -> Iterator[Finding]:
    for name, value in facts.settings.items():
        advice = _SETTING_ADVICE.get((name, value.lower())) or _MEMORY_ADVICE.get(name, "")
        yield Finding(name, value, "warn" if advice else "ok", advice)


_MEMORY_ADVICE = {
    "FLAGS_gpu_memory_limit_mb": "Paddle takes no more of the card than this many MB; unset it for the whole card",
    "FLAGS_initial_gpu_memory_in_mb": "is taken at the start, needed or not; unset it",
    "FLAGS_reallocate_gpu_memory_in_mb": "is taken at every growth, needed or not; unset it",
    "FLAGS_fraction_of_gpu_memory_to_use": "is taken at once by the older allocators; unset it",
}
_SETTING_ADVICE = {
    ("FLAGS_allocator_strategy", "naive_best_fit"): "takes most of the card at the start; auto_growth is the cure",
    ("FLAGS_enable_pir_api", "0"): "export then writes the old .pdmodel, which paddleocr 3 does not load; unset it",
    ("FLAGS_enable_pir_api", "false"): "export then writes the old .pdmodel, which paddleocr 3 does not load; unset it",
    ("FLAGS_check_nan_inf", "1"): "checks every operator and slows training down many times",
    ("CUDA_VISIBLE_DEVICES", ""): "hides every GPU",
    ("CUDA_VISIBLE_DEVICES", "-1"): "hides every GPU",
}


def _best_cuda(facts: Facts) -> str:
    choices = ("cu129",) if _has_blackwell(facts) else ("cu126", "cu118")
    return next((cuda for cuda in choices if version_tuple(facts.driver) >= _DRIVER_OF_CUDA[cuda]), "")


def _has_blackwell(facts: Facts) -> bool:
    return any(gpu.capability is not None and gpu.capability >= _BLACKWELL_CAPABILITY for gpu in facts.gpus)


def _cudnn_version(number: int) -> str:
    """The version behind cuDNN's own number: 8103 is 8.1.3, and from version 9 on 90501 is 9.5.1."""
    base = 10000 if number >= 90000 else 1000
    return f"{number // base}.{number % base // 100}.{number % 100}"


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / _GIB:.1f} GiB"
