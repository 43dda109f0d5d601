"""A package index on loopback, with every fault that real ones show: real wheels, PEP 691 and 503, ranges, passwords."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import os
import re
import ssl
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from tests.http_servers import serving

Ranges = Literal["honest", "ignored", "wrong-span", "short", "no-header"]
JSON_TYPE = "application/vnd.pypi.simple.v1+json"


@dataclass(kw_only=True)
class LocalFile:
    """One file of a project and what the index says about it; `claims` are fields that replace the true ones."""

    project: str
    filename: str
    data: bytes
    metadata: bytes | None
    yanked: bool | str = False
    uploaded: str = "2026-01-02T03:04:05Z"
    requires_python: str | None = None
    claims: Mapping[str, object] = field(default_factory=dict)

    def as_json(self, base: str) -> dict[str, object]:
        facts: dict[str, object] = {
            "filename": self.filename,
            "url": f"{base}/files/{self.filename}",
            "hashes": {"sha256": hashlib.sha256(self.data).hexdigest()},
            "size": len(self.data),
            "yanked": self.yanked,
            "upload-time": self.uploaded,
            "requires-python": self.requires_python,
        }
        if self.metadata is not None:
            facts["core-metadata"] = {"sha256": hashlib.sha256(self.metadata).hexdigest()}
        return {**facts, **self.claims}

    def as_html(self, base: str) -> str:
        facts = self.as_json(base)
        sha256 = facts["hashes"]["sha256"]  # type: ignore[index]
        attributes = ""
        if self.yanked is not False:
            attributes += f' data-yanked="{html.escape(self.yanked if isinstance(self.yanked, str) else "")}"'
        if self.requires_python:
            attributes += f' data-requires-python="{html.escape(self.requires_python)}"'
        if self.metadata is not None:
            attributes += ' data-core-metadata="true"'
        return f'<a href="{facts["url"]}#sha256={sha256}"{attributes}>{self.filename}</a><br>'


@dataclass(kw_only=True)
class LocalIndex:
    """What the server has and how it behaves; change it while it runs. `log` holds (path, headers) of every request."""

    url: str = ""
    files: list[LocalFile] = field(default_factory=list)
    pages: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    html_only: bool = False
    credentials: tuple[str, str] | None = None
    ranges: Ranges = "honest"
    failures: list[int] = field(default_factory=list)
    delay_s: float = 0.0
    drip: bool = False
    breaks_off: bool = False
    redirects: dict[str, str] = field(default_factory=dict)
    etags: bool = True
    log: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def simple(self) -> str:
        """The index's own address."""
        return f"{self.url}/simple/"

    def with_credentials(self, user: str, password: str) -> str:
        return self.simple.replace("://", f"://{user}:{password}@")

    def add_wheel(
        self,
        project: str,
        version: str,
        *,
        tag: str = "py3-none-any",
        requires: Sequence[str] = (),
        members: Mapping[str, bytes] | None = None,
        serves_metadata: bool = True,
        **facts: object,
    ) -> LocalFile:
        """Builds a real wheel and lists it."""
        filename, data, metadata = build_wheel(project, version, tag=tag, requires=requires, members=members or {})
        file = LocalFile(
            project=normalise(project), filename=filename, data=data, metadata=metadata if serves_metadata else None,
            **facts,  # type: ignore[arg-type]
        )  # fmt: skip
        self.files.append(file)
        return file

    def add_sdist(self, project: str, version: str, **facts: object) -> LocalFile:
        name = f"{project.replace('-', '_')}-{version}.tar.gz"
        file = LocalFile(project=normalise(project), filename=name, data=b"sdist", metadata=None, **facts)  # type: ignore[arg-type]
        self.files.append(file)
        return file

    def asked(self, part: str) -> int:
        """How many requests had that text in their path."""
        return sum(part in path for path, _ in self.log)


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def build_wheel(
    project: str, version: str, *, tag: str = "py3-none-any", requires: Sequence[str] = (), members: Mapping[str, bytes]
) -> tuple[str, bytes, bytes]:
    """File name, bytes and METADATA of a wheel that pip and uv would install."""
    stem = f"{project.replace('-', '_')}-{version}"
    lines = ["Metadata-Version: 2.1", f"Name: {project}", f"Version: {version}"]
    metadata = "\n".join([*lines, *(f"Requires-Dist: {text}" for text in requires), "", ""]).encode()
    names = {
        **members,
        f"{stem}.dist-info/METADATA": metadata,
        f"{stem}.dist-info/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    record = "".join(f"{name},,\n" for name in [*names, f"{stem}.dist-info/RECORD"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**names, f"{stem}.dist-info/RECORD": record.encode()}.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return f"{stem}-{tag}.whl", buffer.getvalue(), metadata


@contextmanager
def serve_index(*, tls: Callable[[ssl.SSLContext], None] | None = None) -> Iterator[LocalIndex]:
    """A running index without files; `tls` loads a certificate into the server's context."""
    index = LocalIndex()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"index": index}))
    server.daemon_threads = True
    host = "127.0.0.1"
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        host = "localhost"
    index.url = f"{'http' if tls is None else 'https'}://{host}:{server.server_address[1]}"
    server.handle_error = lambda request, address: None  # type: ignore[method-assign]
    with serving(server):
        yield index


