"""PAGE XML, FUNSD and XFUND as their tools write them; boxes come back where they were put."""

from __future__ import annotations

import json

import pytest

from pipelines.errors import DataError
from pipelines.prep.forms import read_funsd, read_xfund
from pipelines.prep.page_xml import read_page_xml
from pipelines.prep.raw import RawImage
from pipelines.records import Fault

QUAD = [[10.0, 10.0], [50.0, 10.0], [50.0, 20.0], [10.0, 20.0]]
NEW = "http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15"


def page(lines: str, size: str = 'imageWidth="80" imageHeight="60"', namespace: str = NEW) -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><PcGts xmlns="{namespace}"><Metadata/>'
        f'<Page imageFilename="a.png" {size}><TextRegion id="r">{lines}</TextRegion></Page></PcGts>'
    )


def line(points: str, text: str = "Summe", words: str = "") -> str:
    readings = (("1", "late"), ("0", text))
    equiv = "".join(f"<TextEquiv index='{i}'><Unicode>{said}</Unicode></TextEquiv>" for i, said in readings)
    return f'<TextLine id="l1">{points}{words}{equiv}</TextLine>'


def images(items) -> list[RawImage]:
    return [item for item in items if isinstance(item, RawImage)]


@pytest.mark.parametrize(
    "points",
    [
        '<Coords points="10,10 50,10 50,20 10,20"/>',
        '<Coords><Point x="10" y="10"/><Point x="50" y="10"/><Point x="50" y="20"/><Point x="10" y="20"/></Coords>',
    ],
)
def test_page_lines_of_old_and_new_schemas_have_their_outline_text_and_size(points, tmp_path, write_picture) -> None:
    write_picture(tmp_path / "a.png")
    (tmp_path / "a.xml").write_text(page(line(points)), encoding="utf-8")
    (raw,) = images(read_page_xml(tmp_path, None))
    (region,) = raw.regions
    assert region.points == QUAD and region.transcription == "Summe" and raw.said_hw == (60, 80) and not raw.fault


def test_page_words_stand_in_for_lines_without_an_outline_and_for_pages_without_lines(tmp_path, write_picture) -> None:
    write_picture(tmp_path / "a.png")
    word = '<Word id="w"><Coords points="10,10 50,10 50,20 10,20"/></Word>'
    for content in (line("", words=word), word):
        (tmp_path / "a.xml").write_text(page(content), encoding="utf-8")
        (raw,) = images(read_page_xml(tmp_path, None))
        assert [region.points for region in raw.regions] == [QUAD]


def test_page_lines_that_cannot_be_read_are_named_and_other_xml_is_passed_over(tmp_path, write_picture) -> None:
    write_picture(tmp_path / "a.png")
    write_picture(tmp_path / "b.png")
    good = '<Coords points="10,10 50,10 50,20 10,20"/>'
    (tmp_path / "a.xml").write_text(page(line('<Coords points="10,ten 3"/>') + line(good)), encoding="utf-8")
    (tmp_path / "mets.xml").write_text("<mets/>")
    items = list(read_page_xml(tmp_path, None))
    faults = [item for item in items if isinstance(item, Fault)]
    assert [fault.item for fault in faults if "10,ten 3" in fault.reason] == ["line 1 (l1)"]
    assert [len(raw.regions) for raw in images(items)] == [1]
    assert any("b.png" in fault.file for fault in faults)


def entity(box: list[float], *words: list[float]) -> dict[str, object]:
    return {"box": box, "text": "Date: 3/4", "label": "question", "words": [{"box": w, "text": "Date:"} for w in words]}


def test_funsd_words_are_regions_and_an_entity_without_words_is_one_itself(tmp_path, write_picture) -> None:
    write_picture(tmp_path / "images" / "0001.png")
    (tmp_path / "annotations").mkdir()
    form = {"form": [entity([0, 0, 60, 40], [10, 10, 50, 20], [10, 30, 50, 40]), entity([10, 10, 50, 20]), "odd"]}
    (tmp_path / "annotations" / "0001.json").write_text(json.dumps(form))
    items = list(read_funsd(tmp_path, None))
    (raw,) = images(items)
    assert [region.points[0] for region in raw.regions] == [[10.0, 10.0], [10.0, 30.0], [10.0, 10.0]]
    assert raw.regions[0].points == QUAD and raw.regions[0].transcription == "Date:"
    dropped, told = (item for item in items if isinstance(item, Fault))
    assert dropped.item == "entity 3" and told.reason == "regions are 2 words, 2 entities without words"


