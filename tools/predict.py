"""Boxes for images, as JSON and drawn: the same as `wholebatch predict`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("predict")
