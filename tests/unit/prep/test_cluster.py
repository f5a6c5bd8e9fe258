"""`prepare` on a Dask cluster of two processes; skipped without Dask. Run: pytest tests/unit/prep/test_cluster.py"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import types
from pathlib import Path

import pytest

from pipelines.errors import UsageError
from pipelines.prep import prepare_text
from pipelines.prep.cluster import check_views, dask_executor, view_of
from pipelines.prep.versions import imaging_versions

ROOT = Path(__file__).resolve().parents[3]
# In a process of its own, where Dask may warn of what it likes. Nothing dies here, since Dask does not close well while
# it starts another worker for a dead one; test_executors plays the death.
PREPARE = """
import sys
from pathlib import Path
from distributed import LocalCluster
from pipelines.prep import prepare_text
from pipelines.prep.cluster import dask_executor

if __name__ == "__main__":
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with dask_executor(cluster.scheduler_address, [source, out.parent]) as (executor, num_jobs):
            assert num_jobs == 2, num_jobs
            prepare_text(source, "paddleocr", out, executor=executor, workers=num_jobs)
"""


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="the package distributed is not installed")
def test_a_cluster_writes_the_bytes_that_threads_write(labelled, tmp_path):
    script = tmp_path / "on_cluster.py"
    script.write_text(PREPARE)
    arguments = [sys.executable, str(script), str(labelled), str(tmp_path / "cluster")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    prepare_text(labelled, "paddleocr", tmp_path / "threads")
    assert tree(tmp_path / "cluster") == tree(tmp_path / "threads") and len(tree(tmp_path / "threads")) == 14


def test_without_dask_a_cluster_is_refused_with_the_way_out(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"wholebatch\[cluster\]"), dask_executor("tcp://nowhere:8786", [tmp_path]):
        pass


@pytest.mark.parametrize("address", ["", "here", "tcp://here", "tcp://here:port", ":8786"])
def test_what_is_no_address_is_refused(monkeypatch, address):
    monkeypatch.setitem(sys.modules, "distributed", types.SimpleNamespace(Client=None))
    with pytest.raises(UsageError, match=r"must be the address of a Dask scheduler"), dask_executor(address, []):
        pass


def test_an_address_where_nobody_answers_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", types.SimpleNamespace(Client=None))
    with socket.socket() as taken:  # bound, but it does not listen
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UsageError, match=r"nobody answers there"), dask_executor(address, []):
            pass


def test_workers_that_see_other_files_or_have_other_versions_are_refused(tmp_path):
    versions, missing = view_of([str(tmp_path), str(tmp_path / "none")])
    assert versions == imaging_versions() and missing == [str(tmp_path / "none")]
    check_views("tcp://s:1", {"tcp://w:1": (versions, [])})
    with pytest.raises(UsageError, match=r"worker tcp://w:1 does not see .*none; source and --out must lie"):
        check_views("tcp://s:1", {"tcp://w:1": (versions, missing)})
    with pytest.raises(UsageError, match=r"'pillow': '1\.0'"):
        check_views("tcp://s:1", {"tcp://w:1": ({**versions, "pillow": "1.0"}, [])})
