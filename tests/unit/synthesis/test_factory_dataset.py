"""A written dataset loads without a fault, with as many OK images as asked for and every class in every split.

Run: pytest tests/unit/synthesis/test_factory_dataset.py
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from pipelines.dataset import defect_classes, load_defect_split, read_image
from pipelines.errors import UsageError
from pipelines.synthesis.factory_dataset import owed_classes, write_factory_images
from pipelines.synthesis.factory_images import CLASSES

SIZE_HW = (128, 128)


def write(out: Path, num_train: int = 20, num_val: int = 10, seed: int = 5, **options) -> Path:
    options = {"sizes_hw": [SIZE_HW], **options}
    write_factory_images(out, num_train=num_train, num_val=num_val, seed=seed, **options)
    return out


def digests(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("factory") / "images")


def test_dataset_loads_without_a_fault_and_its_boxes_lie_in_its_images(root: Path) -> None:
    assert defect_classes(root) == CLASSES
    for split, count in (("train", 20), ("val", 10)):
        records = load_defect_split(root, split)
        assert [record.path for record in records] == [f"images/{split}_{i:04d}.jpg" for i in range(count)]
        for record in records:
            assert read_image(root / record.path).shape == (*SIZE_HW, 3)
            boxes = record.annotation.boxes_xyxy_px
            assert (boxes >= 0).all() and (boxes <= 128).all()


def test_ok_images_are_counted_exactly_and_every_class_is_in_both_splits(root: Path) -> None:
    for split, num_ok in (("train", 16), ("val", 8)):  # four fifths of 20 and of 10
        annotations = [record.annotation for record in load_defect_split(root, split)]
        assert sum(annotation.is_ok for annotation in annotations) == num_ok
        assert {int(class_id) for each in annotations for class_id in each.class_ids} == set(range(len(CLASSES)))


@pytest.mark.parametrize(
    ("num_images", "ok_share", "num_ok"),
    [(10, 0.8, 8), (7, 0.8, 6), (13, 0.5, 6), (15, 0.5, 8), (1, 0.0, 0), (100, 0.973, 97)],
)
def test_the_number_of_ok_images_is_the_rounded_share(num_images: int, ok_share: float, num_ok: int) -> None:
    owed = owed_classes(num_images, ok_share)
    assert len(owed) == num_images and sum(each is None for each in owed) == num_ok


def test_few_defective_images_share_the_classes_out() -> None:
    assert owed_classes(5, 0.8) == [None, None, (0, 1, 2, 3), None, None]
    assert [each for each in owed_classes(10, 0.8) if each is not None] == [(0, 2), (1, 3)]
    assert [each for each in owed_classes(30, 0.8) if each is not None] == [(0,), (1,), (2,), (3,), (), ()]


def test_for_any_count_and_share_each_class_is_owed_once() -> None:
    for num_images in range(1, 41):
        for ok_share in (0.0, 0.3, 0.5, 0.8, 0.95):
            owed = owed_classes(num_images, ok_share)
            assert sum(each is None for each in owed) == round(ok_share * num_images)
            if round(ok_share * num_images) < num_images:
                assert sorted(sum((each for each in owed if each is not None), ())) == [0, 1, 2, 3]


def test_index_tells_what_was_drawn(root: Path) -> None:
    index = yaml.safe_load((root / "dataset.yml").read_text(encoding="utf-8"))
    assert index["task"] == "defect_detection" and index["classes"] == list(CLASSES)
    assert index["source"] == {"format": "synthetic factory images", "seed": 5, "ok_share": 0.8}
    records = load_defect_split(root, "train")
    per_class = Counter(CLASSES[class_id] for record in records for class_id in record.annotation.class_ids)
    counts = index["counts"]["train"]
    assert counts["per_class"] == {name: per_class[name] for name in CLASSES}
    assert (counts["images"], counts["ok_images"], counts["defects"]) == (20, 16, sum(per_class.values()))
    found = digests(root)
    assert all(entry["sha256"] == found[path] for path, entry in index["images"].items())


def test_classes_are_imbalanced_and_dents_are_rare(tmp_path: Path) -> None:
    root = write(tmp_path / "many", num_train=120, num_val=1, ok_share=0.0)
    class_ids = np.concatenate([record.annotation.class_ids for record in load_defect_split(root, "train")])
    shares = np.bincount(class_ids, minlength=4) / len(class_ids)
    assert np.argmax(shares) == CLASSES.index("scratch") and 0.02 < shares[CLASSES.index("dent")] < 0.15


def test_same_seed_same_bytes_other_seed_other_bytes(root: Path, tmp_path: Path) -> None:
    assert digests(write(tmp_path / "again")) == digests(root)
    other = digests(write(tmp_path / "other", num_train=5, num_val=5, seed=6))
    assert other["images/train_0000.jpg"] != digests(root)["images/train_0000.jpg"]


def test_no_two_images_are_the_same(root: Path) -> None:
    assert len({digest for name, digest in digests(root).items() if name.startswith("images/")}) == 30


def test_sizes_are_mixed_among_ok_and_defective_images(tmp_path: Path) -> None:
    # taken by turns, five sizes and every fifth image defective would give defects to one size alone
    sizes_hw = [(128, 128 + 32 * i) for i in range(5)]
    records = load_defect_split(write(tmp_path / "sizes", num_train=60, sizes_hw=sizes_hw), "train")
    assert {record.size_hw for record in records} == set(sizes_hw)
    assert len({record.size_hw for record in records if not record.annotation.is_ok}) >= 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_val": 0}, "num_val of at least 1"),
        ({"ok_share": 1.0}, "all of 10 images are OK and nothing can be learned"),
        ({"num_val": 2}, "all of 2 images are OK"),
        ({"ok_share": 1.2}, "ok_share must lie in 0 to 1, but got 1.2"),
        ({"ok_share": float("nan")}, "ok_share must lie in 0 to 1, but got nan"),
        ({"sizes_hw": [(256, 100)]}, "at least 128 px on each side"),
        ({"sizes_hw": []}, "a size"),
    ],
)
def test_numbers_that_make_no_dataset_are_a_usage_error(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        write(tmp_path / "factory", **changes)
    assert list(tmp_path.iterdir()) == []
