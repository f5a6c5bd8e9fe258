"""Baseline, training, best model: the same as `wholebatch train`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("train")
