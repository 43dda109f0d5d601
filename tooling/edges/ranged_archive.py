"""A wheel on an index, read in byte ranges: its directory, then the members that are asked for. Counts every byte.

Where a server sends no ranges the whole file is taken, within a bound, and the archive says so.
"""

from __future__ import annotations

import bisect
import hashlib
import io
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, cast

from tooling.edges.archives import Archive, BadArchiveError, Members, open_sdist, open_zip
from tooling.edges.index_http import HttpReader
from tooling.errors import EdgeError
from tooling.releases.addresses import redact_url
from tooling.releases.files import ReleaseFile

TAIL_BYTES = 64 * 1024
"""The first request: the end of the directory, and the whole of it for wheels with few members."""
MAX_GAP_BYTES = 16 * 1024
"""Members so near to each other come with one request: a request costs about as much as these bytes."""
MAX_PART_BYTES = 4 * 1024 * 1024
MAX_DIRECTORY_BYTES = 64 * 1024 * 1024
"""The largest directory seen has 1.9 MB."""
MAX_FILE_BYTES = 512 * 1024 * 1024
"""The largest wheel seen has 101 MB."""
MAX_DOWNLOAD_S = 900.0
PARALLEL = 4
"""Connections to one host; more would not be polite."""


def open_release_file(http: HttpReader, file: ReleaseFile) -> Archive:
    """The wheel or sdist that the index lists.

    Raises:
        EdgeError: the file is not there (`GONE`), the server does not answer after retries, its ranges or hash lie,
            or what it sends is no archive (`BAD_ARCHIVE`).
    """
    try:
        if file.kind == "sdist":
            return _open_whole(http, file)
        try:
            return _open_ranged(http, file)
        except EdgeError as cause:
            if cause.reason != "NO_RANGES":
                raise
            archive = _open_whole(http, file)
            archive.notes.append(f"{file.filename}: the server sends no byte ranges; the whole file was downloaded")
            return archive
    except BadArchiveError as cause:
        raise EdgeError(
            f"{redact_url(file.url)}: {cause.message}",
            hint="the file on the index is damaged; ask its owner, or name another copy with --from",
            reason="BAD_ARCHIVE",
        ) from cause


class RangedFile(io.RawIOBase):
    """A remote file as a seekable one. Parts that were read are kept; `bytes_read` and `requests` count."""

    def __init__(self, http: HttpReader, url: str) -> None:
        self._http, self._url = http, url
        self.bytes_read = self.requests = 0
        self._starts: list[int] = []
        self._parts: dict[int, bytes] = {}
        self._position = 0
        self._counting = threading.Lock()
        tail = http.fetch_range(url, -TAIL_BYTES, 0)
        if tail.total_bytes is None:
            raise EdgeError(f"{redact_url(url)}: the server does not tell the file's size", reason="LYING_RANGES")
        self.size_bytes: int = tail.total_bytes
        self._state = (tail.total_bytes, tail.etag)
        self._count(tail.data)
        self._keep(self.size_bytes - len(tail.data), tail.data)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size_bytes}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self.size_bytes if size < 0 else min(self.size_bytes, self._position + size)
        if end <= self._position:
            return b""
        if end - self._position > MAX_DIRECTORY_BYTES:
            raise BadArchiveError(redact_url(self._url), f"its directory claims to have {end - self._position:,} bytes")
        data = self._bytes(self._position, end)
        self._position = end
        return data

    def load(self, spans: Iterable[tuple[int, int]]) -> None:
        """Fetches those spans (start, end), near ones together, a few at a time."""
        wanted = [span for span in _together(sorted(spans)) if not self._has(*span)]
        with ThreadPoolExecutor(PARALLEL) as pool:
            for (start, _), data in zip(wanted, pool.map(lambda span: self._fetch(*span), wanted), strict=True):
                self._keep(start, data)

    def _bytes(self, start: int, end: int) -> bytes:
        found: list[bytes] = []
        while start < end:
            at = bisect.bisect_right(self._starts, start) - 1
            first = self._starts[at] if at >= 0 else -1
            if at >= 0 and start < first + len(self._parts[first]):
                found.append(self._parts[first][start - first : end - first])
            else:
                following = self._starts[at + 1] if at + 1 < len(self._starts) else end
                found.append(self._fetch(start, min(end, following)))
                self._keep(start, found[-1])
            start += len(found[-1])
        return b"".join(found)

    def _has(self, start: int, end: int) -> bool:
        at = bisect.bisect_right(self._starts, start) - 1
        return at >= 0 and end <= self._starts[at] + len(self._parts[self._starts[at]])

    def _keep(self, start: int, data: bytes) -> None:
        """Keeps the part and drops those inside it: the last part that starts before a byte is the one that has it."""
        inside = [
            first for first in self._starts if start <= first and first + len(self._parts[first]) <= start + len(data)
        ]
        for first in inside:
            del self._parts[first]
            self._starts.remove(first)
        bisect.insort(self._starts, start)
        self._parts[start] = data

    def _fetch(self, start: int, end: int) -> bytes:
        part = self._http.fetch_range(self._url, start, end)
        self._count(part.data)
        if (part.total_bytes, part.etag) != self._state:
            label = redact_url(self._url)
            raise EdgeError(f"{label}: the file changed while it was read", hint="run again", reason="CHANGED")
        return part.data

    def _count(self, data: bytes) -> None:
        with self._counting:
            self.requests += 1
            self.bytes_read += len(data)


