"""A prepared dataset written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipelines.dataset import new_dataset_folder
from pipelines.dataset.index import INDEX_NAME, format_index
from pipelines.prep.images import upright_bytes
from pipelines.prep.prepared import PreparedImage
from pipelines.records import Fault

FAULTS_NAME = "faults.jsonl"


def write_dataset(
    out: Path,
    header: Mapping[str, Any],
    images: Sequence[PreparedImage],
    labels: Mapping[str, str],
    faults: Sequence[Fault],
    workers: int,
) -> None:
    """Write images, label files, `dataset.yml` and `faults.jsonl` beside `out`, then rename: all or nothing.

    Args:
        out: new dataset folder.
        header: the part of `dataset.yml` above the images.
        images: to copy or convert.
        labels: text of every label file by its name.
        faults: one a line of `faults.jsonl`.
        workers: threads that copy and convert.

    Raises:
        UsageError: `out` is not empty.
        DataError: the disk refuses.
    """
    with new_dataset_folder(out) as folder:
        for parent in sorted({(folder / image.record.path).parent for image in images}):
            parent.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(workers) as pool:
            hashes = list(pool.map(lambda image: _write_image(folder, image), images))
        for name, text in labels.items():
            (folder / name).write_bytes(text.encode())
        entries = dict(_index_entry(image, sha256) for image, sha256 in zip(images, hashes, strict=True))
        (folder / INDEX_NAME).write_bytes(format_index(header, entries).encode())
        lines = [json.dumps(asdict(fault), ensure_ascii=False) + "\n" for fault in faults]
        (folder / FAULTS_NAME).write_bytes("".join(lines).encode("utf-8", "replace"))


def _write_image(folder: Path, image: PreparedImage) -> str:
    """Copy or convert one image; the sha256 of what was written."""
    target = folder / image.record.path
    if not image.facts.conversion:
        shutil.copyfile(image.raw.image, target)
        return image.facts.sha256
    content = upright_bytes(image.raw.image)
    target.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


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
