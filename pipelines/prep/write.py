"""The files of a prepared dataset."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.dataset.index import INDEX_NAME, format_index
from pipelines.prep.executors import JobPool
from pipelines.prep.images import upright_bytes
from pipelines.prep.prepared import PreparedImage
from pipelines.prep.work_folder import WorkFolder
from pipelines.records import Fault

FAULTS_NAME = "faults.jsonl"


@dataclass(frozen=True)
class _Copy:
    """One image to write: all that a worker, in whatever process, needs to know."""

    source: Path
    target: Path
    source_sha256: str
    is_converted: bool
    written_sha256: str  # of an earlier run, "" if there was none


def write_dataset(
    work: WorkFolder,
    header: Mapping[str, Any],
    images: Sequence[PreparedImage],
    labels: Mapping[str, str],
    faults: Sequence[Fault],
    pool: JobPool,
) -> None:
    """Write images, label files, `dataset.yml` and `faults.jsonl` into a work folder.

    Args:
        work: where; images that an earlier run wrote there, and nobody changed since, stay.
        header: the part of `dataset.yml` above the images.
        images: to copy or convert.
        labels: text of every label file by its name.
        faults: one a line of `faults.jsonl`.
        pool: copies and converts.

    Raises:
        OSError: the disk refuses.
        WorkerLost: a worker died.
    """
    folder = work.dataset
    work.keep_only({image.record.path for image in images})
    for parent in sorted({(folder / image.record.path).parent for image in images}):
        parent.mkdir(parents=True, exist_ok=True)
    entries = dict(
        _index_entry(image, sha256) for image, sha256 in zip(images, _hashes(work, images, pool), strict=True)
    )
    for name, text in labels.items():
        (folder / name).write_bytes(text.encode())
    (folder / INDEX_NAME).write_bytes(format_index(header, entries).encode())
    lines = [json.dumps(asdict(fault), ensure_ascii=False) + "\n" for fault in faults]
    (folder / FAULTS_NAME).write_bytes("".join(lines).encode("utf-8", "replace"))


def _hashes(work: WorkFolder, images: Sequence[PreparedImage], pool: JobPool) -> list[str]:
    """Write all images; their hashes, in order."""
    copies = [
        _Copy(
            Path(image.raw.image).absolute(),
            work.dataset / image.record.path,
            image.facts.sha256,
            bool(image.facts.conversion),
            work.journal.written(image.record.path, image.facts.sha256),
        )
        for image in images
    ]
    hashes = []
    for image, copy, sha256 in zip(images, copies, pool.results(_write, copies, lambda copy: copy.source), strict=True):
        if sha256 != copy.written_sha256:
            work.journal.add_written(image.record.path, image.facts.sha256, sha256)
        hashes.append(sha256)
    return hashes


def _write(copy: _Copy) -> str:
    """Copy or convert one image, unless it is there; the sha256 of what was written."""
    if copy.written_sha256 and _is_there(copy):
        return copy.written_sha256
    if not copy.is_converted:
        shutil.copyfile(copy.source, copy.target)
        return copy.source_sha256
    content = upright_bytes(copy.source)
    copy.target.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def _is_there(copy: _Copy) -> bool:
    return copy.target.is_file() and hashlib.sha256(copy.target.read_bytes()).hexdigest() == copy.written_sha256


def _index_entry(image: PreparedImage, sha256: str) -> tuple[str, dict[str, Any]]:
    entry: dict[str, Any] = {
        "split": image.split,
        "group": image.record.group,
        "size_hw": list(image.record.size_hw),
        "sha256": sha256,
        "source": image.raw.name,
    }
    if image.facts.conversion:
        entry |= {"converted": image.facts.conversion, "source_sha256": image.facts.sha256}
    return image.record.path, entry
