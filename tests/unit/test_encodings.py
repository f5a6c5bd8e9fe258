"""Which text a file's bytes mean, and where nobody can know. Run: pytest tests/unit/test_encodings.py"""

from __future__ import annotations

import pytest

from pipelines.dataset.encodings import Decoded, EncodingError, decode
from pipelines.dataset.label_files import scan_label_file

CHINESE = "增值税发票 价税合计：￥128.00 收款人：张三\n销售方名称 上海有限公司\n"


def test_plain_utf8_is_read_without_a_word_with_or_without_its_mark():
    assert decode(CHINESE.encode()) == Decoded(CHINESE)
    assert decode(CHINESE.encode("utf-8-sig")) == Decoded(CHINESE)
    assert decode(b"") == Decoded("")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_known_by_its_mark_or_by_the_zeros_beside_plain_letters(encoding):
    found = decode("38,43,920,215,Café\r\n".encode(encoding))
    assert found.text == "38,43,920,215,Café\r\n"
    assert [line for line, note in found.notes if "UTF-16" in note] == [1]


def test_common_chinese_is_read_as_gbk_and_told_with_its_line():
    found = decode(("10,10,50,10\n" + CHINESE).encode("gbk"))
    assert found.text == "10,10,50,10\n" + CHINESE
    assert [(line, "GBK" in note) for line, note in found.notes] == [(2, True)]


def test_odd_bytes_that_stand_alone_are_windows_1252_in_their_line_only():
    found = decode("ok 发票\n".encode() + b"5 \xa3, Caf\xe9\n")
    assert found.text == "ok 发票\n5 £, Café\n"
    assert [(line, "0xa3" in note and "Windows-1252" in note) for line, note in found.notes] == [(2, True)]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("合計 領収書 東京都\n", "shift_jis"),
        ("統一發票 收執聯\n", "big5"),
        ("영수증 합계 서울시 강남구\n", "euc_kr"),
        ("Итого к оплате\n", "cp1251"),
        ("São João, Ação\n", "latin-1"),  # "çã" may be one Chinese character
    ],
)
def test_bytes_that_may_mean_several_texts_are_refused_with_their_line(text, encoding):
    with pytest.raises(EncodingError, match="save the file as UTF-8") as refused:
        decode(b"10,10\n" + text.encode(encoding))
    assert refused.value.line == 2


def test_check_names_the_encoding_of_a_label_file_and_still_finds_its_other_faults(tmp_path):
    label = tmp_path / "train.txt"
    line = 'a.jpg\t[{"transcription": "增值税发票 上海有限公司", "points": [[1, 1], [9, 1], [9, 9]]}]\nno tab\n'
    label.write_bytes(line.encode("gbk"))
    lines, faults = scan_label_file(label)
    assert lines[0].annotation.regions[0].transcription == "增值税发票 上海有限公司"
    assert [(fault.line, fault.action) for fault in faults] == [(1, "error"), (2, "error")]
    assert "read as GBK" in faults[0].reason and "tab" in faults[1].reason


def test_lines_end_at_line_feeds_and_returns_alone():
    assert decode("a\u2028b\r\nc\rd\x0be\n".encode()).lines == ["a\u2028b", "c", "d\x0be", ""]
