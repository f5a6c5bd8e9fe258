"""Small raw sources, written the way their tools write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.prep.formats import DEFECT_FORMATS
from pipelines.prep.raw import ClassList, RawDefects, RawImage, Unlabelled
from pipelines.records import Fault

WritePicture = Callable[..., bytes]


@pytest.fixture
def write_picture() -> WritePicture:
    """`write_picture(path, seed, size_hw)`: a noise picture encoded by its suffix; returns the bytes written."""

    def write(path: Path, seed: int = 0, size_hw: tuple[int, int] = (60, 80)) -> bytes:
        pixels = np.random.default_rng(seed).integers(0, 256, (*size_hw, 3), dtype=np.uint8)
        content = cv2.imencode(path.suffix, pixels)[1].tobytes()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return content

    return write


@pytest.fixture
def label_line() -> Callable[..., str]:
    """`label_line(path, polygon, ..., text="text")`: a PaddleOCR label line with its line end."""

    def line(path: str, *polygons: list[list[float]], text: str = "text") -> str:
        entries = [{"transcription": text, "points": points} for points in polygons]
        return f"{path}\t{json.dumps(entries, ensure_ascii=False)}\n"

    return line


@pytest.fixture
def labelled(tmp_path: Path, write_picture: WritePicture, label_line: Callable[..., str]) -> Path:
    """A folder with ten pictures of different content, two of each of five rolls, and their Label.txt."""
    source = tmp_path / "source"
    lines = []
    for seed in range(10):
        name = f"roll{seed // 2}_{seed % 2}.jpg"
        write_picture(source / name, seed)
        lines.append(label_line(name, [[10, 10], [50 + seed, 10], [50 + seed, 20], [10, 20]]))
    (source / "Label.txt").write_text("".join(lines))
    return source


@pytest.fixture
def read() -> Callable[..., tuple[dict[str, RawDefects], list[Fault], list[ClassList | Unlabelled]]]:
    """`read(format, source)`: (images by file name, faults, everything else) of a defect source."""

    def items(format: str, source: Path, images: Path | None = None):
        found = list(DEFECT_FORMATS[format](source, images))
        raws = {item.image.name: item for item in found if isinstance(item, RawImage)}
        faults = [item for item in found if isinstance(item, Fault)]
        return raws, faults, [item for item in found if isinstance(item, ClassList | Unlabelled)]

    return items
