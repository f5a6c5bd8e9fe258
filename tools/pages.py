"""Pictures of the pages of PDFs and TIFFs, for labelling: the same as `wholebatch pages`."""

from pipelines.cli import run_command

if __name__ == "__main__":
    run_command("pages")
