"""Inference model that paddleocr loads: the same as `wholebatch export`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("export")
