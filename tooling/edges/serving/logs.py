"""A server's log file, read as it grows."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from tooling.gsm8k.causes import LAST_LINES, clean_line

KEPT_LINES = 5000
"""Enough for the tracebacks of an engine, its workers and its front end."""
READ_AT_ONCE_BYTES = 1_000_000
LINE_BYTES = 20_000
"""Of a longer line only the start is kept: more than is ever quoted, so that secrets are blanked before it is cut."""


class LogFollower:
    """The lines of a log file, from its start or from a later run's, without those that a progress bar overwrote."""

    def __init__(self, path: Path, *, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._rest = b""
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def read_new(self) -> list[str]:
        """The lines that came since the last call; a line without an end yet waits for it."""
        found: list[str] = []
        while chunk := self._read():
            *whole, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            self._rest = self._rest[:LINE_BYTES]
            found += [line for raw in whole if (line := _decode(raw)).strip()]
        self.lines.extend(found)
        return found

    def finish(self) -> None:
        """Reads what is left, also a last line without an end."""
        self.read_new()
        if last := _decode(self._rest).strip():
            self.lines.append(last)
        self._rest = b""

    def tail(self, count: int = LAST_LINES) -> tuple[str, ...]:
        return tuple(self.lines)[-count:]

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read(READ_AT_ONCE_BYTES)
        except FileNotFoundError:
            return b""
        self._offset += len(chunk)
        return chunk


def _decode(raw: bytes) -> str:
    return clean_line(raw[:LINE_BYTES].decode(errors="replace"))
