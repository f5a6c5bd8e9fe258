"""What the pixels of a mask mean, whatever it was saved as. Run: pytest tests/unit/prep/test_mask_pixels.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipelines.prep.masks import read_masks
from pipelines.prep.raw import ClassList, RawImage
from pipelines.prep.recognise import recognise
from pipelines.records import Fault

LEFT, RIGHT = (4, 6, 20, 30), (40, 10, 60, 50)
LABELME_LIST = "__ignore__\n_background_\npit\nscratch\n"


def pixels(left: int, right: int, dtype: type = np.uint8) -> np.ndarray:
    """A mask (60, 80) with two spots of these values."""
    values = np.zeros((60, 80), dtype)
    for (x1, y1, x2, y2), value in ((LEFT, left), (RIGHT, right)):
        values[y1:y2, x1:x2] = value
    return values


def palette(left: int, right: int, colours: dict[int, tuple[int, int, int]]) -> Image.Image:
    image = Image.fromarray(pixels(left, right), "P")
    image.putpalette([channel for place in range(256) for channel in colours.get(place, (0, 0, 0))])
    return image


@pytest.fixture
def source(tmp_path, write_picture) -> Path:
    write_picture(tmp_path / "images" / "a.jpg")
    (tmp_path / "masks").mkdir()
    return tmp_path


def read(source: Path) -> tuple[list[tuple[str, tuple[int, ...]]], str, list[Fault]]:
    """(class and box of every spot, why the image is left out, faults)."""
    items = list(read_masks(source, None))
    (image,) = (item for item in items if isinstance(item, RawImage))
    found = [(box.class_name, tuple(box.corners)) for box in image.regions]
    return found, image.fault, [item for item in items if isinstance(item, Fault)]


VOC_COLOURS = {1: (128, 0, 0), 2: (0, 128, 0), 8: (64, 0, 0)}


@pytest.mark.parametrize(
    ("names", "saved", "classes"),
    [
        ("pit\nscratch\n", Image.fromarray(pixels(1, 2)), ["pit", "scratch"]),
        ("pit\nscratch\n", palette(2, 1, VOC_COLOURS), ["pit", "scratch"]),
        (LABELME_LIST, palette(1, 2, VOC_COLOURS), ["pit", "scratch"]),
        ("background\r\npit\r\nscratch\r\n", Image.fromarray(pixels(1, 2, np.uint16)), ["pit", "scratch"]),
        ("pit\n", Image.fromarray(pixels(255, 255)), ["pit", "pit"]),
        ("pit\n", Image.fromarray(pixels(1, 1)), ["pit", "pit"]),
    ],
)
def test_a_list_of_classes_names_the_values(source, names, saved, classes) -> None:
    (source / "classes.txt").write_text(names)
    saved.save(source / "masks" / "a.png")
    found, fault, faults = read(source)
    assert sorted(name for name, _ in found) == classes and {box for _, box in found} == {LEFT, RIGHT}
    assert not fault and not faults
    assert next(item.names for item in read_masks(source, None) if isinstance(item, ClassList))[0] == "pit"


def test_each_spot_has_the_class_of_its_own_value(source) -> None:
    (source / "classes.txt").write_text("pit\nscratch\n")
    Image.fromarray(pixels(2, 1)).save(source / "masks" / "a.png")
    assert read(source)[0] == [("pit", RIGHT), ("scratch", LEFT)]


def test_a_white_border_beside_classes_is_nobodys(source) -> None:
    (source / "classes.txt").write_text("pit\nscratch\n")
    values = pixels(1, 2)
    values[50:52, 40:60] = 255
    Image.fromarray(values).save(source / "masks" / "a.png")
    assert read(source)[0] == [("pit", LEFT), ("scratch", RIGHT)]


@pytest.mark.parametrize(
    ("names", "saved", "reason"),
    [
        ("pit\n", Image.fromarray(pixels(1, 2)), "value(s) 2 have no name"),
        ("pit\nscratch\n", Image.fromarray(pixels(255, 255)), "value(s) 255 have no name"),
        ("", Image.fromarray(pixels(1, 2).astype(np.float32)), "can't be decoded"),
    ],
)
def test_values_that_nothing_names_leave_the_image_out(source, names, saved, reason) -> None:
    if names:
        (source / "classes.txt").write_text(names)
    saved.save(source / "masks" / ("a.tif" if saved.mode == "F" else "a.png"))
    found, fault, _ = read(source)
    assert not found and reason in fault


@pytest.mark.parametrize(
    "saved",
    [
        Image.fromarray(pixels(255, 255)),
        Image.fromarray(pixels(255, 255)).convert("1"),
        Image.fromarray(pixels(3, 3)),
        Image.fromarray(pixels(3, 7, np.uint16)),  # 8 bits would show black
        palette(1, 8, VOC_COLOURS),  # as grey, one is dark beside the other
        Image.fromarray(np.dstack([pixels(0, 64), pixels(200, 0), pixels(0, 0)])),
    ],
    ids=["white", "1-bit", "dark", "16-bit", "palette", "colour"],
)
def test_without_names_whatever_is_no_black_is_a_defect(source, saved) -> None:
    saved.save(source / "masks" / "a.png")
    found, fault, faults = read(source)
    assert sorted(found) == [("defect", LEFT), ("defect", RIGHT)] and not fault and not faults


def test_blurred_edges_and_the_noise_of_a_jpeg_are_no_defects(source) -> None:
    values = pixels(255, 255)
    values[30:32, 4:20] = 90
    Image.fromarray(values).save(source / "masks" / "a.jpg", quality=80)
    found = read(source)[0]
    assert len(found) == 2
    assert np.abs(np.array([box for _, box in sorted(found)]) - (LEFT, RIGHT)).max() <= 1


def test_touching_objects_of_a_16_bit_mask_stay_two(source) -> None:
    values = pixels(5, 0, np.uint16)
    values[6:30, 20:30] = 6
    Image.fromarray(values).save(source / "masks" / "a.png")
    assert [box for _, box in read(source)[0]] == [LEFT, (20, 6, 30, 30)]
    Image.fromarray((values > 0).astype(np.uint8) * 255).save(source / "masks" / "a.png")
    assert [box for _, box in read(source)[0]] == [(4, 6, 30, 30)]  # control: as black and white they are one


def test_a_16_bit_picture_of_shades_is_no_mask(source) -> None:
    Image.fromarray(np.arange(4800, dtype=np.uint16).reshape(60, 80)).save(source / "masks" / "a.png")
    assert "4799 different values" in read(source)[1]


def test_a_black_mask_is_an_ok_image_and_folders_of_masks_are_recognised(source) -> None:
    Image.fromarray(pixels(0, 0)).save(source / "masks" / "a.png")
    assert read(source) == ([], "", []) and recognise(source, "defect") == "masks"
