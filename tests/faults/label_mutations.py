"""What happens to label files: cut off, spliced, re-encoded, with numbers and words that nobody expects."""

from __future__ import annotations

import re

from hypothesis import strategies as st

_TOKEN = re.compile(rb"-?\d+(?:\.\d+)?|\w+|[\[\]{}<>\"',:\t\n/]")
_ODD = (
    *(
        b"NaN",
        b"-1",
        b"0",
        b"1e309",
        b"-Infinity",
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'""',
        b"[[[",
        b"9" * 30,
        b"9" * 400,
        b"0x1f",
    ),
    *(
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\t",
        b",",
        b"<",
        b"&amp;",
        b"&x;",
        b"..\\..\\",
        b"/",
        b" ",
        b"",
    ),
    *("发票".encode(), "发票".encode("gbk"), "é".encode("latin-1"), b"\xed\xa0\x80", b'"\\ud800"', b"1_000", b"1,5"),
    *(
        b"shot_0",
        b"shot_1.png",
        b"###",
        b"[1, 2]",
        b"id",
        b"points",
        b"-0.0",
        b"1e-320",
        b'{"x": 1}',
        b"]" * 2000,
        b"[" * 2000,
    ),
)
_PLACE = st.floats(0, 1, exclude_max=True)
_CHANGE = st.one_of(
    st.tuples(st.just("replace"), _PLACE, st.sampled_from(_ODD)),
    st.tuples(st.just("replace"), _PLACE, st.sampled_from(_ODD)),
    st.tuples(st.just("insert"), _PLACE, st.sampled_from(_ODD) | st.binary(max_size=6)),
    st.tuples(st.just("delete"), _PLACE, _PLACE),
    st.tuples(st.just("repeat"), _PLACE, _PLACE),
    st.tuples(st.just("flip"), _PLACE, st.integers(1, 255)),
    st.tuples(st.just("cut"), _PLACE, st.none()),
)


def mutated(content: bytes) -> st.SearchStrategy[bytes]:
    """One to four changes, one after the other."""
    return st.lists(_CHANGE, min_size=1, max_size=4).map(lambda changes: _applied(content, changes))


def _applied(content: bytes, changes: list[tuple[str, float, object]]) -> bytes:
    for kind, place, with_what in changes:
        content = _changed(content, kind, place, with_what)
    return content


def _changed(content: bytes, kind: str, place: float, with_what: object) -> bytes:
    at = int(place * len(content))
    if kind == "cut":
        return content[:at]
    if kind == "flip" and content:
        return content[:at] + bytes([content[at] ^ int(str(with_what))]) + content[at + 1 :]
    if kind == "replace":
        tokens = list(_TOKEN.finditer(content))
        if not tokens:
            return content
        token = tokens[int(place * len(tokens))]
        return content[: token.start()] + bytes(with_what) + content[token.end() :]  # type: ignore[call-overload]
    if kind in ("delete", "repeat"):
        end = min(len(content), at + 1 + int(float(str(with_what)) ** 3 * len(content)))
        return content[:at] + content[at:end] * (0 if kind == "delete" else 2) + content[end:]
    return content[:at] + bytes(with_what) + content[at:] if kind == "insert" else content  # type: ignore[call-overload]
