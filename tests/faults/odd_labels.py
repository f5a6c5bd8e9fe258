"""Label files as people have them: what is done to a source of four images, and what `prepare` makes of the second one.

Damage of prepared datasets is in test_text_data_faults.py and test_defect_data_faults.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Change = Callable[[bytes], bytes]


@dataclass(frozen=True)
class OddLabel:
    """A label file that nobody expects, in a source of `raw_sources`.

    Attributes:
        task: "text" or "defect".
        format: of the source.
        file: the file that is changed, below the source.
        change: what is done to its bytes.
        num_regions: regions or boxes of the second image in the dataset; None where that image is left out.
        told: words of what is said, "" for nothing.
        is_refused: nothing of the source can be used.
    """

    task: str
    format: str
    file: str
    change: Change
    num_regions: int | None
    told: str = ""
    is_refused: bool = False


def replaced(before: bytes, after: bytes, count: int = 1) -> Change:
    """Other bytes in place of the first of `before`, or of all with a `count` of -1."""

    def change(content: bytes) -> bytes:
        assert before in content, f"{before!r} is not in {content!r}"
        return content.replace(before, after, count)

    return change


def written(content: bytes) -> Change:
    return lambda _: content


def encoded(encoding: str, before: str = "Total", after: str = "Total") -> Change:
    return lambda content: content.decode("utf-8").replace(before, after).encode(encoding)


def with_mark(content: bytes) -> bytes:
    return b"\xef\xbb\xbf" + content


def windows_lines(content: bytes) -> bytes:
    return content.replace(b"\n", b"\r\n")


def in_second_line(change: Change) -> Change:
    def apply(content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        return b"".join([lines[0], change(lines[1]), *lines[2:]])

    return apply


def entry(**values: Any) -> Change:
    """Change the first region of PaddleOCR's second line; `None` is null."""

    def change(line: bytes) -> bytes:
        path, _, text = line.decode("utf-8").partition("\t")
        regions = json.loads(text)
        regions[0].update(values)
        return f"{path}\t{json.dumps(regions)}\n".encode()

    return in_second_line(change)


def in_json(change: Callable[[Any], Any]) -> Change:
    """Change the content of a JSON file in place."""

    def apply(content: bytes) -> bytes:
        value = json.loads(content)
        change(value)
        return json.dumps(value).encode()

    return apply


def box(**values: Any) -> Change:
    """Change COCO's second annotation, which is of the second image."""
    return in_json(lambda content: content["annotations"][1].update(values))


def shape(**values: Any) -> Change:
    """Change the only shape of a LabelMe file."""
    return in_json(lambda content: content["shapes"][0].update(values))


def result(**values: Any) -> Change:
    """Change where Label Studio's second task has its two regions."""

    def change(content: Any) -> None:
        for each in content[1]["annotations"][0]["result"]:
            each["value"].update(values)

    return in_json(change)


LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><annotation>&c;</annotation>'
)
OUTSIDE = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><annotation>&a;</annotation>'
SQUARE = [[3, 3], [17, 3], [17, 12], [3, 12]]


def paddleocr(change: Change, num_regions: int = 2, told: str = "", is_refused: bool = False) -> OddLabel:
    return OddLabel("text", "paddleocr", "Label.txt", change, num_regions, told, is_refused)


def icdar(change: Change, num_regions: int | None = 1, told: str = "", format: str = "icdar2015") -> OddLabel:
    return OddLabel("text", format, "gt_shot_1.txt", change, num_regions, told)


def page(change: Change, num_regions: int | None = 1, told: str = "") -> OddLabel:
    return OddLabel("text", "page", "shot_1.xml", change, num_regions, told)


def labelme(change: Change, num_regions: int | None = 1, told: str = "", task: str = "defect") -> OddLabel:
    return OddLabel(task, "labelme", "shot_1.json", change, num_regions, told)


def coco(change: Change, num_regions: int | None = 1, told: str = "") -> OddLabel:
    return OddLabel("defect", "coco", "annotations.json", change, num_regions, told)


def voc(change: Change, num_regions: int | None = 1, told: str = "") -> OddLabel:
    return OddLabel("defect", "voc", "Annotations/shot_1.xml", change, num_regions, told)


