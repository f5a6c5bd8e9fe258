"""Whatever happens to an image file, it is either read or refused with a reason, and everyone sees the same picture.

pytest tests/faults/test_mutated_images.py tries 300 files; MUTATED_IMAGES=2000 as many more as you like.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from PIL import Image

from pipelines.dataset import image_size_hw, read_image
from pipelines.errors import DataError
from pipelines.prep.images import ImageFacts, examine_image, upright_bytes
from tests.faults.label_mutations import mutated

SIZE_WH = (37, 23)
NUM_EACH = int(os.environ.get("MUTATED_IMAGES", "300")) // 8


def encoded(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (*SIZE_WH[::-1], 3), dtype=np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(content, kind, **options)
    return content.getvalue()


def turned() -> bytes:
    exif = Image.Exif()
    exif[274] = 6
    return encoded("JPEG", exif=exif)


SOURCES: dict[str, Callable[[], bytes]] = {
    "photo.jpg": lambda: encoded("JPEG", quality=90),
    "progressive.jpg": lambda: encoded("JPEG", progressive=True),
    "turned.jpg": turned,
    "scan.png": lambda: encoded("PNG"),
    "palette.png": lambda: encoded("PNG", "P"),
    "fax.tif": lambda: encoded("TIFF", "1", compression="group4"),
    "plain.bmp": lambda: encoded("BMP"),
    "web.webp": lambda: encoded("WEBP", lossless=True),
}


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # what it says of damaged headers, and reads on
@pytest.mark.parametrize("name", SOURCES)
def test_a_mutated_image_is_read_or_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    content = SOURCES[name]()

    @seed(1)
    @settings(max_examples=NUM_EACH, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(mutated(content))
    def attempt(changed: bytes) -> None:
        path.write_bytes(changed)
        facts = examine_image(path)
        if not facts.fault:
            must_be_readable(path, facts)
        with suppress(DataError):
            image_size_hw(path)

    attempt()


def must_be_readable(path: Path, facts: ImageFacts) -> None:
    """What `prepare` accepts trains: as it is, or as `prepare` converts it, in the size that was found."""
    if facts.conversion:
        converted = path.with_name(f"converted_{path.name}{facts.suffix}")
        converted.write_bytes(upright_bytes(path))
        path = converted
    assert read_image(path).shape == (*facts.size_hw, 3)


@pytest.mark.parametrize("name", SOURCES)
def test_control_the_untouched_image_is_read_whole(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(SOURCES[name]())
    facts = examine_image(path)
    assert not facts.fault
    assert facts.size_hw == (SIZE_WH if name == "turned.jpg" else SIZE_WH[::-1])


def test_control_a_picture_cut_in_half_is_refused_by_both(tmp_path: Path) -> None:
    content = SOURCES["photo.jpg"]()
    (tmp_path / "photo.jpg").write_bytes(content[: len(content) // 2])
    assert "cut off" in examine_image(tmp_path / "photo.jpg").fault
    with pytest.raises(DataError, match="cut off"):
        read_image(tmp_path / "photo.jpg")
