"""`train`: baseline as shipped and tuned, training, and a best model that has to beat the tuned baseline."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from pipelines.batching.loader import Window, WindowLoader
from pipelines.config import Config, dump_config
from pipelines.engine.blend import Blend
from pipelines.engine.checkpoint import save_checkpoint, save_weights
from pipelines.engine.loop import Step, run_updates
from pipelines.engine.run_log import RunLog
from pipelines.engine.update import Updater
from pipelines.errors import Interrupted, OutOfMemoryError
from pipelines.folders import write_text
from pipelines.runs.assemble import build_updater, new_run_folder
from pipelines.runs.interruption import stop_request
from pipelines.runs.memory import RunMemory
from pipelines.runs.report import report as write_report
from pipelines.runs.reporter import ProgressBar, Reporter
from pipelines.runs.wiring import Judge, Verdict, Wiring, wiring_of
from pipelines.task import Task


def train(config: Config, reporter: Reporter) -> Path:
    """Run a whole training; returns the run folder.

    Raises:
        UsageError: the run folder exists, or the configuration asks for the impossible.
        DataError: the dataset can't be trained on.
    """
    wiring = wiring_of(config, reporter)
    train_records, val_records = wiring.records("train"), wiring.records("val")
    samples = wiring.samples(train_records)
    task = wiring.build_task(wiring.configured_setting())
    # before the baseline, whose evaluation takes minutes: what can be refused is refused at once
    groups = wiring.parameter_groups(task)
    updater, num_updates = build_updater(config, task, groups, samples.num_an_epoch, reporter)
    folder = new_run_folder(config)
    write_text(folder / "config.yml", dump_config(config))
    run = _Run(wiring, folder, task, wiring.judge(task, train_records, val_records), reporter)
    try:
        setting = run.measure_baseline()
    except BaseException:
        shutil.rmtree(folder)  # nothing learnt yet, and the same command shall work again
        raise
    try:
        run.learn(wiring.window_loader(samples, setting), updater, num_updates)
    except OutOfMemoryError:
        if updater.num_updates == 0:
            shutil.rmtree(folder)  # likewise
        raise
    run.conclude()
    write_report(folder, reporter)
    return folder


class _Run:
    """What a run has found out so far; `metrics.json` is its mirror."""

    def __init__(self, wiring: Wiring, folder: Path, task: Task, judge: Judge, reporter: Reporter):
        self._wiring, self._config = wiring, wiring.config
        self._folder, self._task, self._judge, self._reporter = folder, task, judge, reporter
        self._blend = Blend(task.network.parameters())
        self._best: Verdict[Any]
        self._last_step: Step[Window] | None = None
        self._metrics: dict[str, Any] = {"evaluations": []}

    def measure_baseline(self) -> Any:
        """The untouched weights: as shipped, and at the setting tuned on training images, which is to be beaten."""
        shipped = self._judge.as_shipped()
        tuned = self._judge.baseline(shipped)
        self._metrics["shipped"] = shipped.entry(0)
        self._metrics["baseline"] = tuned.entry(0)
        self._metrics["tuning"] = tuned.tuning
        self._keep_as_best(0, tuned)
        rows = self._wiring.rows("weights as shipped", shipped.metrics)
        if tuned.setting != shipped.setting:
            self._reporter.note(f"setting tuned on training images: {self._wiring.describe(tuned.setting)}")
            rows += self._wiring.rows("same, setting tuned", tuned.metrics)
        self._reporter.table("Baseline on val", self._wiring.columns, rows)
        return tuned.setting

    def learn(self, loader: WindowLoader, updater: Updater, num_updates: int) -> None:
        log = RunLog(self._folder)
        title = f"training {self._config.run.name}"
        with (
            closing(log),
            loader,
            self._reporter.progress(num_updates, title) as bar,
            stop_request() as request,
            self._saved_when_memory_ends(updater),
        ):
            memory = RunMemory(self._config, self._task, updater, loader, self._reporter)
            for step in run_updates(updater, loader, num_updates):
                self._last_step = step
                self._record(step, log, bar)
                memory.after(step.report)
                if request.signal_number is not None:
                    self._stop(step, updater, request.signal_number)
                self._after_update(step, updater, log, is_last=updater.num_updates == num_updates)

    @contextmanager
    def _saved_when_memory_ends(self, updater: Updater) -> Iterator[None]:
        """What was learnt outlives an update or an evaluation that no longer fits."""
        try:
            yield
        except OutOfMemoryError as error:
            step = self._last_step
            saved = "nothing was learnt yet" if step is None else f"saved in {self._save_checkpoint(step, updater)}"
            raise OutOfMemoryError(f"after update {updater.num_updates} ({saved}): {error}") from None

    def conclude(self) -> None:
        """Say plainly what training added."""
        baseline, best = self._metrics["baseline"], self._metrics["best"]
        label = f"best (update {best['update']}, {best['blend']:.0%} of the way)"
        name = self._wiring.baseline_name
        rows = self._wiring.rows(name, baseline) + self._wiring.rows(label, best)
        self._reporter.table("Result on val", self._wiring.columns, rows)
        self._wiring.tell_details(best)
        if best["update"] == 0:
            self._reporter.warn(
                f"training did not beat the {name}: the best model is the untouched weights. More or cleaner labels, a"
                " lower train.learning_rate.base or more updates may help"
            )
            return
        said, warning = self._wiring.conclusion(baseline, best)
        self._reporter.note(said)
        if warning:
            self._reporter.warn(warning)

    def _after_update(self, step: Step[Window], updater: Updater, log: RunLog, *, is_last: bool) -> None:
        done = updater.num_updates
        if done % self._config.train.checkpoint_every_updates == 0 or is_last:
            self._save_checkpoint(step, updater)
        if done % self._config.evaluate.every_updates == 0 or is_last:
            with updater.averaged():
                verdict = self._judge.trained(self._blend, f"evaluation after update {done}")
                log.metrics(done, verdict.metrics)
                self._reporter.note(f"update {done}: {self._wiring.summary(verdict)}")
                self._metrics["evaluations"].append(verdict.entry(done))
                if self._judge.preference(verdict) > self._judge.preference(self._best):
                    with self._blend.applied(verdict.blend):
                        self._keep_as_best(done, verdict)
            self._save_metrics()

    def _save_checkpoint(self, step: Step[Window], updater: Updater) -> Path:
        position = {"epoch": step.window.epoch, "window": step.window.index, "seed": self._config.run.seed}
        folder, keep = self._folder / "checkpoints", self._config.train.keep_checkpoints
        return save_checkpoint(folder, updater, self._task.network, position, keep)

    def _stop(self, step: Step[Window], updater: Updater, signal_number: int) -> None:
        saved = self._save_checkpoint(step, updater)
        raise Interrupted(
            f"stopped by {signal.Signals(signal_number).name} after update {updater.num_updates}, saved in {saved}; the"
            f" best model so far is {self._folder / 'best'}",
            signal_number,
        )

    def _record(self, step: Step[Window], log: RunLog, bar: ProgressBar) -> None:
        counts = self._wiring.counts(step.window.micro_batches)
        line = log.write(step.report, epoch=step.window.epoch, data_seconds=step.data_seconds, counts=counts)
        speed = step.report.samples / (step.report.seconds + step.data_seconds)
        peak_gib = line["peak_bytes"] / 2**30
        text = f"loss {line['loss']:.3f}  lr {line['lr']:.2e}  {speed:.2f} images/s  peak {peak_gib:.2f} GiB"
        bar.advance(text)

    def _keep_as_best(self, update: int, verdict: Verdict[Any]) -> None:
        self._best = verdict
        self._metrics["best"] = verdict.entry(update)
        description = {
            **self._wiring.description(),
            "setting": verdict.setting.model_dump(),
            "blend": verdict.blend,
            "update": update,
            "metrics": verdict.metrics,
        }
        save_weights(self._folder / "best", self._task.network, description)
        self._save_metrics()

    def _save_metrics(self) -> None:
        write_text(self._folder / "metrics.json", json.dumps(self._metrics, indent=1))
