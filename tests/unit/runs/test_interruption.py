"""The first signal asks a run to stop, the second insists. Run: pytest tests/unit/runs/test_interruption.py"""

from __future__ import annotations

import signal
import threading

import pytest

from pipelines.runs.interruption import StopRequest, stop_request


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_insists(number):
    with stop_request() as request:
        assert request.signal_number is None
        signal.raise_signal(number)
        assert request.signal_number == number
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)


def test_afterwards_signals_do_what_they_did_before():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(ValueError, match="inside"), stop_request():
        raise ValueError("inside")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_outside_the_main_thread_signals_stay_as_they_are():
    seen: list[StopRequest] = []

    def work() -> None:
        before = signal.getsignal(signal.SIGTERM)
        with stop_request() as request:
            assert signal.getsignal(signal.SIGTERM) == before
            seen.append(request)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(seen) == 1 and seen[0].signal_number is None
