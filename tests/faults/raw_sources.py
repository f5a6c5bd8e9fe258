"""A small source in every format that `prepare` reads, written the way its tool writes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

WriteSource = Callable[[Path], None]
NUM_IMAGES = 4
WIDTH, HEIGHT = 32, 24


def pictures(folder: Path, suffix: str = ".png") -> list[str]:
    """Names of four tiny pictures of different content, written to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"shot_{number}{suffix}" for number in range(NUM_IMAGES)]
    for seed, name in enumerate(names):
        pixels = np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        (folder / name).write_bytes(cv2.imencode(suffix, pixels)[1].tobytes())
    return names


def _quad(number: int) -> list[list[int]]:
    left, top = 2 + number, 3
    return [[left, top], [left + 14, top], [left + 14, top + 9], [left, top + 9]]


def _paddleocr(root: Path) -> None:
    """As PPOCRLabel leaves an image folder: paths start with its name, confirmed images are listed."""
    lines, states = [], []
    for number, name in enumerate(pictures(root)):
        entries = [
            {"transcription": "Total 3,50", "points": _quad(number), "difficult": False, "key_cls": "None"},
            {"transcription": "###", "points": _quad(9), "difficult": True, "key_cls": "None"},
        ]
        lines.append(f"{root.name}/{name}\t{json.dumps(entries)}\n")
        states.append(f"C:\\scans\\{root.name}\\{name}\t1\n")
    (root / "Label.txt").write_text("".join(lines), encoding="utf-8")
    (root / "fileState.txt").write_text("".join(states), encoding="utf-8")
    (root / "Cache.cach").write_text("".join(reversed(lines)), encoding="utf-8")
    (root / "rec_gt.txt").write_text("crop_img/shot_0_crop_0.jpg\tTotal 3,50\n", encoding="utf-8")


def _corner_files(root: Path, labels: str, prefix: str) -> None:
    (root / labels).mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(pictures(root / ("img" if labels == "box" else "."))):
        flat = ",".join(str(value) for point in _quad(number) for value in point)
        (root / labels / f"{prefix}{Path(name).stem}.txt").write_text(f"{flat},Total, net\n", encoding="utf-8")


def _sroie(root: Path) -> None:
    _corner_files(root, "box", "")


def _icdar2015(root: Path) -> None:
    _corner_files(root, ".", "gt_")


def _icdar2013(root: Path) -> None:
    for number, name in enumerate(pictures(root)):
        (left, top), _, (right, bottom), _ = _quad(number)
        text = f'{left} {top} {right} {bottom} "Total"\n{left + 4}, {top}, {right + 4}, {bottom}, "3,50"\n'
        (root / f"gt_{Path(name).stem}.txt").write_text(text, encoding="utf-8")


def _coco(root: Path) -> None:
    names = pictures(root)
    images = [{"id": n + 1, "file_name": name, "width": WIDTH, "height": HEIGHT} for n, name in enumerate(names)]
    boxes = [
        {"id": n + 1, "image_id": n + 1, "category_id": n % 2 + 1, "bbox": [2 + n, 3, 14, 9], "area": 126, "iscrowd": 0}
        for n in range(NUM_IMAGES)
    ]
    categories = [{"id": 1, "name": "pit"}, {"id": 2, "name": "scratch"}]
    content = {"images": images, "annotations": boxes, "categories": categories}
    (root / "annotations.json").write_text(json.dumps(content), encoding="utf-8")


def _labelme(root: Path) -> None:
    for number, name in enumerate(pictures(root)):
        shapes = [{"label": "pit", "points": _quad(number), "group_id": None, "shape_type": "polygon", "flags": {}}]
        content = {
            "version": "5.4.1",
            "flags": {},
            "shapes": shapes,
            "imagePath": name,
            "imageData": None,
            "imageHeight": HEIGHT,
            "imageWidth": WIDTH,
        }
        (root / name).with_suffix(".json").write_text(json.dumps(content), encoding="utf-8")


def _voc(root: Path) -> None:
    (root / "Annotations").mkdir(parents=True)
    for number, name in enumerate(pictures(root / "JPEGImages", ".jpg")):
        (left, top), _, (right, bottom), _ = _quad(number)
        text = (
            f"<annotation><folder>JPEGImages</folder><filename>{name}</filename><size><width>{WIDTH}</width>"
            f"<height>{HEIGHT}</height><depth>3</depth></size><object><name>pit</name><difficult>0</difficult><bndbox>"
            f"<xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object></annotation>"
        )
        (root / "Annotations" / f"{Path(name).stem}.xml").write_text(text, encoding="utf-8")


def _deeppcb(root: Path) -> None:
    names = pictures(root, ".jpg")
    for number, listing in enumerate(("trainval.txt", "test.txt")):
        board = root / f"group{number}" / f"{number}"
        labels = board.with_name(f"{number}_not")
        board.mkdir(parents=True)
        labels.mkdir()
        for name, kind in zip(names[2 * number :], ("test", "temp"), strict=False):
            (root / name).rename(board / f"{number}00_{kind}.jpg")
        (labels / f"{number}00.txt").write_text(f"{2 + number} 3 {16 + number} 12 {number + 1}\n", encoding="utf-8")
        pair = [path.relative_to(root).as_posix() for path in (board / f"{number}00.jpg", labels / f"{number}00.txt")]
        (root / listing).write_text(" ".join(pair) + "\n", encoding="utf-8")


