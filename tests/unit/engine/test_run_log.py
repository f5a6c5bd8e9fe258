"""The log is one JSON line an update with the documented keys, whatever the numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import paddle
import pytest

from pipelines.engine.memory import peak_bytes, reset_peak
from pipelines.engine.run_log import RunLog
from pipelines.engine.update import UpdateReport

KEYS = ["update", "epoch", "samples", "micro_batches", "shapes", "loss", "loss_shrink", "lr", "grad_norm", "loss_scale"]
KEYS += ["skipped", "in_full", "failures", "seconds", "data_seconds", "peak_bytes"]

REPORT = UpdateReport(
    update=3,
    samples=5,
    micro_batches=2,
    shapes=((2, 64, 96), (3, 32, 32)),
    parts={"loss": 1.25, "loss_shrink": 0.5},
    learning_rate=1e-3,
    gradient_norm=2.5,
    loss_scale=1.0,
    skipped=0,
    in_full=1,
    failures=2,
    peak_bytes=4096,
    seconds=0.25,
)

# visualdl's own imports are not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore")


def lines(folder: Path) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_a_line_has_the_documented_keys_and_the_reports_numbers(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    returned = log.write(REPORT, epoch=1, data_seconds=0.125)
    log.close()
    (line,) = lines(tmp_path)
    assert line == returned and list(line) == KEYS
    assert line["shapes"] == [[2, 64, 96], [3, 32, 32]]
    assert (line["update"], line["epoch"], line["samples"], line["micro_batches"]) == (3, 1, 5, 2)
    assert (line["loss"], line["lr"], line["grad_norm"], line["data_seconds"]) == (1.25, 1e-3, 2.5, 0.125)
    assert (line["skipped"], line["in_full"], line["failures"]) == (0, 1, 2)
    assert line["peak_bytes"] == 4096


def test_what_the_samples_showed_stands_in_the_line(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.write(REPORT, epoch=0, data_seconds=0.0, counts={"ok_samples": 25, "defects": 9})
    log.close()
    (line,) = lines(tmp_path)
    assert (line["ok_samples"], line["defects"]) == (25, 9)


def test_every_line_is_on_disk_before_the_next_update_and_a_second_run_appends(tmp_path: Path) -> None:
    for update in (1, 2):
        log = RunLog(tmp_path)
        log.write(replace(REPORT, update=update), epoch=0, data_seconds=0.0)
        assert [line["update"] for line in lines(tmp_path)] == list(range(1, update + 1))
        log.close()


def test_peak_memory_sees_a_tensor_that_is_gone_until_it_is_reset() -> None:
    reset_peak()
    before = peak_bytes()
    paddle.zeros([1 << 20], dtype="float32").numpy()
    assert peak_bytes() - before >= 4 << 20
    reset_peak()
    assert peak_bytes() - before < 1 << 20
