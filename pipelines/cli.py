"""The command line: options in, exit codes out (0 done, 1 not good enough, 2 wrong usage, 130/143 stopped)."""

from __future__ import annotations

import os
import sys
import warnings
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli_options import (
    Cluster,
    ConfigFile,
    Frame,
    JsonFile,
    MaxMegapixels,
    Overrides,
    RawFormat,
    Repair,
    Workers,
    configuration,
    write_json,
)
from pipelines.errors import WholebatchError
from pipelines.runs.interruption import exit_on_sigterm
from pipelines.terminal import Terminal

app = typer.Typer(
    name="wholebatch",
    help="Fine-tune text and defect detectors with PaddlePaddle: one update equals the whole batch, on one small card.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
prepare_app = typer.Typer(help="Read, check, repair and split raw data into a dataset.", no_args_is_help=True)
app.add_typer(prepare_app, name="prepare")


@prepare_app.command("text")
def prepare_text_command(
    source: Annotated[Path, typer.Argument(help="Folder or label file of the raw data.")],
    out: Annotated[Path, typer.Option("--out", help="New dataset folder.")],
    format: RawFormat = "auto",
    val: Annotated[float, typer.Option(help="Share of the images for validation.")] = 0.2,
    group_by: Annotated[str | None, typer.Option(help="What must not straddle splits.")] = None,
    images: Annotated[Path | None, typer.Option(help="Where the images are, if elsewhere.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    label_frame: Frame = "auto",
    max_megapixels: MaxMegapixels = 200.0,
    repair: Repair = True,
    workers: Workers = None,
    cluster: Cluster = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report only.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Prepare a text detection dataset."""
    from pipelines.runs.data import prepare_text_dataset

    report = prepare_text_dataset(
        source,
        format,
        out,
        Terminal(),
        val_share=val,
        group_by=group_by,
        seed=seed,
        images=images,
        label_frame=label_frame,
        max_pixels=int(max_megapixels * 1e6),
        repair=repair,
        workers=workers,
        cluster=cluster,
        dry_run=dry_run,
    )
    write_json(json_file, report)


@prepare_app.command("defect")
def prepare_defect_command(
    source: Annotated[Path, typer.Argument(help="Folder or label file of the raw data.")],
    out: Annotated[Path, typer.Option("--out", help="New dataset folder.")],
    format: RawFormat = "auto",
    ok: Annotated[list[Path] | None, typer.Option("--ok", help="Folder of OK images, may be repeated.")] = None,
    classes: Annotated[str | None, typer.Option(help="Classes to keep, in order: a,b,c.")] = None,
    val: Annotated[float, typer.Option(help="Share of the images for validation.")] = 0.2,
    group_by: Annotated[str | None, typer.Option(help="What must not straddle splits.")] = None,
    images: Annotated[Path | None, typer.Option(help="Where the images are, if elsewhere.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    label_frame: Frame = "auto",
    max_megapixels: MaxMegapixels = 200.0,
    repair: Repair = True,
    workers: Workers = None,
    cluster: Cluster = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report only.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Prepare a defect detection dataset; OK images are kept and counted."""
    from pipelines.runs.data import prepare_defect_dataset

    report = prepare_defect_dataset(
        source,
        format,
        out,
        Terminal(),
        val_share=val,
        group_by=group_by,
        seed=seed,
        images=images,
        ok_folders=ok or [],
        classes=None if classes is None else classes.split(","),
        label_frame=label_frame,
        max_pixels=int(max_megapixels * 1e6),
        repair=repair,
        workers=workers,
        cluster=cluster,
        dry_run=dry_run,
    )
    write_json(json_file, report)


@app.command()
def pages(
    source: Annotated[Path, typer.Argument(help="PDF or TIFF file, or a folder with some.")],
    out: Annotated[Path, typer.Option("--out", help="New folder for pictures and Label.txt.")],
    dpi: Annotated[float, typer.Option(help="Pixels per inch of PDFs; TIFFs keep their pixels.")] = 300.0,
    draft_labels: Annotated[bool, typer.Option("--draft-labels", help="Label the text layer's lines.")] = False,
    max_megapixels: Annotated[float, typer.Option(help="Larger pages are left out.")] = 200.0,
    json_file: JsonFile = None,
) -> None:
    """Pictures of the pages of PDFs and TIFFs, for labelling, with draft labels where there is a text layer."""
    from pipelines.runs.data import render_pages

    max_pixels = int(max_megapixels * 1e6)
    report = render_pages(source, out, Terminal(), dpi=dpi, draft_labels=draft_labels, max_pixels=max_pixels)
    write_json(json_file, report)


@app.command()
def check(
    dataset: Annotated[Path, typer.Argument(help="Prepared dataset, or a PaddleOCR or COCO dataset folder.")],
    side: Annotated[int | None, typer.Option(help="Longest side the network sees; default: 960 for text.")] = None,
    sheet: Annotated[Path | None, typer.Option(help="HTML file to write: images worth a look, labels drawn.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Every fault of a dataset in one pass; exit code 1 if it can't be trained on.

    For raw data: `wholebatch prepare ... --dry-run`.
    """
    from pipelines.runs.data import check

    report = check(dataset, Terminal(), sheet, side_px=side)
    write_json(json_file, report)
    raise typer.Exit(0 if report["ok"] else 1)


@app.command()
def synthesize(
    out: Annotated[Path, typer.Option("--out", help="New dataset folder.")],
    kind: Annotated[str, typer.Option(help="invoices or factory.")] = "invoices",
    train_images: Annotated[int, typer.Option("--train", help="Training images.")] = 64,
    val_images: Annotated[int, typer.Option("--val", help="Validation images.")] = 24,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
    size: Annotated[list[str] | None, typer.Option(help="HEIGHTxWIDTH in pixels, may be repeated.")] = None,
    font: Annotated[list[Path] | None, typer.Option(help="More font files, for invoices.")] = None,
    ok_share: Annotated[float | None, typer.Option(help="Share without a defect (factory); default 0.8.")] = None,
) -> None:
    """Write a dataset of small synthetic invoices or factory images with exact labels."""
    from pipelines.runs.synthesize import synthesize

    numbers = {"num_train": train_images, "num_val": val_images, "seed": seed}
    synthesize(out, kind, Terminal(), **numbers, sizes=size or [], font_paths=font or [], ok_share=ok_share)


@app.command()
def train(config: ConfigFile, overrides: Overrides = None) -> None:
    """Measure the baseline, train, keep the best model; leaves a run folder."""
    from pipelines.runs.train import train as run_training

    terminal = Terminal()
    folder = run_training(configuration(config, overrides), terminal)
    terminal.note(f"run folder: {folder}")


@app.command()
def evaluate(
    config: ConfigFile,
    model: Annotated[Path | None, typer.Option(help="Run or exported folder; default: the configured weights.")] = None,
    split: Annotated[str, typer.Option(help="train or val.")] = "val",
    overrides: Overrides = None,
    json_file: JsonFile = None,
) -> None:
    """Metrics on a split: hmean by image size, or AP, classes and image rates."""
    from pipelines.runs.deliver import evaluate

    write_json(json_file, evaluate(configuration(config, overrides), model, split, Terminal()))


@app.command()
def plan(
    config: ConfigFile,
    memory: Annotated[str | None, typer.Option(help="Budget, 16GiB; default: train.memory, or what there is.")] = None,
    overrides: Overrides = None,
    json_file: JsonFile = None,
) -> None:
    """Memory by shape for training and evaluation, and the micro-batches that fit."""
    from pipelines.runs.plan import plan

    budget = [] if memory is None else [f"train.memory={memory}"]
    write_json(json_file, plan(configuration(config, [*(overrides or []), *budget]), Terminal()))


@app.command()
def verify(
    config: ConfigFile,
    float64: Annotated[bool, typer.Option("--float64", help="Compute in double precision.")] = False,
    overrides: Overrides = None,
    json_file: JsonFile = None,
) -> None:
    """Accumulated gradient against the whole batch's, on your model and data."""
    from pipelines.runs.verify import verify

    write_json(json_file, verify(configuration(config, overrides), Terminal(), float64=float64))


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    out: Annotated[Path, typer.Option("--to", help="Model folder to write.")],
    json_file: JsonFile = None,
) -> None:
    """Export the best model and check it in paddleocr."""
    from pipelines.runs.deliver import export

    write_json(json_file, export(run, out, Terminal()))


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Run or exported folder.")],
    images: Annotated[list[Path], typer.Argument(help="Image files or folders.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for predictions.json and drawings.")] = Path("predictions"),
    confidence: Annotated[float | None, typer.Option(help="Show from here on, 0 to 1; default: the model's.")] = None,
) -> None:
    """Find text or defects in images: JSON and drawings."""
    from pipelines.runs.predict import predict

    predict(model, images, out, Terminal(), confidence)


@app.command()
def report(run: Annotated[Path, typer.Argument(help="Run folder.")]) -> None:
    """One self-contained HTML page: result, curves, pictures, cost."""
    from pipelines.runs.report import report

    report(run, Terminal())


@app.command()
def doctor(json_file: JsonFile = None) -> None:
    """Look at the environment: versions, device, memory, known-bad combinations; exit code 1 if something is bad."""
    from pipelines.runs.data import examine_environment

    report = examine_environment(Terminal())
    write_json(json_file, report)
    raise typer.Exit(0 if report["ok"] else 1)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is one message and an exit code, never a traceback."""
    # paddle looks for a compiler cache on import; nothing is compiled here
    warnings.filterwarnings("ignore", message="No ccache found")
    # nor does anything here follow PyTorch's calling conventions, which paddle warns of wherever it could
    warnings.filterwarnings("ignore", message=r"\s*Non compatible API")
    # what PIL remarks on damaged headers; such files are refused or read by what they hold
    warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
    os.environ.setdefault("GLOG_minloglevel", "2")  # paddle's C++ notes; errors stay
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name that a terminal can't show is spelt out, and no reason to stop
            stream.reconfigure(errors="backslashreplace")
    try:
        with exit_on_sigterm():
            app(args=arguments, standalone_mode=True)
    except WholebatchError as fault:
        typer.echo(f"error: {fault}", err=True)
        sys.exit(fault.exit_code)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        sys.exit(130)


def run_command(name: str) -> None:
    """Entry of tools/NAME.py: the same command, its name left out."""
    main([name, *sys.argv[1:]])


if __name__ == "__main__":
    main()
