"""Reads an image's layers without starting anything: from the engine's own disk where we may, else as its archive.

Archives are those of `docker save`: Docker's layout (manifest.json, DIR/layer.tar) or the OCI image layout (blobs),
with layers plain or compressed. Whiteouts are those of the OCI image specification; overlay's own are translated.
"""

from __future__ import annotations

import io
import json
import os
import posixpath
import stat
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tooling.errors import EdgeError
from tooling.images.filesystem import Entry, Kind, Layer
from tooling.images.interest import is_wanted

if TYPE_CHECKING:
    from docker import DockerClient

CHUNK_BYTES = 1 << 20
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"


def load_layers(client: DockerClient, image_id: str) -> list[Layer]:
    """Every layer, the lowest first.

    Raises:
        EdgeError: the engine's archive is broken, or of a layout that is not known.
    """
    folders = overlay_folders(client.images.get(image_id).attrs)
    if folders is not None:
        return [read_overlay_folder(folder) for folder in folders]
    return read_archive(client.api.get_image(image_id, chunk_size=CHUNK_BYTES))


def overlay_folders(attrs: dict[str, Any]) -> list[Path] | None:
    """The layers' folders of an engine with overlay2 on this machine, the lowest first; None if we cannot read them."""
    driver = attrs.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    if driver.get("Name") != "overlay2" or "UpperDir" not in data or os.geteuid() != 0:
        return None
    lower = [Path(item) for item in (data.get("LowerDir") or "").split(":") if item]
    folders = [*reversed(lower), Path(data["UpperDir"])]
    expected = len((attrs.get("RootFS") or {}).get("Layers") or ())
    return folders if len(folders) == expected and all(folder.is_dir() for folder in folders) else None


def read_overlay_folder(folder: Path) -> Layer:
    """A layer from its folder: overlay marks a removed path by a device 0/0 and an emptied folder by an attribute."""
    entries: list[Entry] = []
    removed, emptied = set[str](), set[str]()
    for path, name in _walk(folder):
        facts = os.lstat(path)
        if stat.S_ISCHR(facts.st_mode) and facts.st_rdev == 0:
            removed.add(name)
            continue
        if stat.S_ISDIR(facts.st_mode) and _is_opaque(path):
            emptied.add(name)
        entries.append(_entry_of(path, name, facts))
    return Layer(entries=tuple(entries), removed=frozenset(removed), emptied=frozenset(emptied))


def read_archive(chunks: Iterable[bytes]) -> list[Layer]:
    """The layers in an archive of `docker save`, read once from front to back.

    Raises:
        EdgeError: not such an archive, or cut short.
    """
    layers: dict[str, Layer] = {}
    texts: dict[str, bytes] = {}
    links: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=_Stream(chunks), mode="r|", bufsize=CHUNK_BYTES) as archive:
            for member in archive:
                if member.issym() or member.islnk():
                    folder = posixpath.dirname(member.name) if member.issym() else ""
                    links[member.name] = posixpath.normpath(posixpath.join(folder, member.linkname))
                elif member.isfile() and (file := archive.extractfile(member)) is not None:
                    _read_member(member, file, layers, texts)
        manifest = json.loads(texts["manifest.json"])
        return [layers[links.get(name, name)] for name in manifest[0]["Layers"]]
    except (tarfile.TarError, KeyError, ValueError, IndexError, EOFError) as cause:
        raise EdgeError(
            f"the engine's archive of the image cannot be read: {cause}", hint="try again", reason="BAD_ARCHIVE"
        ) from cause


def _read_member(member: tarfile.TarInfo, file: IO[bytes], layers: dict[str, Layer], texts: dict[str, bytes]) -> None:
    """Keeps small JSON as text and reads every other file as a layer; what is neither is no layer of the manifest."""
    head = file.read(1)
    if head in {b"{", b"["}:
        texts[member.name] = head + file.read()
    elif member.name.endswith("layer.tar") or "blobs/" in member.name:
        with tarfile.open(fileobj=_Stream([head], file), mode="r|*", bufsize=CHUNK_BYTES) as archive:
            layers[member.name] = _read_layer(archive)


def _read_layer(archive: tarfile.TarFile) -> Layer:
    entries: list[Entry] = []
    removed, emptied = set[str](), set[str]()
    for member in archive:
        name = posixpath.normpath(member.name).lstrip("/")
        folder, base = posixpath.split(name)
        if base == _OPAQUE:
            emptied.add(folder)
        elif base.startswith(_WHITEOUT):
            removed.add(posixpath.join(folder, base.removeprefix(_WHITEOUT)))
        elif name != ".":
            entries.append(_member_entry(archive, member, name, entries))
    return Layer(entries=tuple(entries), removed=frozenset(removed), emptied=frozenset(emptied))


def _member_entry(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, before: list[Entry]) -> Entry:
    """A hard link is the file that it names, which stands earlier in the layer or below it."""
    if member.islnk():
        original = posixpath.normpath(member.linkname).lstrip("/")
        same = next((entry for entry in reversed(before) if entry.path == original), None)
        if same is not None:
            return Entry(path=name, kind="file", mode=same.mode, uid=same.uid, gid=same.gid, size=same.size,
                         content=same.content if is_wanted(name, same.size) else None)  # fmt: skip
    kind: Kind = (
        "folder"
        if member.isdir()
        else "link"
        if member.issym()
        else "file"
        if member.isreg() or member.islnk()
        else "other"
    )
    content = None
    if member.isreg() and is_wanted(name, member.size) and (file := archive.extractfile(member)) is not None:
        content = file.read()
    return Entry(path=name, kind=kind, mode=member.mode & 0o7777, uid=member.uid, gid=member.gid, size=member.size,
                 link=member.linkname if member.issym() else "", content=content)  # fmt: skip


def _walk(folder: Path) -> Iterator[tuple[str, str]]:
    """Every path below the folder with its name relative to it; links are not followed."""
    waiting = [(str(folder), "")]
    while waiting:
        place, above = waiting.pop()
        with os.scandir(place) as found:
            for item in found:
                name = f"{above}/{item.name}".lstrip("/")
                yield item.path, name
                if item.is_dir(follow_symlinks=False):
                    waiting.append((item.path, name))


def _entry_of(path: str, name: str, facts: os.stat_result) -> Entry:
    mode = facts.st_mode
    kind: Kind = (
        "folder" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "other"
    )
    wanted = kind == "file" and is_wanted(name, facts.st_size)
    return Entry(
        path=name, kind=kind, mode=stat.S_IMODE(mode), uid=facts.st_uid, gid=facts.st_gid,
        size=facts.st_size if kind == "file" else 0, link=os.readlink(path) if kind == "link" else "",
        content=Path(path).read_bytes() if wanted else None,
    )  # fmt: skip


def _is_opaque(path: str) -> bool:
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        try:
            if os.getxattr(path, name) == b"y":
                return True
        except OSError:
            continue
    return False


class _Stream(io.RawIOBase):
    """Chunks, then the rest of a file, as a stream that tarfile can read; short reads happen at the end only."""

    def __init__(self, chunks: Iterable[bytes], rest: IO[bytes] | None = None) -> None:
        super().__init__()
        self._chunks, self._rest, self._left = iter(chunks), rest, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, missing = [], size if size >= 0 else 1 << 62
        while missing > 0:
            if not self._left:
                self._left = next(self._chunks, b"") or (
                    self._rest.read(min(missing, CHUNK_BYTES)) if self._rest else b""
                )
                if not self._left:
                    break
            parts.append(self._left[:missing])
            missing -= len(parts[-1])
            self._left = self._left[len(parts[-1]) :]
        return b"".join(parts)
