"""Every fault of a dataset in one pass: the same as `wholebatch check`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("check")
