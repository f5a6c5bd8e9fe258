"""What is written in each format comes back where it was. Run: pytest tests/unit/prep/test_round_trip.py"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from pipelines.dataset import load_defect_split, load_split
from pipelines.prep import prepare_defect, prepare_text
from pipelines.records import Record

WIDTH, HEIGHT = 160, 120
NUM_IMAGES = 6
CLASSES = ("pit", "scratch")
Box = tuple[int, int, int, int]
Boxes = dict[str, list[Box]]


@pytest.fixture
def boxes(tmp_path: Path) -> Boxes:
    """By image stem three boxes that do not touch; the pictures are in `source/images`."""
    rng = np.random.default_rng(7)
    folder = tmp_path / "source" / "images"
    folder.mkdir(parents=True)
    found: Boxes = {}
    for number in range(NUM_IMAGES):
        pixels = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        assert cv2.imwrite(str(folder / f"page_{number}.png"), pixels)
        tops = [2, 42, 82]
        lefts, widths, heights = (rng.integers(*bounds, 3).tolist() for bounds in ((1, 60), (9, 90), (5, 30)))
        sides = zip(lefts, tops, widths, heights, strict=True)
        found[f"page_{number}"] = [(left, top, left + width, top + height) for left, top, width, height in sides]
    return found


def corners(box: Box) -> list[list[int]]:
    left, top, right, bottom = box
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def write_page(root: Path, boxes: Boxes) -> None:
    for stem, found in boxes.items():
        lines = "".join(
            f'<pc:TextLine id="l{n}"><pc:Coords points="{" ".join(f"{x},{y}" for x, y in corners(box))}"/>'
            f"<pc:TextEquiv><pc:Unicode>{text(n)}</pc:Unicode></pc:TextEquiv></pc:TextLine>"
            for n, box in enumerate(found)
        ).replace("&", "&amp;")
        (root / f"{stem}.xml").write_text(
            '<?xml version="1.0"?><pc:PcGts xmlns:pc="http://schema.primaresearch.org/PAGE/gts/pagecontent/2013-07-15">'
            f'<pc:Page imageFilename="{stem}.png" imageWidth="{WIDTH}" imageHeight="{HEIGHT}"><pc:TextRegion id="r">'
            f"{lines}</pc:TextRegion></pc:Page></pc:PcGts>",
            "utf-8",
        )


def entities(found: list[Box]) -> list[dict[str, object]]:
    words = [{"box": list(box), "text": text(n)} for n, box in enumerate(found)]
    return [{"box": [0, 0, WIDTH, HEIGHT], "text": "", "label": "other", "words": words, "linking": [], "id": 0}]


def write_funsd(root: Path, boxes: Boxes) -> None:
    (root / "annotations").mkdir()
    for stem, found in boxes.items():
        (root / "annotations" / f"{stem}.json").write_text(json.dumps({"form": entities(found)}))


def write_xfund(root: Path, boxes: Boxes) -> None:
    documents = [
        {"id": stem, "document": entities(found), "img": {"fname": f"{stem}.png", "width": WIDTH, "height": HEIGHT}}
        for stem, found in boxes.items()
    ]
    (root / "de.train.json").write_text(json.dumps({"lang": "de", "version": "0.1", "documents": documents}))


def write_icdar2013(root: Path, boxes: Boxes) -> None:
    for stem, found in boxes.items():
        lines = (f'{" ".join(map(str, box))} "{text(n)}"\r\n' for n, box in enumerate(found))
        (root / f"gt_{stem}.txt").write_text("".join(lines), "utf-8")


def write_icdar2015(root: Path, boxes: Boxes, name: str = "gt_{}.txt") -> None:
    for stem, found in boxes.items():
        flat = (",".join(str(value) for point in corners(box) for value in point) for box in found)
        content = "".join(f"{line},{text(n)}\r\n" for n, line in enumerate(flat))
        (root / name.format(stem)).write_bytes(b"\xef\xbb\xbf" + content.encode())


def write_sroie(root: Path, boxes: Boxes) -> None:
    (root / "images").rename(root / "img")
    (root / "box").mkdir()
    write_icdar2015(root / "box", boxes, "{}.csv")


def write_ppocrlabel(root: Path, boxes: Boxes) -> None:
    folder = root / "images"
    entries = {
        stem: [{"transcription": text(n), "points": corners(box), "difficult": False} for n, box in enumerate(found)]
        for stem, found in boxes.items()
    }
    lines = (f"images/{stem}.png\t{json.dumps(found, ensure_ascii=False)}\n" for stem, found in entries.items())
    (folder / "Label.txt").write_text("".join(lines), "utf-8")
    (folder / "fileState.txt").write_text("".join(f"/home/x/images/{stem}.png\t1\n" for stem in boxes), "utf-8")


def text(number: int) -> str:
    return ("Total, net", "3,50 & more", "发票")[number]


WRITE_TEXT: dict[str, tuple[str, Callable[[Path, Boxes], None]]] = {
    "page": ("", write_page),
    "funsd": ("", write_funsd),
    "xfund": ("", write_xfund),
    "icdar2013": ("", write_icdar2013),
    "icdar2015": ("", write_icdar2015),
    "sroie": ("", write_sroie),
    "paddleocr": ("images", write_ppocrlabel),
}


Load = Callable[[Path, str], list[Record]]


def prepared(folder: Path, load: Load = load_split) -> dict[str, Record]:
    return {Path(record.path).stem: record for split in ("train", "val") for record in load(folder, split)}


@pytest.mark.parametrize("format", WRITE_TEXT)
def test_text_regions_come_back_where_they_were_with_what_they_say(tmp_path: Path, boxes: Boxes, format: str) -> None:
    below, write = WRITE_TEXT[format]
    write(tmp_path / "source", boxes)
    report = prepare_text(tmp_path / "source" / below, "auto", tmp_path / "out", val_share=0.3)
    assert report.format == format and not report.faults
    found = prepared(tmp_path / "out")
    assert found.keys() == boxes.keys()
    for stem, record in found.items():
        regions = record.annotation.regions
        assert [region.points_px.tolist() for region in regions] == [corners(box) for box in boxes[stem]]
        assert [region.transcription for region in regions] == [text(n) for n in range(3)]


def write_yolo(root: Path, boxes: Boxes, *, as_polygon: bool = False) -> None:
    (root / "labels").mkdir()
    for stem, found in boxes.items():
        lines = []
        for number, (left, top, right, bottom) in enumerate(found):
            box = [
                (left + right) / 2 / WIDTH,
                (top + bottom) / 2 / HEIGHT,
                (right - left) / WIDTH,
                (bottom - top) / HEIGHT,
            ]
            flat = [share for x, y in corners((left, top, right, bottom)) for share in (x / WIDTH, y / HEIGHT)]
            lines.append(" ".join([str(number % 2), *(f"{share:.6f}" for share in (flat if as_polygon else box))]))
        (root / "labels" / f"{stem}.txt").write_text("\n".join(lines) + "\n")
    (root / "data.yaml").write_text(f"nc: 2\nnames: [{', '.join(CLASSES)}]\n")


def write_masks(root: Path, boxes: Boxes) -> None:
    (root / "masks").mkdir()
    for stem, found in boxes.items():
        mask = np.zeros((HEIGHT, WIDTH), np.uint8)
        for number, (left, top, right, bottom) in enumerate(found):
            mask[top:bottom, left:right] = number % 2 + 1
        assert cv2.imwrite(str(root / "masks" / f"{stem}.png"), mask)
    (root / "classes.txt").write_text("\n".join(CLASSES))


def write_polygons(root: Path, boxes: Boxes) -> None:
    write_yolo(root, boxes, as_polygon=True)


@pytest.mark.parametrize(("format", "write"), [("yolo", write_yolo), ("yolo", write_polygons), ("masks", write_masks)])
def test_defects_come_back_where_they_were_with_their_class(
    tmp_path: Path, boxes: Boxes, format: str, write: Callable[[Path, Boxes], None]
) -> None:
    write(tmp_path / "source", boxes)
    report = prepare_defect(tmp_path / "source", "auto", tmp_path / "out", val_share=0.3)
    assert report.format == format and report.classes == CLASSES and not report.faults
    found = prepared(tmp_path / "out", load_defect_split)
    assert found.keys() == boxes.keys()
    for stem, record in found.items():
        annotation = record.annotation
        pairs = zip(annotation.class_ids.tolist(), annotation.boxes_xyxy_px.tolist(), strict=True)
        expected = sorted((number % 2, list(map(float, box))) for number, box in enumerate(boxes[stem]))
        for (class_id, box), (expected_id, expected_box) in zip(sorted(pairs), expected, strict=True):
            assert class_id == expected_id and box == pytest.approx(expected_box, abs=0.011)
