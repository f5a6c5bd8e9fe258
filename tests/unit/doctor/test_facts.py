"""Facts are read right from what drivers and containers write, and need no package at all.

Run: pytest tests/unit/doctor
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.doctor.facts import Gpu, gather_facts, memory_in_use, memory_limit, parse_gpus
from pipelines.doctor.known_bad import version_tuple


def test_rows_of_the_driver_become_cards() -> None:
    driver, gpus = parse_gpus(["550.54.14, Tesla T4, 15360, 15101, 7.5"])
    assert driver == "550.54.14"
    assert gpus == (Gpu("Tesla T4", 15360 * 2**20, 15101 * 2**20, (7, 5)),)


def test_a_driver_that_does_not_tell_the_capability_leaves_it_open() -> None:
    assert parse_gpus(["450.80.02, Tesla T4, 15109, 15000"])[1][0].capability is None
    assert parse_gpus(["450.80.02, Tesla T4, 15109, 15000, [N/A]"])[1][0].capability is None


def test_no_rows_mean_no_card() -> None:
    assert parse_gpus([]) == ("", ())


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("file", "membership", "text", "limit"),
    [
        ("memory.max", "0::/\n", "4294967296\n", 2**32),
        ("memory.max", "0::/\n", "max\n", None),
        ("job/memory.max", "0::/job\n", "1024\n", 1024),
        ("memory/memory.limit_in_bytes", "4:memory:/\n", "2048\n", 2048),
        ("memory/memory.limit_in_bytes", "4:memory:/\n", "9223372036854771712\n", None),
    ],
    ids=["v2", "v2 unlimited", "v2 own group", "v1", "v1 unlimited"],
)
def test_the_container_limit_is_read(tmp_path: Path, file: str, membership: str, text: str, limit: int | None) -> None:
    write(tmp_path / "cgroup" / file, text)
    own = write(tmp_path / "self", membership)
    assert memory_limit(tmp_path / "cgroup", own) == limit


def test_no_container_has_no_limit(tmp_path: Path) -> None:
    assert memory_limit(tmp_path / "missing", tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("text", "numbers"), [("3.2.2", (3, 2, 2)), ("3.2.2.post126", (3, 2, 2)), ("2.9.post0", (2, 9)), ("unknown", ())]
)
def test_versions_are_compared_by_their_leading_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert version_tuple(text) == numbers


def test_facts_of_this_machine_are_plausible() -> None:
    facts = gather_facts()
    assert facts.python == sys.version_info[:3]
    assert facts.packages["numpy"]
    assert facts.num_cores >= 1
    assert facts.paddle is not None and facts.paddle.error == ""


def test_the_doctor_runs_where_nothing_is_installed(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "pipelines.doctor"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "bad   paddle         not installed" in done.stdout
    assert done.stderr == ""


def test_what_a_container_holds_is_counted_without_the_page_cache(tmp_path: Path) -> None:
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("anon 3000\ninactive_file 1500\nactive_file 500\n")
    assert memory_in_use(tmp_path, tmp_path / "none") == 3500


def test_version_1_of_control_groups_is_read_too(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "memory.usage_in_bytes").write_text("900\n")
    (folder / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 1\n")
    assert memory_in_use(tmp_path, tmp_path / "none") == 899
    assert memory_in_use(tmp_path / "nowhere", tmp_path / "none") == 0
