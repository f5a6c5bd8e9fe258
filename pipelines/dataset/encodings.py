"""The text of a label file: UTF-8, or another encoding where the bytes leave no doubt which; always told.

| bytes | read as |
|---|---|
| a byte-order mark, or a zero in every other byte | UTF-8, UTF-16 |
| no UTF-8, and nearly all of it common Chinese as GBK | GBK |
| no UTF-8, every odd byte alone among plain letters (`5 £`, `Café`) | Windows-1252, line by line |
| anything else (Big5, Shift-JIS, Korean, Cyrillic, a picture) | refused: any guess would change what was written |
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from pipelines.errors import DataError

HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""A lone surrogate: JSON and names of files may give one, UTF-8 can't hold it."""
_HIGH = re.compile(rb"[\x80-\xff]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
_MOST_UNCOMMON = 0.1
"""Share of a Chinese text that may be rare characters: names of people and places."""
_WAY_OUT = "save the file as UTF-8"


class EncodingError(DataError):
    """Bytes that may mean several texts, or none; `line` counts from 1."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Decoded:
    """A file's text.

    Attributes:
        text: without a byte-order mark; line ends as they are.
        notes: (line from 1, what was done) for everything that is no plain UTF-8.
    """

    text: str
    notes: tuple[tuple[int, str], ...] = ()

    @property
    def lines(self) -> list[str]:
        """Lines by line feed and carriage return alone: a transcription may hold other Unicode line breaks."""
        return _LINE_END.split(self.text)


def decode(content: bytes) -> Decoded:
    """The text in a file's bytes.

    Raises:
        EncodingError: it can't be told which text they mean.
    """
    if encoding := _utf16(content):
        try:
            return Decoded(content.decode(encoding).removeprefix("\ufeff"), ((1, f"is UTF-16: read so; {_WAY_OUT}"),))
        except UnicodeDecodeError as error:
            raise EncodingError(f"is UTF-16, but damaged: {error.reason}; {_WAY_OUT}", 1) from None
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return Decoded(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line, byte = _line_of(content, error.start), content[error.start]
    try:
        text = content.decode("gb18030")
    except UnicodeDecodeError:
        text = ""
    if _is_common_chinese(text):
        return Decoded(text, ((line, f"is not UTF-8 (byte {byte:#04x}): read as GBK; {_WAY_OUT}"),))
    return _western(content)


def _utf16(content: bytes) -> str:
    """The UTF-16 that a file is in, "" if in none: by its mark, or by the zeros beside plain letters."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    start = content[:400]
    for name, zeros, others in (("utf-16-le", start[1::2], start[::2]), ("utf-16-be", start[::2], start[1::2])):
        # A few zeros in a text are damage; every other byte is an encoding.
        if len(zeros) >= 4 and zeros.count(0) > 0.9 * len(zeros) and not others.count(0):
            return name
    return ""


def _is_common_chinese(text: str) -> bool:
    """Whether what is not ASCII is nearly all of the 3755 most used characters, or full-width punctuation.

    Those of GB2312 lead with B0 to D7. Korean text leads with B0 to C8 alone and would pass for them, so that some
    characters must lie above.
    """
    leads = [_gb2312_lead(character) for character in text if not character.isascii()]
    num_common = sum(0xB0 <= lead <= 0xD7 or lead in (0xA1, 0xA3) for lead in leads)
    return any(0xC9 <= lead <= 0xD7 for lead in leads) and num_common >= (1 - _MOST_UNCOMMON) * len(leads)


def _gb2312_lead(character: str) -> int:
    try:
        return character.encode("gb2312")[0]
    except UnicodeEncodeError:
        return 0


def _western(content: bytes) -> Decoded:
    """Lines that are UTF-8 as they are, the others as Windows-1252.

    Raises:
        EncodingError: a line may be something else: its odd bytes do not stand alone.
    """
    lines, notes = [], []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            lines.append(line.decode("utf-8"))
            continue
        except UnicodeDecodeError as error:
            found = f"byte {line[error.start]:#04x} is not UTF-8"
        try:
            if any(len(run) > 1 for run in _HIGH.findall(line)):
                raise ValueError
            lines.append(line.decode("cp1252"))
        except ValueError:
            raise EncodingError(f"{found}, and may mean anything: {_WAY_OUT}", number) from None
        notes.append((number, f"{found}: the line is read as Windows-1252"))
    return Decoded("\n".join(lines), tuple(notes))


def _line_of(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1