def xfund(name: str = "zh_val_0.png", entities: object = None) -> dict[str, object]:
    image = {"fname": name, "width": 80, "height": 60}
    return {"lang": "zh", "documents": [{"id": "0", "document": entities or [entity([10, 10, 50, 20])], "img": image}]}


def test_xfund_documents_name_their_images_and_files_are_the_split(tmp_path, write_picture) -> None:
    for side in ("train", "val"):
        write_picture(tmp_path / f"zh_{side}" / f"zh_{side}_0.png", seed=len(side))
        (tmp_path / f"zh.{side}.json").write_text(json.dumps(xfund(f"zh_{side}_0.png")))
    raws = images(read_xfund(tmp_path, None))
    assert {raw.image.name: raw.split for raw in raws} == {"zh_train_0.png": "train", "zh_val_0.png": "val"}
    assert all(raw.regions[0].points == QUAD and raw.said_hw == (60, 80) for raw in raws)


@pytest.mark.parametrize("content", [{"documents": [{"img": None}, 3]}, {"documents": []}, [], {"form": []}])
def test_an_xfund_source_without_a_usable_document_is_refused(content, tmp_path, write_picture) -> None:
    write_picture(tmp_path / "a.png")
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(DataError):
        list(read_xfund(tmp_path, None))


def test_single_characters_are_joined_to_the_lines_they_stand_in_and_told(tmp_path, write_picture) -> None:
    boxes = [[10, 10, 20, 20], [20, 11, 30, 21], [30, 10, 50, 20], [10, 30, 20, 40], [21, 30, 30, 40]]
    words = [{"box": box, "text": text} for box, text in zip(boxes, "发票号码一", strict=True)]
    write_picture(tmp_path / "zh_val_0.png")
    spelt = {"box": [10, 10, 50, 40], "text": "发票号码一", "words": words}
    (tmp_path / "zh.val.json").write_text(json.dumps(xfund(entities=[spelt, entity([0, 0, 9, 9], [0, 0, 9, 9])])))
    items = list(read_xfund(tmp_path, None))
    (raw,) = images(items)
    found = [(region.transcription, region.points[0], region.points[2]) for region in raw.regions]
    assert found == [
        ("发票号", [10.0, 10.0], [50.0, 21.0]),
        ("码一", [10.0, 30.0], [30.0, 40.0]),
        ("Date:", [0.0, 0.0], [9.0, 9.0]),
    ]
    told = [item.reason for item in items if isinstance(item, Fault)]
    assert told == ["regions are 1 words, 2 lines joined from single characters"]


def test_a_page_with_regions_but_neither_lines_nor_words_is_no_page_without_text(tmp_path, write_picture) -> None:
    write_picture(tmp_path / "a.png")
    (tmp_path / "a.xml").write_text(page('<Coords points="1,1 9,1 9,9"/>'), encoding="utf-8")
    (raw,) = images(read_page_xml(tmp_path, None))
    assert "neither lines nor words" in raw.fault
    empty = page("").replace('<TextRegion id="r"></TextRegion>', "")
    (tmp_path / "a.xml").write_text(empty, encoding="utf-8")  # control: a page without any region has no text
    (raw,) = images(read_page_xml(tmp_path, None))
    assert not raw.fault and not raw.regions


def test_what_lies_beyond_the_border_of_a_page_is_neither_text_nor_background(tmp_path, write_picture) -> None:
    write_picture(tmp_path / "a.png")
    border = '<Border><Coords points="4,6 70,6 70,60 4,60"/></Border><TextRegion'
    inside = page(line('<Coords points="10,10 50,10 50,20 10,20"/>')).replace("<TextRegion", border)
    (tmp_path / "a.xml").write_text(inside, encoding="utf-8")
    (raw,) = images(read_page_xml(tmp_path, None))
    boxes = [(region.points[0], region.points[2]) for region in raw.regions if region.is_ignored]
    assert boxes == [([0.0, 0.0], [4.0, 60.0]), ([70.0, 0.0], [80.0, 60.0]), ([4.0, 0.0], [70.0, 6.0])]
    beyond = page(line('<Coords points="72,10 79,10 79,20 72,20"/>')).replace("<TextRegion", border)
    (tmp_path / "a.xml").write_text(beyond, encoding="utf-8")  # control: labels beyond it, so it is no limit
    (raw,) = images(read_page_xml(tmp_path, None))
    assert [region.is_ignored for region in raw.regions] == [False]
