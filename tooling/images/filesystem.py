"""An image's file system as a value: its layers merged in order, links resolved, rights of a user. Reads nothing.

Whiteouts are those of the OCI image specification: `.wh.NAME` removes NAME, `.wh..wh..opq` empties its folder.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["file", "folder", "link", "other"]
_MAX_LINKS = 40
"""As many as Linux follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path of a layer. `mode` has the permission bits; `content` only of files that a check wants to read."""

    path: str
    kind: Kind
    mode: int
    uid: int
    gid: int
    size: int = 0
    link: str = ""
    content: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one layer adds and takes away. Paths have no leading slash; `emptied` folders hide what is below."""

    entries: tuple[Entry, ...]
    removed: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FileSystem:
    """All layers merged: what a container would see."""

    entries: Mapping[str, Entry]

    def resolve(self, path: str) -> Entry | None:
        """The entry behind a path, links followed inside the image; None if there is none. `/` is a folder."""
        parts, done, links = [part for part in path.split("/") if part], "", 0
        while parts:
            part = parts.pop(0)
            if part in {".", ".."}:
                done = posixpath.dirname(done) if part == ".." else done
                continue
            here = f"{done}/{part}".lstrip("/")
            entry = self.entries.get(here)
            if entry is None:
                return None
            if entry.kind == "link":
                links += 1
                if links > _MAX_LINKS:
                    return None
                if entry.link.startswith("/"):
                    done = ""
                parts = [item for item in entry.link.split("/") if item] + parts
                continue
            done = here
        return self.entries.get(done) or Entry(path="", kind="folder", mode=0o755, uid=0, gid=0)

    def text(self, path: str) -> str | None:
        """A file's text if it was read, links followed."""
        entry = self.resolve(path)
        return None if entry is None or entry.content is None else entry.content.decode("utf-8", "replace")

    def files(self) -> Iterator[Entry]:
        """Every file whose content was read, in order of path."""
        return (entry for _, entry in sorted(self.entries.items()) if entry.content is not None)

    def can_write(self, path: str, uid: int, gids: Iterable[int]) -> bool:
        """True if that user may make files in the folder, or may make the folder in the nearest one that exists."""
        entry = self.resolve(path)
        while entry is None:
            path = posixpath.dirname(path.rstrip("/")) or "/"
            entry = self.resolve(path)
        if entry.kind != "folder":
            return False
        if uid == 0:
            return True
        shift = 6 if entry.uid == uid else 3 if entry.gid in set(gids) else 0
        return entry.mode >> shift & 0o3 == 0o3


def merge_layers(layers: Sequence[Layer]) -> FileSystem:
    """The file system that the layers make, the first one lowest."""
    merged: dict[str, Entry] = {}
    for layer in layers:
        if layer.removed or layer.emptied:
            merged = {path: entry for path, entry in merged.items() if not _is_hidden(path, layer)}
        merged.update((entry.path, entry) for entry in layer.entries)
    for path in list(merged):
        _imply_folders(merged, path)
    return FileSystem(merged)


def _imply_folders(merged: dict[str, Entry], path: str) -> None:
    """Some builders leave out the folders above a file; unpacking makes them, of root and readable by all."""
    above = posixpath.dirname(path)
    while above and above not in merged:
        merged[above] = Entry(path=above, kind="folder", mode=0o755, uid=0, gid=0)
        above = posixpath.dirname(above)


def _is_hidden(path: str, layer: Layer) -> bool:
    """True if the layer removed the path or a folder above it, or emptied a folder above it."""
    if path in layer.removed:
        return True
    above = posixpath.dirname(path)
    while above:
        if above in layer.removed or above in layer.emptied:
            return True
        above = posixpath.dirname(above)
    return "" in layer.emptied
