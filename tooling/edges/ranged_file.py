"""A remote file as a seekable one, read in byte ranges: `zipfile` looks into a wheel without fetching it."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

from tooling.edges.index_http import RangePart
from tooling.errors import EdgeError

TAIL_BYTES = 64 * 1024
"""The first request: holds the end of the central directory, and the whole of it for wheels with few members."""
MIN_PART_BYTES = 32 * 1024


class RangedFile(io.RawIOBase):
    """Read-only; parts that were read are kept. `fetch` is `HttpReader.fetch_range` with the address filled in.

    Raises EdgeError where the server sends no ranges, lies about them, or the file changes meanwhile.
    """

    def __init__(self, fetch: Callable[[int, int], RangePart], label: str) -> None:
        self._fetch, self._label = fetch, label
        tail = fetch(-TAIL_BYTES, 0)
        if tail.total_bytes is None:
            raise EdgeError(f"{label}: the server does not tell the file's size", reason="LYING_RANGES")
        self._etag, self.size_bytes = tail.etag, tail.total_bytes
        self._parts = [(self.size_bytes - len(tail.data), tail.data)]
        self._position = 0

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
        data = self._bytes(self._position, end) if end > self._position else b""
        self._position += len(data)
        return data

    def _bytes(self, start: int, end: int) -> bytes:
        for first, data in self._parts:
            if first <= start and end <= first + len(data):
                return data[start - first : end - first]
        part = self._fetch(start, min(self.size_bytes, max(end, start + MIN_PART_BYTES)))
        if (part.total_bytes, part.etag) != (self.size_bytes, self._etag):
            raise EdgeError(f"{self._label}: the file changed while it was read", hint="run again", reason="CHANGED")
        self._parts.append((start, part.data))
        return part.data[: end - start]
