"""Accumulated gradient against the whole batch: the same as `wholebatch verify`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("verify")
