"""Versions, device, memory and known-bad combinations: the same as `wholebatch doctor`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("doctor")