class _Handler(BaseHTTPRequestHandler):
    """Answers as the index says; `index` is set on a subclass for each server."""

    index: ClassVar[LocalIndex]
    protocol_version = "HTTP/1.1"
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        self.index.log.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.index.delay_s:
            time.sleep(self.index.delay_s)
        if self.index.failures:
            self.answer(self.index.failures.pop(0), "text/plain", b"a fault")
        elif not self.is_allowed():
            self.answer(401, "text/plain", b"who are you?", {"WWW-Authenticate": 'Basic realm="index"'})
        elif self.path in self.index.redirects:
            self.answer(302, "text/plain", b"", {"Location": self.index.redirects[self.path]})
        elif self.path in self.index.pages:
            self.answer(*self.index.pages[self.path])
        elif self.path.startswith("/files/"):
            self.send_file(self.path.removeprefix("/files/"))
        else:
            self.send_project(self.path)

    def is_allowed(self) -> bool:
        if self.index.credentials is None:
            return True
        expected = base64.b64encode(":".join(self.index.credentials).encode()).decode()
        return self.headers.get("Authorization") == f"Basic {expected}"

    def send_project(self, path: str) -> None:
        match = re.fullmatch(r"/simple/([^/]+)/", path)
        files = [file for file in self.index.files if match and file.project == match[1]]
        if not files or match is None:
            self.answer(404, "text/plain", b"no such project")
        elif self.index.html_only or JSON_TYPE not in self.headers.get("Accept", ""):
            links = "\n".join(file.as_html(self.index.url) for file in files)
            self.page("text/html; charset=utf-8", f"<!DOCTYPE html><html><body>{links}</body></html>".encode())
        else:
            body = {
                "meta": {"api-version": "1.1"},
                "name": match[1],
                "files": [file.as_json(self.index.url) for file in files],
                "versions": [],
            }
            self.page(JSON_TYPE, json.dumps(body).encode())

    def page(self, content_type: str, body: bytes) -> None:
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if self.index.etags and self.headers.get("If-None-Match") == etag:
            self.answer(304, content_type, b"", {"ETag": etag})
        else:
            self.answer(200, content_type, body, {"ETag": etag} if self.index.etags else {})

    def send_file(self, name: str) -> None:
        wanted = name.removesuffix(".metadata")
        found = [file for file in self.index.files if file.filename == wanted]
        data = (found[0].metadata if name != wanted else found[0].data) if found else None
        span = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if data is None:
            self.answer(404, "text/plain", b"no such file")
        elif span is None or self.index.ranges == "ignored":
            self.answer(200, "application/octet-stream", data)
        else:
            self.send_part(data, *_span(span, len(data)))

    def send_part(self, data: bytes, start: int, end: int) -> None:
        if start >= len(data):
            self.answer(416, "text/plain", b"", {"Content-Range": f"bytes */{len(data)}"})
            return
        headers = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}", "ETag": '"file"'}
        part = data[start:end]
        if self.index.ranges == "wrong-span":
            headers["Content-Range"] = f"bytes {start + 1}-{end}/{len(data)}"
        if self.index.ranges == "no-header":
            del headers["Content-Range"]
        if self.index.ranges == "short":
            part = part[: len(part) // 2]
        self.answer(206, "application/octet-stream", part, headers)

    def answer(self, status: int, content_type: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.index.breaks_off:
            body = body[: len(body) // 2]
            self.close_connection = True
        if not self.index.drip:
            self.wfile.write(body)
            return
        for position in range(len(body)):
            self.wfile.write(body[position : position + 1])
            self.wfile.flush()
            time.sleep(0.05)


def _span(match: re.Match[str], size: int) -> tuple[int, int]:
    first, last = match[1], match[2]
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size


@pytest.fixture
def local_index() -> Iterator[LocalIndex]:
    with serve_index() as index:
        yield index


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No settings of pip, uv or proxies, an empty home; quick to give up. Returns the home."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_", "XDG_")) or name.lower().endswith(("_proxy", "ca_bundle")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    return home
