"""Commands run in this process, with what they leave on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from pipelines.cli import main


class Outcome(NamedTuple):
    """What a command left behind on the terminal."""

    exit_code: int
    text: str


Command = Callable[..., Outcome]


@pytest.fixture
def wholebatch(capfd: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process."""

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return Outcome(int(stopped.value.code or 0), out + err)

    return run
