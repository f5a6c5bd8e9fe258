"""Memory by shape, micro-batches that fit: the same as `wholebatch plan`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("plan")
