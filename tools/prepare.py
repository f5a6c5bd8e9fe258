"""Raw files to a prepared dataset: the same as `wholebatch prepare`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("prepare")