def _page(root: Path) -> None:
    for number, name in enumerate(pictures(root)):
        points = " ".join(f"{x},{y}" for x, y in _quad(number))
        text = (
            '<PcGts xmlns="http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15"><Page imageFilename="'
            f'{name}" imageWidth="{WIDTH}" imageHeight="{HEIGHT}"><TextRegion id="r"><TextLine id="l"><Coords points="'
            f'{points}"/><TextEquiv><Unicode>Total</Unicode></TextEquiv></TextLine></TextRegion></Page></PcGts>'
        )
        (root / name).with_suffix(".xml").write_text(text, encoding="utf-8")


def _entities(number: int) -> list[dict[str, object]]:
    left, top = _quad(number)[0]
    word = {"box": [left, top, left + 14, top + 9], "text": "Total"}
    return [{**word, "label": "question", "words": [word], "linking": [], "id": 0}]


def _funsd(root: Path) -> None:
    (root / "annotations").mkdir(parents=True)
    for number, name in enumerate(pictures(root / "images")):
        content = json.dumps({"form": _entities(number)})
        (root / "annotations" / f"{Path(name).stem}.json").write_text(content, encoding="utf-8")


def _xfund(root: Path) -> None:
    documents = [
        {"id": name, "document": _entities(number), "img": {"fname": name, "width": WIDTH, "height": HEIGHT}}
        for number, name in enumerate(pictures(root))
    ]
    (root / "zh.json").write_text(json.dumps({"lang": "zh", "documents": documents}), encoding="utf-8")


def _yolo(root: Path) -> None:
    (root / "labels").mkdir(parents=True)
    for number, name in enumerate(pictures(root / "images")):
        (left, top), _, (right, bottom), _ = _quad(number)
        shares = ((left + right) / 2 / WIDTH, (top + bottom) / 2 / HEIGHT, 14 / WIDTH, 9 / HEIGHT)
        line = " ".join(["1", *(f"{share:.5f}" for share in shares)])
        (root / "labels" / f"{Path(name).stem}.txt").write_text(f"{line}\n", encoding="utf-8")
    (root / "data.yaml").write_text("names: [pit, scratch]\n", encoding="utf-8")


def _cvat(root: Path) -> None:
    images = []
    for number, name in enumerate(pictures(root / "images")):
        (left, top), _, (right, bottom), _ = _quad(number)
        points = ";".join(f"{x}.00,{y}.00" for x, y in _quad(9))
        images.append(
            f'<image id="{number}" name="{name}" width="{WIDTH}" height="{HEIGHT}">'
            f'<box label="pit" source="manual" occluded="0" xtl="{left}.00" ytl="{top}.00" xbr="{right}.00"'
            f' ybr="{bottom}.00" rotation="15.00" z_order="0"><attribute name="text">Total</attribute></box>'
            f'<polygon label="scratch" source="manual" occluded="0" points="{points}" z_order="0"></polygon></image>'
        )
    labels = "".join(f"<label><name>{name}</name><attributes></attributes></label>" for name in ("pit", "scratch"))
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version><meta><task><id>1</id>'
        f"<labels>{labels}</labels></task></meta>{''.join(images)}</annotations>"
    )
    (root / "annotations.xml").write_text(text, encoding="utf-8")


def _label_studio(root: Path) -> None:
    tasks = []
    for number, name in enumerate(pictures(root)):
        (left, top), _, (right, bottom), _ = _quad(number)
        value = {
            "x": 100 * left / WIDTH,
            "y": 100 * top / HEIGHT,
            "width": 100 * (right - left) / WIDTH,
            "height": 100 * (bottom - top) / HEIGHT,
            "rotation": 10,
        }
        place = {"id": "r1", "original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0}
        results = [
            {**place, "type": "rectanglelabels", "value": {**value, "rectanglelabels": ["pit"]}},
            {**place, "type": "textarea", "value": {**value, "text": ["Total"]}},
        ]
        annotation = {"id": 9, "completed_by": 1, "was_cancelled": False, "updated_at": "2024-05-02", "result": results}
        data = {"image": f"/data/upload/1/3f2a1b4c-{name}"}
        tasks.append({"id": number, "annotations": [annotation], "data": data})
    (root / "project-1.json").write_text(json.dumps(tasks), encoding="utf-8")


TEXT_SOURCES: dict[str, WriteSource] = {
    "cvat": _cvat,
    "funsd": _funsd,
    "icdar2013": _icdar2013,
    "icdar2015": _icdar2015,
    "labelme": _labelme,
    "labelstudio": _label_studio,
    "paddleocr": _paddleocr,
    "page": _page,
    "sroie": _sroie,
    "xfund": _xfund,
}
DEFECT_SOURCES: dict[str, WriteSource] = {
    "coco": _coco,
    "cvat": _cvat,
    "deeppcb": _deeppcb,
    "labelme": _labelme,
    "labelstudio": _label_studio,
    "voc": _voc,
    "yolo": _yolo,
}