def _open_ranged(http: HttpReader, file: ReleaseFile) -> Archive:
    stream = RangedFile(http, file.url)
    members = Members(cast("IO[bytes]", stream), file.filename)
    order = sorted({info.header_offset for info in members.infos.values()})
    ends = dict(zip(order, [*order[1:], members.zip.start_dir], strict=True))

    def prefetch(names: Iterable[str]) -> None:
        offsets = [members.infos[name].header_offset for name in names if name in members.infos]
        stream.load((offset, ends[offset]) for offset in offsets)

    return Archive(
        label=file.filename,
        names=members.names,
        size_bytes=stream.size_bytes,
        sha256=file.sha256,
        read=members.read,
        prefetch=prefetch,
        bytes_read=lambda: stream.bytes_read,
    )


def _open_whole(http: HttpReader, file: ReleaseFile) -> Archive:
    stream = cast("IO[bytes]", tempfile.TemporaryFile())  # noqa: SIM115  # closed with the archive
    try:
        size = _download(http, file, stream)
        opener = open_sdist if file.kind == "sdist" else open_zip
        archive = opener(stream, label=file.filename, size_bytes=size, sha256=file.sha256)
    except BaseException:
        stream.close()
        raise
    archive.bytes_read = lambda: size
    archive.close = stream.close
    return archive


def _download(http: HttpReader, file: ReleaseFile, stream: IO[bytes]) -> int:
    """Writes the whole file, checks its hash, and rewinds; returns its size."""
    import requests  # noqa: PLC0415  # 200 ms that a warm run does not pay

    label, digest, size = redact_url(file.url), hashlib.sha256(), 0
    deadline = time.monotonic() + MAX_DOWNLOAD_S
    with http.open(file.url, {"Accept-Encoding": "identity"}) as response:
        if response.status_code != 200:
            raise EdgeError(
                f"{label}: the index lists this file, but the server answers {response.status_code}", reason="GONE"
            )
        try:
            for part in response.iter_content(256 * 1024):
                size += len(part)
                if size > MAX_FILE_BYTES:
                    raise EdgeError(f"{label}: sends more than {MAX_FILE_BYTES:,} bytes", reason="TOO_LARGE")
                if time.monotonic() > deadline:
                    raise EdgeError(f"{label}: is still sending after {MAX_DOWNLOAD_S:.0f} s", reason="TIMEOUT")
                digest.update(part)
                stream.write(part)
        except (requests.RequestException, OSError) as cause:
            raise EdgeError(
                f"{label}: broke off after {size:,} bytes", hint="try again", reason="BROKEN_OFF"
            ) from cause
    if file.sha256 not in {None, digest.hexdigest()}:
        raise EdgeError(f"{label}: its sha256 is not what the index shows", reason="WRONG_HASH")
    stream.seek(0)
    return size


def _together(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Sorted spans, near ones joined, none longer than MAX_PART_BYTES unless one member is."""
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current and start - current[1] <= MAX_GAP_BYTES and end - current[0] <= MAX_PART_BYTES:
            current = (current[0], max(end, current[1]))
        else:
            if current:
                yield current
            current = (start, end)
    if current:
        yield current
