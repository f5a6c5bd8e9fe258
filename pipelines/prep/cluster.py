"""The work of `prepare` on a Dask cluster whose workers see the same files under the same names."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

from pipelines.errors import UsageError
from pipelines.prep.versions import imaging_versions

_ANSWER_SECONDS = 10


@contextmanager
def dask_executor(address: str, shared: Iterable[Path]) -> Iterator[tuple[Executor, int]]:
    """The executor of a Dask cluster, and how many jobs it does at once.

    Args:
        address: of the scheduler, "tcp://host:8786".
        shared: files and folders that all workers must see under the same names.

    Raises:
        UsageError: Dask is not installed, nobody answers, no workers, or some that see other files or have other
            versions of what reads and writes images.
    """
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--cluster needs Dask: pip install 'wholebatch[cluster]', here and on the workers") from None
    _refuse_unreachable(address)
    try:
        client = Client(address, timeout=_ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        raise UsageError(f"--cluster {address}: what answers there is no Dask scheduler: {error}") from None
    with client:
        num_threads = sum(client.nthreads().values())
        if not num_threads:
            raise UsageError(f"--cluster {address}: the scheduler has no workers; start some with `dask worker`")
        paths = [os.path.abspath(path) for path in shared]
        try:
            views = client.run(view_of, paths)
        except ImportError as error:
            raise UsageError(f"--cluster {address}: wholebatch is not installed on a worker: {error}") from None
        check_views(address, views)
        yield client.get_executor(pure=False), num_threads


def _refuse_unreachable(address: str) -> None:
    """Knock first: a Dask client that finds nobody takes half a minute to give up, and ends in a traceback."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--cluster must be the address of a Dask scheduler, tcp://HOST:8786, but is {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"--cluster {address}: nobody answers there: {error}") from None


def view_of(paths: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """What a worker has: versions, and which of the paths it does not see."""
    return imaging_versions(), [path for path in paths if not os.path.exists(path)]


def check_views(address: str, views: Mapping[str, tuple[dict[str, str], list[str]]]) -> None:
    """Raise UsageError unless all workers see the same files as this process, with the same versions."""
    here = imaging_versions()
    for worker, (versions, missing) in sorted(views.items()):
        if missing:
            raise UsageError(
                f"--cluster {address}: worker {worker} does not see {', '.join(missing)}; source and --out must lie on"
                " a file system that all workers share, under the same names"
            )
        if versions != here:
            raise UsageError(
                f"--cluster {address}: worker {worker} has {versions}, but here are {here}; the same versions make the"
                " same bytes"
            )