def yolo(change: Change, num_regions: int | None = 1, told: str = "") -> OddLabel:
    return OddLabel("defect", "yolo", "labels/shot_1.txt", change, num_regions, told)


def _pixels(line: bytes) -> Change:
    return written(line + b"\n")


_PADDLEOCR = {
    "UTF-16": paddleocr(encoded("utf-16"), told="UTF-16"),
    "GBK": paddleocr(encoded("gbk", "Total 3,50", "发票总额"), told="read as GBK"),
    "Big5 that may be anything": paddleocr(
        encoded("big5", "Total 3,50", "發票總額"), told="save the file as UTF-8", is_refused=True),
    "old Mac line ends": paddleocr(replaced(b"\n", b"\r", -1), told="CR"),
    "blank lines at the end": paddleocr(lambda content: content + b"\n \n\n", told="blank"),
    "a tab in a transcription": paddleocr(
        in_second_line(replaced(b"Total", b"To\ttal")), told="taken as part of the text"),
    "a tab at the end of a line": paddleocr(in_second_line(replaced(b"\n", b"\t\n"))),
    "a line separator in a transcription": paddleocr(entry(transcription="a\u2028b\x85c")),
    "half an emoji in a transcription": paddleocr(
        in_second_line(replaced(b"Total", b"\\ud83d")), told="half a character"),
    "NaN": paddleocr(entry(points=[[float("nan"), 3], *SQUARE[1:]]), 1, "points must be numbers"),
    "Infinity": paddleocr(entry(points=[[float("inf"), 3], *SQUARE[1:]]), 1, "points must be numbers"),
    "1e999": paddleocr(in_second_line(replaced(b"[[3,", b"[[1e999,")), 1, "points must be numbers"),
    "a number of 400 digits": paddleocr(
        in_second_line(replaced(b"[[3,", b"[[" + b"9" * 400 + b",")), 1, "points must be numbers"),
    "true as a coordinate": paddleocr(entry(points=[[True, 3], *SQUARE[1:]]), 1, "points must be numbers"),
    "points that are null": paddleocr(entry(points=None), 1, "points must be numbers"),
    "points that are a word": paddleocr(entry(points="here"), 1, "points must be numbers"),
    "transcription that is null": paddleocr(entry(transcription=None)),
    "transcription that is a number": paddleocr(entry(transcription=350)),
    "three points": paddleocr(entry(points=SQUARE[:3])),
    "counter-clockwise points": paddleocr(entry(points=SQUARE[::-1])),
    "twelve points": paddleocr(entry(points=[[3 + x, 3] for x in range(11)] + [[8, 12]])),
    "the first point again at the end": paddleocr(entry(points=[*SQUARE, SQUARE[0]]), told="repeated point"),
    "one region twice": paddleocr(in_second_line(lambda line: line.replace(b"[{", b"[{}, {", 1).replace(
        b"{}", line[line.index(b"{") : line.index(b"}") + 1])), told="the same outline twice"),
    "difficult as a word": paddleocr(entry(difficult="True")),
    "brackets a thousand deep": paddleocr(in_second_line(replaced(b"[{", b"[" * 5000 + b"{")), None, "JSON"),
    "a zero byte": paddleocr(in_second_line(replaced(b"Total", b"To\0tal")), told="taken as part of the text"),
}  # fmt: skip
_CORNERS = {
    "ICDAR, mark and Windows line ends": icdar(lambda content: with_mark(windows_lines(content))),
    "ICDAR, a text of commas and quotes": icdar(replaced(b"Total, net", b'a,"b",,c')),
    "ICDAR, corners of broken pixels": icdar(replaced(b"3,3,17,3,", b"3.5,3.5,17.5,3,")),
    "ICDAR, semicolons": icdar(lambda content: content.replace(b",", b";"), None, "x1,y1,x2,y2"),
    "ICDAR, seven numbers": icdar(replaced(b"3,3,", b"3,"), None, "x1,y1,x2,y2"),
    "ICDAR, NaN": icdar(replaced(b"3,3,", b"nan,3,"), None, "numbers"),
    "ICDAR, an empty file": icdar(written(b""), 0, "the label file is empty"),
    "ICDAR, UTF-16": icdar(encoded("utf-16"), told="UTF-16"),
    "ICDAR, a picture for a label file": icdar(
        written(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1"), None, "none of the 4 line(s)"),
    "ICDAR 2013, a box beyond the picture": icdar(
        written(b"20 3 40 12 Total\n"), 1, "outside the image", "icdar2013"),
}  # fmt: skip
_XML = {
    "PAGE, a billion laughs": page(written(LAUGHS), None, "declares the entity"),
    "PAGE, an entity of another file": page(written(OUTSIDE), None, "declares the entity"),
    "PAGE, another root": page(lambda content: content.replace(b"PcGts", b"Pages"), None, "no label file"),
    "PAGE, broken pixels": page(replaced(b"3,3 ", b"3.5,3.5 ")),
    "PAGE, points without a comma": page(replaced(b"3,3 ", b"33 "), None, "point"),
    "PAGE, UTF-16": page(lambda content: b'<?xml version="1.0"?>'.decode().encode("utf-16") + content.decode().encode(
        "utf-16-le")),
    "VOC, a billion laughs": voc(written(LAUGHS), None, "declares the entity"),
    "VOC, an entity of another file": voc(written(OUTSIDE), None, "declares the entity"),
    "VOC, another root": voc(lambda content: content.replace(b"annotation>", b"note>"), None, "no label file"),
    "VOC, not closed": voc(lambda content: content[:-20], None, "no valid XML"),
    "VOC, corners swapped": voc(lambda content: content.replace(b"xmin", b"q").replace(b"xmax", b"xmin").replace(
        b"q>", b"xmax>"), told="reversed"),
    "VOC, a point": voc(replaced(b"<xmax>17", b"<xmax>3"), None, "no area"),
    "VOC, NaN": voc(replaced(b"<xmin>3", b"<xmin>nan"), None, "expected 4 number(s)"),
    "VOC, no name": voc(replaced(b"<name>pit</name>", b""), None, "class"),
    "VOC, blanks round the name": voc(replaced(b"pit", b" pit "), told="case or blanks"),
    "VOC, the name in capitals": voc(replaced(b"pit", b"Pit"), told="Pit"),
    "VOC, a size of zero": voc(lambda content: re.sub(rb"(width|height)>\d+", rb"\1>0", content)),
    "VOC, width and height swapped": voc(
        lambda content: content.replace(b"<width>32", b"<width>24").replace(b"<height>24", b"<height>32"),
        told="swapped"),
    "VOC, size of another picture": voc(replaced(b"<width>32", b"<width>320"), None, "another"),
    "VOC, no object": voc(lambda content: re.sub(rb"<object>.*</object>", b"", content), 0),
    "VOC, in GBK as it declares": voc(lambda content: b'<?xml version="1.0" encoding="gb2312"?>' + content.replace(
        b"<folder>JPEGImages", "<folder>缺陷".encode("gbk")), None, "no valid XML"),
}  # fmt: skip
_YOLO = {
    "YOLO, pixels": yolo(_pixels(b"1 24 18 32 24"), None, "are these pixels?"),
    "YOLO, a rounding beyond the edge": yolo(_pixels(b"1 0.9 0.5 0.205 0.2"), told="clipped"),
    "YOLO, a class beyond the names": yolo(_pixels(b"7 0.5 0.5 0.2 0.2"), None, "not among the 2 names"),
    "YOLO, a class as numpy writes it": yolo(_pixels(b"1.000000e+00 0.5 0.5 0.2 0.2")),
    "YOLO, half a class": yolo(_pixels(b"0.5 0.5 0.5 0.2 0.2"), None, "class number"),
    "YOLO, a negative class": yolo(_pixels(b"-1 0.5 0.5 0.2 0.2"), None, "not among"),
    "YOLO, commas": yolo(_pixels(b"1,0.5,0.5,0.2,0.2"), None, "class number"),
    "YOLO, no width": yolo(_pixels(b"1 0.5 0.5 0 0.2"), None, "no area"),
    "YOLO, a negative width": yolo(_pixels(b"1 0.5 0.5 -0.2 0.2"), None, "from 0 to 1"),
    "YOLO, mark, tabs and Windows line ends": yolo(written(b"\xef\xbb\xbf1\t0.5 0.5\t0.2 0.2 \r\n\r\n")),
    "YOLO, UTF-16": yolo(encoded("utf-16")),
    "YOLO, an empty file": yolo(written(b""), 0),
}
_JSON = {
    "COCO, mark": coco(with_mark),
    "COCO, UTF-16": coco(encoded("utf-16")),
    "COCO, 1e999": coco(replaced(b"[3, 3, 14, 9]", b"[1e999, 3, 14, 9]"), None, "expected a bbox"),
    "COCO, a negative width": coco(box(bbox=[17, 3, -14, 9]), told="reversed"),
    "COCO, eight numbers": coco(box(bbox=[3, 3, 17, 3, 17, 12, 3, 12]), None, "expected a bbox"),
    "COCO, a box by names": coco(box(bbox={"x": 3, "y": 3, "w": 14, "h": 9}), None, "expected a bbox"),
    "COCO, no category": coco(box(category_id=None), None, "category_id None"),
    "COCO, half a character in a class": coco(
        in_json(lambda content: (
            content["categories"].append({"id": 3, "name": "\ud83d"}),
            content["annotations"][1].update(category_id=3),
        )), None, "expected a class name"),
    "COCO, one box twice": coco(in_json(lambda content: content["annotations"].append(content["annotations"][1])),
        told="the same box and class twice"),
    "COCO, an image without boxes": coco(in_json(lambda content: content["annotations"].pop(1)), 0),
    "COCO, boxes of no image": coco(
        in_json(lambda content: content["annotations"].append({**content["annotations"][1], "id": 9, "image_id": 77})),
        told="image_id 77"),
    "COCO, a Windows path": coco(replaced(b'"shot_1.png"', b'"D:\\\\shots\\\\shot_1.png"')),
    "COCO, an empty file name": coco(replaced(b'"shot_1.png"', b'""'), None, "file_name"),
    "COCO, a file name above the folder": coco(replaced(b'"shot_1.png"', b'"../../shot_1.png"')),
    "COCO, width and height swapped": coco(in_json(lambda content: content["images"][1].update(width=24, height=32)),
        told="swapped"),
    "LabelMe, mark": labelme(with_mark),
    "LabelMe, no shapes": labelme(in_json(lambda content: content.update(shapes=[])), 0),
    "LabelMe, shapes that are null": labelme(in_json(lambda content: content.update(shapes=None)), None, "shapes"),
    "LabelMe, NaN": labelme(shape(points=[[float("nan"), 3], [9, 9], [3, 9]]), None, "points"),
    "LabelMe, a self-crossing outline": labelme(
        shape(points=[SQUARE[0], SQUARE[2], SQUARE[1], SQUARE[3]]), told="bow-tie", task="text"),
    "LabelMe, outside the picture": labelme(shape(points=[[90, 3], [99, 3], [99, 9]]), None, "outside"),
    "LabelMe, a circle of one point": labelme(shape(shape_type="circle", points=[[9, 9]]), None, "no area"),
    "LabelMe, an unknown kind": labelme(shape(shape_type="spiral"), told="shape_type 'spiral' is not known"),
    "LabelMe, cut off": labelme(lambda content: content[:-9], None, "no valid JSON"),
    "Label Studio, beyond a hundred percent": OddLabel(
        "text", "labelstudio", "project-1.json", result(x=95.0), 1, "outside"),
    "Label Studio, a turn that is a word": OddLabel(
        "text", "labelstudio", "project-1.json", result(rotation="left"), None, "rotation"),
    "FUNSD, a box of three numbers": OddLabel("text", "funsd", "annotations/shot_1.json", lambda content: re.sub(
        rb"\[3, 3, 17, 12\]", b"[3, 3, 17]", content), None, "box"),
    "FUNSD, corners swapped": OddLabel("text", "funsd", "annotations/shot_1.json", lambda content: re.sub(
        rb"\[3, 3, 17, 12\]", b"[17, 12, 3, 3]", content), 1),
}  # fmt: skip
ODD_LABELS = _PADDLEOCR | _CORNERS | _XML | _YOLO | _JSON
