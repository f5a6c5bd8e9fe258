"""Metrics of a model on a split: the same as `wholebatch evaluate`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("evaluate")
