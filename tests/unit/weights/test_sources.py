"""Sources: an address is fetched once, resumed after a break and checked; a package is found without running it.

    pytest tests/unit/weights/test_sources.py

The only network used is a server in this process on the loopback address.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pipelines.errors import WeightsError
from pipelines.weights.sources import resolve_source

CONTENT = bytes(range(256)) * 400


class _Server(ThreadingHTTPServer):
    """Serves one content and remembers what was asked.

    Attributes:
        break_after: bytes after which the next answer breaks off; None: whole answers.
        knows_ranges: whether it answers a request for the rest with the rest.
        ranges: the Range header of every request, "" without one.
    """

    content = CONTENT
    break_after: int | None = None
    knows_ranges = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ranges: list[str] = []

    def address(self, name: str = "best.pdparams") -> str:
        return f"http://127.0.0.1:{self.server_port}/some/{name}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.server.ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.server.knows_ranges else 0
        body = self.server.content[start:]
        if start and not body:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        limit, self.server.break_after = self.server.break_after, None
        self.wfile.write(body[:limit])

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with _Server() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_an_address_is_fetched_once_and_then_works_offline(server: _Server, tmp_path: Path) -> None:
    source = f"{server.address()}#sha256={_sha256(CONTENT)}"
    first = resolve_source(source, cache=tmp_path)
    assert first.read_bytes() == CONTENT
    assert first.suffix == ".pdparams"
    server.shutdown()
    assert resolve_source(source, cache=tmp_path) == first
    assert server.ranges == [""]


def test_a_broken_transfer_goes_on_where_it_stopped(server: _Server, tmp_path: Path) -> None:
    server.break_after = 70_000
    with pytest.raises(WeightsError, match="next try goes on"):
        resolve_source(server.address(), sha256=_sha256(CONTENT), cache=tmp_path)
    fetched = resolve_source(server.address(), sha256=_sha256(CONTENT), cache=tmp_path)
    assert fetched.read_bytes() == CONTENT
    assert server.ranges == ["", "bytes=70000-"]
    assert [path.name for path in fetched.parent.iterdir()] == [fetched.name]  # no .part is left


def test_a_server_that_can_not_resume_starts_over(server: _Server, tmp_path: Path) -> None:
    server.knows_ranges = False
    server.break_after = 70_000
    with pytest.raises(WeightsError):
        resolve_source(server.address(), sha256=_sha256(CONTENT), cache=tmp_path)
    assert resolve_source(server.address(), sha256=_sha256(CONTENT), cache=tmp_path).read_bytes() == CONTENT


def test_a_whole_part_file_of_a_killed_run_is_used(server: _Server, tmp_path: Path) -> None:
    part = tmp_path / "weights" / f"{_sha256(CONTENT)[:12]}-best.pdparams.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT)
    assert resolve_source(server.address(), sha256=_sha256(CONTENT), cache=tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_not_kept(server: _Server, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=f"expected sha256 {'0' * 64}, but got {_sha256(CONTENT)}"):
        resolve_source(server.address(), sha256="0" * 64, cache=tmp_path)
    assert list((tmp_path / "weights").iterdir()) == []


def test_a_damaged_cache_file_is_noticed(server: _Server, tmp_path: Path) -> None:
    cached = resolve_source(server.address(), sha256=_sha256(CONTENT), cache=tmp_path)
    cached.write_bytes(CONTENT[:-1])
    with pytest.raises(WeightsError, match=r"cached.*remove the file"):
        resolve_source(server.address(), sha256=_sha256(CONTENT), cache=tmp_path)


def test_an_archive_is_unpacked_flat_and_can_not_write_elsewhere(server: _Server, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("model/inference.pdiparams", "../../outside.json", "/root.yml"):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("model/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    server.content = buffer.getvalue()
    cache = tmp_path / "deep" / "cache"
    folder = resolve_source(server.address("model.tar"), sha256=_sha256(server.content), cache=cache)
    assert sorted(path.name for path in folder.iterdir()) == ["inference.pdiparams", "outside.json", "root.yml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep"]


def test_an_address_without_checksum_says_how_to_give_it() -> None:
    with pytest.raises(WeightsError, match=r"best.pdparams#sha256=<64 hex digits>"):
        resolve_source("https://host.invalid/best.pdparams")
    with pytest.raises(WeightsError, match="64 hex digits, but got 'abc'"):
        resolve_source("https://host.invalid/best.pdparams#sha256=abc")


def test_a_path_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "best.pdparams"
    file.write_bytes(CONTENT)
    assert resolve_source(str(file), sha256=_sha256(CONTENT)) == file
    with pytest.raises(WeightsError, match=r"best.pdparams: expected sha256"):
        resolve_source(str(file), sha256="1" * 64)


def test_a_package_is_found_without_running_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "shipped_weights"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert resolve_source("package:shipped_weights/models") == package / "models"
    assert "shipped_weights" not in sys.modules


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_package/models", "no package no_such_package is installed; pip install"),
        ("pipelines/no/such/path", "the installed pipelines holds no no/such/path"),
        ("pipelines/../secrets", "expected package:<import name>/<path inside it>"),
        ("", "expected package:"),
    ],
)
def test_a_package_reference_that_leads_nowhere_says_what_to_do(reference: str, message: str) -> None:
    with pytest.raises(WeightsError, match=message):
        resolve_source(f"package:{reference}")
