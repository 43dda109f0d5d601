"""The cache root of a scenario before and after a run, as values; part of a record's `measurements`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen:
    """One file below the cache root: its path relative to it, size in bytes, and `sha256:…` of its bytes."""

    path: str
    size_bytes: int
    sha256: str

    def as_json(self) -> dict[str, object]:
        return {"path": self.path, "size_bytes": self.size_bytes, "sha256": self.sha256}

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> FileSeen:
        return FileSeen(path=body["path"], size_bytes=body["size_bytes"], sha256=body["sha256"])


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSeen:
    """The cache root before and after a run, watched from outside. `read`: paths opened for reading, null if the
    machine cannot tell.
    """

    before: tuple[FileSeen, ...] = ()
    after: tuple[FileSeen, ...] = ()
    read: tuple[str, ...] | None = None

    @property
    def created(self) -> tuple[str, ...]:
        known = {file.path for file in self.before}
        return tuple(file.path for file in self.after if file.path not in known)

    @property
    def changed(self) -> tuple[str, ...]:
        known = {file.path: file.sha256 for file in self.before}
        return tuple(file.path for file in self.after if known.get(file.path, file.sha256) != file.sha256)

    @property
    def removed(self) -> tuple[str, ...]:
        left = {file.path for file in self.after}
        return tuple(file.path for file in self.before if file.path not in left)

    def as_json(self) -> dict[str, object]:
        return {
            "before": [file.as_json() for file in self.before],
            "after": [file.as_json() for file in self.after],
            "read": None if self.read is None else list(self.read),
            "created": list(self.created),
            "changed": list(self.changed),
            "removed": list(self.removed),
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> FilesSeen:
        read = body["read"]
        files = FilesSeen(
            before=tuple(FileSeen.from_json(one) for one in body["before"]),
            after=tuple(FileSeen.from_json(one) for one in body["after"]),
            read=None if read is None else tuple(read),
        )
        for name in ("created", "changed", "removed"):
            if list(getattr(files, name)) != body[name]:
                raise ValueError(f"files.{name} is not what before and after come to")
        return files
