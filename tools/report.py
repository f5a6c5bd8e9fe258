"""A run as one HTML page: the same as `wholebatch report`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("report")
