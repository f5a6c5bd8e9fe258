"""A written dataset trains as it is: it loads without a fault, and the same seed writes the same bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import yaml

from pipelines.dataset import load_split, read_image
from pipelines.errors import DataError, UsageError
from pipelines.synthesis.fonts import find_fonts
from pipelines.synthesis.invoice_dataset import write_invoices
from pipelines.synthesis.invoices import InvoiceSpec, draw_invoice

SIZE_HW = (256, 256)


def write(out: Path, num_train: int = 3, num_val: int = 2, seed: int = 5, **options) -> Path:
    write_invoices(out, num_train=num_train, num_val=num_val, seed=seed, sizes_hw=[SIZE_HW], **options)
    return out


def digests(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_dataset_loads_without_a_fault_and_holds_what_was_drawn(tmp_path: Path) -> None:
    root = write(tmp_path / "invoices")
    records = load_split(root, "train")
    assert [record.path for record in records] == [f"images/train_{i:04d}.jpg" for i in range(3)]
    assert len(load_split(root, "val")) == 2
    _, annotation = draw_invoice(np.random.default_rng([5, 0, 1]), InvoiceSpec(SIZE_HW), find_fonts())
    for written, drawn in zip(records[1].annotation.regions, annotation.regions, strict=True):
        np.testing.assert_allclose(written.points_px, drawn.points_px, atol=0.006)  # two decimals in the file
        assert written.is_ignored == drawn.is_ignored
    assert read_image(root / records[0].path).shape == (*SIZE_HW, 3)


def test_same_seed_same_bytes_other_seed_other_bytes(tmp_path: Path) -> None:
    first, again, other = write(tmp_path / "a"), write(tmp_path / "b"), write(tmp_path / "c", seed=6)
    assert digests(first) == digests(again)
    assert digests(first)["images/train_0000.jpg"] != digests(other)["images/train_0000.jpg"]


def test_asking_for_more_images_keeps_the_first_ones(tmp_path: Path) -> None:
    few, many = digests(write(tmp_path / "few")), digests(write(tmp_path / "many", num_train=5))
    assert {name: few[name] for name in few if name.startswith("images/")}.items() <= many.items()


def test_train_and_val_share_no_image(tmp_path: Path) -> None:
    found = digests(write(tmp_path / "invoices"))
    assert len({digest for name, digest in found.items() if name.startswith("images/")}) == 5


def test_index_tells_size_group_and_hash_of_every_image(tmp_path: Path) -> None:
    root = write(tmp_path / "invoices")
    index = yaml.safe_load((root / "dataset.yml").read_text(encoding="utf-8"))
    regions = [region for record in load_split(root, "train") for region in record.annotation.regions]
    counts = index["counts"]["train"]
    assert index["task"] == "text_detection" and counts["images"] == 3
    assert counts["regions"] == len(regions) and counts["ignored"] == sum(region.is_ignored for region in regions)
    for path, entry in index["images"].items():
        assert entry["sha256"] == digests(root)[path] and tuple(entry["size_hw"]) == SIZE_HW and entry["group"]


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match="exists already and is not empty"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (write(tmp_path / "empty") / "train.txt").is_file()


def test_a_failure_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pipelines.synthesis.drawn_dataset._index_text", full_disk)
    with pytest.raises(DataError, match="No space left on device; nothing was left there"):
        write(tmp_path / "invoices")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("changes", [{"num_train": 0}, {"num_val": 0}, {"seed": -1}])
def test_counts_that_make_no_dataset_are_a_usage_error(tmp_path: Path, changes: dict) -> None:
    with pytest.raises(UsageError, match="at least 1, a size and a seed of at least 0"):
        write(tmp_path / "invoices", **changes)
