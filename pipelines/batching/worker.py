"""A loader worker: a process of its own that reads jobs from its standard input and writes samples back.

Plain pipes, no shared memory (containers often have 64 MB of it) and no copy of the training process: a worker
imports numpy and OpenCV only. It ends by itself when the training process does, however that went.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import traceback
from typing import Any, BinaryIO

from pipelines.batching.sampling import SampleJob, SampleMaker
from pipelines.errors import DataError
from pipelines.records import Sample

# The parent's module search path comes as an argument, since targets may live anywhere the parent can import from.
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from pipelines.batching.worker import serve; serve()"
_ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


class WorkerDied(Exception):
    """The process is gone; the message says how it ended."""


class Worker:
    """The parent's end of one worker process.

    Args:
        setup: the pickled `SampleMaker`.
    """

    def __init__(self, setup: bytes):
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ONE_THREAD},
            start_new_session=True,  # Ctrl-C is for the training process, which then ends its workers
        )
        self._setup: bytes | None = setup

    def make(self, job: SampleJob) -> Sample:
        """Have one sample made; blocks.

        Args:
            job: which one.

        Returns:
            What the `SampleMaker` made of it.

        Raises:
            DataError: the sample can't be made.
            WorkerDied: the process ended before it answered.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # both are pipes
        try:
            if self._setup is not None:
                stdin.write(self._setup)
                self._setup = None
            pickle.dump(job, stdin, pickle.HIGHEST_PROTOCOL)
            stdin.flush()
            sample, fault, trace = pickle.load(stdout)
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):
            raise WorkerDied(self._how_it_ended()) from None
        if fault is not None:
            raise DataError(fault) from (RuntimeError(trace) if trace else None)
        return sample

    def end(self) -> None:
        """Kill the process if it still runs, and reap it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()

    def _how_it_ended(self) -> str:
        self._process.kill()  # nothing to a dead one; a live one that garbled its answer is of no use
        code = self._process.wait()
        if code >= 0:
            return f"exit status {code}"
        hint = ", often for lack of memory" if code == -signal.SIGKILL else ""
        return f"signal {signal.Signals(-code).name}{hint}"


def serve() -> None:
    """The worker's main loop: a `SampleMaker`, then jobs, until the input ends."""
    import cv2

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cv2.setNumThreads(1)
    # Answers get a descriptor of their own: whatever a library prints must not land between them.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, BrokenPipeError):  # the training process is gone, and so are we
        _answer_jobs(sys.stdin.buffer, answers)


def _answer_jobs(jobs: BinaryIO, answers: BinaryIO) -> None:
    maker, setup_fault = _load_maker(jobs)
    while True:
        job: SampleJob = pickle.load(jobs)
        answer: tuple[Sample | None, str | None, str] = (None, setup_fault, "")
        if maker is not None:
            try:
                answer = (maker(job), None, "")
            except DataError as fault:
                answer = (None, str(fault), traceback.format_exc() if fault.__cause__ else "")
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _load_maker(jobs: BinaryIO) -> tuple[SampleMaker | None, str | None]:
    try:
        maker: Any = pickle.load(jobs)
        return maker, None
    except (ImportError, AttributeError) as fault:
        return None, (
            f"loader workers can't import the targets or the evaluation's resize rule ({fault}): define them in a"
            " module that can be imported, or set workers to 0"
        )
