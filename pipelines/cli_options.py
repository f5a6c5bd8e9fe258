"""Options that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.errors import UsageError

ConfigFile = Annotated[Path, typer.Option("-c", "--config", help="The run's YAML file.")]
Overrides = Annotated[list[str] | None, typer.Option("-o", help="section.key=value, may be repeated.")]
Frame = Annotated[
    str, typer.Option("--label-frame", help="How EXIF-turned images were labelled: displayed, raw, auto.")
]
MaxMegapixels = Annotated[float, typer.Option(help="Larger images are left out.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Threads; default: one a core.")]
Cluster = Annotated[str | None, typer.Option(help="Address of a Dask scheduler to work on instead, tcp://HOST:8786.")]
Repair = Annotated[bool, typer.Option(help="Repair labels where one repair is right; else refuse and list what.")]
RawFormat = Annotated[str, typer.Option("--from", help="Format of the labels (docs/data_formats.md); auto: find out.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the result here, machine-readable.")]


def configuration(file: Path, overrides: list[str] | None) -> Any:
    """The checked configuration of a file with its overrides; refuses what is wrong, all at once."""
    from pipelines.config import load_config

    return load_config(file, overrides or [])


def write_json(file: Path | None, content: Any) -> None:
    """Write a command's result for machines, if that was asked for.

    Raises:
        UsageError: the file can't be written.
    """
    if file is None:
        return
    try:
        file.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    except OSError as fault:
        raise UsageError(f"--json {file}: can't be written: {fault.strerror}") from None
