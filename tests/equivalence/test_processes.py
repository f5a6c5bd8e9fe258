"""Two processes give one process's update, and end together when one of them fails.

Run: python -m pytest tests/equivalence/test_processes.py
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.equivalence.process import train

PROCESS = Path(__file__).with_name("process.py")
DEADLINE_SECONDS = 100


def launch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `process.py` twice, joined by gloo on the CPU, as the launcher does it on cards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = [sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", str(folder)]
    launcher += ["--master", f"127.0.0.1:{port}"]
    environment = {**os.environ, "PADDLE_DISTRI_BACKEND": "gloo", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*launcher, str(PROCESS), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("exact_by", ["labels", "rescale", "replay"])
def test_two_processes_make_the_update_of_one(exact_by: str, tmp_path: Path) -> None:
    done = launch(tmp_path, exact_by, str(tmp_path / "weights.npz"))
    assert done.returncode == 0, done.stdout + done.stderr
    alone = train(exact_by, 0, 1)
    for rank in (0, 1):
        with np.load(tmp_path / f"weights.{rank}.npz") as shared:
            assert shared.files == list(alone)
            for name, value in alone.items():
                np.testing.assert_allclose(shared[name], value, rtol=1e-10, atol=1e-12, err_msg=name)


def test_when_one_process_fails_the_other_does_not_wait_for_ever(tmp_path: Path) -> None:
    done = launch(tmp_path, "replay", str(tmp_path / "weights.npz"), "fail")
    assert done.returncode != 0
    # process 1 failed for the reason planted, while process 0 was waiting in its first exchange
    assert "out of memory in one process only" in (tmp_path / "workerlog.1").read_text()
    assert not list(tmp_path.glob("weights*"))
