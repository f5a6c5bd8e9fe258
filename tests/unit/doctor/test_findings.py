"""Facts become findings: every known trap is named with its way out, and a sound environment has none.

Run: pytest tests/unit/doctor
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipelines.doctor import Facts, Finding, Gpu, Paddle, findings_of

GIB = 2**30
PACKAGES = {
    "paddlepaddle": "3.2.2",
    "paddleocr": "3.7.0",
    "paddlex": "3.7.2",
    "numpy": "2.3.5",
    "opencv-contrib-python": "4.10.0.84",
    "setuptools": "80.10.2",
    "paddledet": "2.6.0",
}
SOUND = Facts(
    python=(3, 11, 7),
    packages=PACKAGES,
    paddle=Paddle(version="3.2.2"),
    memory_bytes=16 * GIB,
    memory_available_bytes=12 * GIB,
    shm_bytes=8 * GIB,
    max_open_files=4096,
    num_cores=4,
)
T4 = Gpu("Tesla T4", total_bytes=15 * GIB, free_bytes=15 * GIB, capability=(7, 5))
GPU_PACKAGES = {name.replace("paddlepaddle", "paddlepaddle-gpu"): version for name, version in PACKAGES.items()}
SOUND_T4 = replace(
    SOUND,
    packages=GPU_PACKAGES,
    paddle=Paddle(version="3.2.2", is_cuda_build=True, cuda="12.6", cudnn=90501, num_devices=1),
    driver="550.54.14",
    gpus=(T4,),
)


def found(facts: Facts, name: str) -> Finding:
    return next(finding for finding in findings_of(facts) if finding.name == name)


def with_packages(facts: Facts = SOUND, **versions: Any) -> Facts:
    return replace(facts, packages={**facts.packages, **{k.replace("_", "-"): v for k, v in versions.items()}})


@pytest.mark.parametrize("facts", [SOUND, SOUND_T4], ids=["cpu", "t4"])
def test_a_sound_environment_has_nothing_to_mend(facts: Facts) -> None:
    assert [finding for finding in findings_of(facts) if finding.verdict != "ok"] == []


def test_without_paddle_the_install_line_is_the_advice() -> None:
    facts = replace(SOUND, packages={"numpy": "2.3.5"}, paddle=None)
    assert found(facts, "paddle").verdict == "bad"
    assert "requirements/cpu.txt" in found(facts, "paddle").advice


@pytest.mark.parametrize(
    ("version", "verdict"), [("3.2.2", "ok"), ("3.3.0", "bad"), ("3.3.1", "bad"), ("3.3.2", "ok"), ("2.6.2", "bad")]
)
def test_paddle_releases_that_break_the_export_are_refused(version: str, verdict: str) -> None:
    facts = replace(with_packages(paddlepaddle=version), paddle=Paddle(version=version))
    assert found(facts, "paddle").verdict == verdict
    assert ("3.2.2" in found(facts, "paddle").advice) == (verdict == "bad")


def test_both_builds_of_paddle_at_once_are_bad() -> None:
    assert "uninstall" in found(with_packages(paddlepaddle_gpu="3.2.2"), "paddle").advice


def test_an_import_failure_is_quoted() -> None:
    facts = replace(SOUND, paddle=Paddle(error="ImportError: libcudart.so.12: cannot open"))
    assert found(facts, "paddle").verdict == "bad"
    assert "libcudart.so.12" in found(facts, "paddle").advice


def test_a_cpu_build_beside_a_gpu_is_told_with_the_right_install_line() -> None:
    finding = found(replace(SOUND, gpus=(T4,), driver="550.54.14"), "paddle")
    assert finding.verdict == "warn"
    assert "paddlepaddle-gpu==3.2.2" in finding.advice and "cu126" in finding.advice


@pytest.mark.parametrize(
    ("driver", "capability", "expected"),
    [
        ("550.54.14", (7, 5), "cu126"),
        ("535.104", (7, 5), "cu118"),
        ("440.33", (7, 5), "update the NVIDIA driver (440.33)"),
        ("580.65", (12, 0), "cu129"),
    ],
)
def test_the_install_line_follows_driver_and_card(driver: str, capability: tuple[int, int], expected: str) -> None:
    facts = replace(SOUND_T4, driver=driver, gpus=(replace(T4, capability=capability),))
    assert expected in found(facts, "install line").value


def test_a_driver_older_than_the_build_is_bad() -> None:
    assert found(replace(SOUND_T4, driver="535.104"), "driver").verdict == "bad"


def test_a_build_older_than_the_card_is_bad() -> None:
    facts = replace(SOUND_T4, gpus=(replace(T4, name="RTX 5090", capability=(12, 0)),), driver="580.65")
    assert "CUDA 12.6 can't run this card" in found(facts, "paddle").advice


def test_a_gpu_build_that_sees_no_gpu_says_where_to_look() -> None:
    facts = replace(SOUND_T4, paddle=Paddle(version="3.2.2", is_cuda_build=True, cuda="12.6"))
    assert "CUDA_VISIBLE_DEVICES" in found(facts, "paddle").advice


@pytest.mark.parametrize(
    ("number", "version", "verdict"),
    [
        (90501, "9.5.1", "ok"),
        (8906, "8.9.6", "ok"),
        (8002, "8.0.2", "ok"),
        (8003, "8.0.3", "bad"),
        (8103, "8.1.3", "bad"),
        (8200, "8.2.0", "ok"),
    ],
)
def test_cudnn_releases_that_leak_are_refused(number: int, version: str, verdict: str) -> None:
    assert SOUND_T4.paddle is not None
    finding = found(replace(SOUND_T4, paddle=replace(SOUND_T4.paddle, cudnn=number)), "cudnn")
    assert (finding.value, finding.verdict) == (version, verdict)


def test_bf16_is_advised_only_where_the_card_has_it() -> None:
    assert "precision fp16; bf16 needs compute capability 8.0" in found(SOUND_T4, "gpu 0").advice
    ampere = replace(SOUND_T4, gpus=(replace(T4, name="A10", capability=(8, 6)),))
    assert found(ampere, "gpu 0").advice == "precision bf16 or fp16"


def test_occupied_gpu_memory_is_explained_with_and_without_a_visible_process() -> None:
    occupied = replace(SOUND_T4, gpus=(replace(T4, free_bytes=6 * GIB),))
    assert found(occupied, "gpu 0").verdict == "warn"
    assert "a process that died" in found(occupied, "gpu 0").advice
    assert "2 other process(es)" in found(replace(occupied, num_gpu_processes=2), "gpu 0").advice


def test_setuptools_without_pkg_resources_matters_only_beside_paddledet() -> None:
    newer = with_packages(setuptools="81.0.0")
    alone = replace(newer, packages={name: v for name, v in newer.packages.items() if name != "paddledet"})
    assert found(newer, "setuptools").verdict == "bad"
    assert found(alone, "setuptools").verdict == "ok"


def test_paddledet_without_setuptools_is_bad() -> None:
    facts = replace(SOUND, packages={name: v for name, v in PACKAGES.items() if name != "setuptools"})
    assert found(facts, "setuptools").verdict == "bad"


def test_several_cv2_providers_are_bad_and_the_remedy_leaves_one() -> None:
    finding = found(with_packages(opencv_python="4.12.0", opencv_python_headless="4.12.0"), "cv2")
    assert finding.verdict == "bad"
    assert "uninstall -y opencv-python" in finding.advice
    assert finding.advice.endswith("opencv-contrib-python==4.10.0.84")


def test_the_container_limit_counts_not_the_host_memory() -> None:
    assert found(replace(SOUND, memory_limit_bytes=4 * GIB), "memory").verdict == "warn"
    assert found(replace(SOUND, memory_limit_bytes=64 * GIB), "memory") == found(SOUND, "memory")


def test_dockers_default_shared_memory_matters_to_several_cards_only() -> None:
    docker = 64 * 2**20
    one, two = (replace(SOUND_T4, gpus=(T4,) * count, shm_bytes=docker) for count in (1, 2))
    assert found(one, "/dev/shm").verdict == "ok"
    assert found(two, "/dev/shm").verdict == "warn" and "--shm-size" in found(two, "/dev/shm").advice


@pytest.mark.parametrize(("limit", "verdict"), [(256, "warn"), (1024, "ok"), (-1, "ok")])
def test_few_open_files_are_warned_about_and_unlimited_ones_are_not(limit: int, verdict: str) -> None:
    assert found(replace(SOUND, max_open_files=limit), "open files").verdict == verdict


def test_settings_that_hurt_are_told_and_others_listed() -> None:
    facts = replace(SOUND, settings={"FLAGS_enable_pir_api": "0", "OMP_NUM_THREADS": "1"})
    assert found(facts, "FLAGS_enable_pir_api").verdict == "warn"
    assert found(facts, "OMP_NUM_THREADS").verdict == "ok"


def test_settings_of_the_allocator_are_told_whatever_their_value() -> None:
    facts = replace(SOUND, settings={"FLAGS_gpu_memory_limit_mb": "6000", "FLAGS_allocator_strategy": "auto_growth"})
    finding = found(facts, "FLAGS_gpu_memory_limit_mb")
    assert (finding.value, finding.verdict) == ("6000", "warn") and "no more of the card" in finding.advice
    assert found(facts, "FLAGS_allocator_strategy").verdict == "ok"


@pytest.mark.parametrize(("python", "verdict"), [((3, 9, 18), "bad"), ((3, 10, 13), "ok"), ((3, 13, 0), "bad")])
def test_only_supported_pythons_pass(python: tuple[int, int, int], verdict: str) -> None:
    assert found(replace(SOUND, python=python), "python").verdict == verdict


def test_windows_is_told_to_be_untested() -> None:
    assert found(replace(SOUND, system="Windows", shm_bytes=None, max_open_files=None), "platform").verdict == "warn"
