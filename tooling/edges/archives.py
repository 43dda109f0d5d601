"""Archives of one release on this disk: a wheel, an sdist, a folder. Members are read by name, within bounds.

Nothing is ever unpacked to disk. Parts of a wheel on an index are read by `ranged_archive`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Self

from tooling.errors import InputError

MAX_MEMBERS = 200_000
"""The largest wheel seen has 14,705."""
MAX_MEMBER_BYTES = 64_000_000
"""The largest module seen has 1.5 MB."""
MAX_TOTAL_BYTES = 2_000_000_000
"""All that is unpacked of one archive; the largest seen unpacks to 0.6 GB."""
MAX_RATIO = 1_100
"""DEFLATE cannot do better than 1032 to 1; a member that claims more lies."""
SKIPPED_FOLDERS = {".git", "__pycache__", "node_modules", ".venv"}


class BadArchiveError(InputError):
    """The file is no archive, or one that no honest tool writes. Nothing of it is used."""

    reason = "BAD_ARCHIVE"

    def __init__(self, label: str, problem: str) -> None:
        super().__init__(f"{label}: {problem}", hint="download it again from the index, or take another source for it")


@dataclass(slots=True, kw_only=True)
class Archive:
    """One release's files. `read` gives a member; `prefetch` may be told which ones will be read.

    `size_bytes` is the whole file's size, 0 for a folder; `sha256` its hash where it is known; `bytes_read` counts what
    was taken from disk or network so far; `notes` is what a person should know of how it was read.
    """

    label: str
    names: Collection[str]
    size_bytes: int
    sha256: str | None
    read: Callable[[str], bytes]
    prefetch: Callable[[Iterable[str]], None] = lambda _names: None
    bytes_read: Callable[[], int] = lambda: 0
    close: Callable[[], None] = lambda: None
    notes: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_local(path: Path) -> Archive:
    """The wheel, sdist or source folder at that path.

    Raises:
        InputError: nothing is there, or it is neither (`BAD_ARCHIVE`).
    """
    if path.is_dir():
        return open_folder(path)
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        stream = path.open("rb")
    except OSError as cause:
        raise InputError(f"{path}: {cause.strerror}", hint="name a wheel, an sdist or a folder") from cause
    if path.name.endswith((".tar.gz", ".tgz")):
        with stream:
            return open_sdist(stream, label=path.name, size_bytes=size, sha256=sha256)
    try:
        return open_zip(stream, label=path.name, size_bytes=size, sha256=sha256)
    except BaseException:
        stream.close()
        raise


def open_zip(stream: IO[bytes], *, label: str, size_bytes: int, sha256: str | None) -> Archive:
    """A wheel in a seekable stream; the stream is closed with the archive."""
    members = Members(stream, label)
    return Archive(
        label=label,
        names=members.names,
        size_bytes=size_bytes,
        sha256=sha256,
        read=members.read,
        bytes_read=lambda: members.bytes_read,
        close=stream.close,
    )


class Members:
    """A zip file's members behind bounds. Raises BadArchiveError for everything that is wrong with them."""

    def __init__(self, stream: IO[bytes], label: str) -> None:
        self._label = label
        try:
            self.zip = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError) as cause:
            raise BadArchiveError(label, f"not a zip file: {cause}") from cause
        infos = self.zip.infolist()
        if not infos:
            raise BadArchiveError(label, "it has no members")
        check_names((info.filename for info in infos), label)
        self.infos = {info.filename: info for info in infos}
        self.bytes_read = 0
        self._unpacked = 0

    @property
    def names(self) -> Collection[str]:
        return self.infos.keys()

    def read(self, name: str) -> bytes:
        """The member's bytes.

        Raises:
            KeyError: the archive has no such member.
            BadArchiveError: it is larger than its bound, packed beyond what is possible, encrypted or damaged.
        """
        info = self.infos[name]
        if info.file_size > MAX_MEMBER_BYTES:
            raise BadArchiveError(self._label, f"{name} would unpack to {info.file_size:,} bytes")
        if info.file_size > MAX_RATIO * max(info.compress_size, 1):
            raise BadArchiveError(
                self._label, f"{name} claims to be packed {info.file_size // max(info.compress_size, 1)}:1"
            )
        self._unpacked += info.file_size
        if self._unpacked > MAX_TOTAL_BYTES:
            raise BadArchiveError(self._label, f"its members unpack to more than {MAX_TOTAL_BYTES:,} bytes")
        self.bytes_read += info.compress_size
        try:
            return self.zip.read(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as cause:
            raise BadArchiveError(self._label, f"{name} cannot be unpacked: {cause}") from cause


def open_sdist(stream: IO[bytes], *, label: str, size_bytes: int, sha256: str | None) -> Archive:
    """A `.tar.gz` (PEP 625); its Python and metadata members are taken at once, without the folder on top."""
    members = _sdist_members(stream, label)
    return Archive(
        label=label,
        names=members.keys(),
        size_bytes=size_bytes,
        sha256=sha256,
        read=members.__getitem__,
        bytes_read=lambda: size_bytes,
    )


def open_folder(root: Path) -> Archive:
    """An unpacked release: the folder that holds `flashinfer/`."""
    names = set(_walk(root))
    count = 0

    def read(name: str) -> bytes:
        nonlocal count
        path = root / name
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise BadArchiveError(str(root), f"{name} is no regular file")
            if status.st_size > MAX_MEMBER_BYTES:
                raise BadArchiveError(str(root), f"{name} has {status.st_size:,} bytes")
            data = path.read_bytes()
        except OSError as cause:
            raise BadArchiveError(str(root), f"{name} cannot be read: {cause.strerror}") from cause
        count += len(data)
        return data

    return Archive(label=root.name, names=names, size_bytes=0, sha256=None, read=read, bytes_read=lambda: count)


def check_names(names: Iterable[str], label: str) -> None:
    """Refuses member names that point out of the archive, twice to one place, or are too many."""
    seen: set[str] = set()
    for name in names:
        parts = PurePosixPath(name).parts
        if not name or ".." in parts or name.startswith(("/", "\\")) or "\\" in name or ":" in parts[0] or "\0" in name:
            raise BadArchiveError(label, f"the member name {name!r} points out of the archive")
        if name in seen:
            raise BadArchiveError(label, f"the member {name!r} is in it twice")
        seen.add(name)
        if len(seen) > MAX_MEMBERS:
            raise BadArchiveError(label, f"it has more than {MAX_MEMBERS:,} members")


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        for file in files:
            yield Path(folder, file).relative_to(root).as_posix()


def _sdist_members(stream: IO[bytes], label: str) -> Mapping[str, bytes]:
    members: dict[str, bytes] = {}
    try:
        with (
            gzip.GzipFile(fileobj=stream) as unpacked,
            tarfile.open(fileobj=_Bounded(unpacked, label), mode="r|") as tar,
        ):
            names: list[str] = []
            for item in tar:
                names.append(item.name)
                _, _, name = item.name.partition("/")
                if not item.isfile() or not (name.endswith(".py") or name == "PKG-INFO"):
                    continue
                if item.size > MAX_MEMBER_BYTES:
                    raise BadArchiveError(label, f"{name} would unpack to {item.size:,} bytes")
                content = tar.extractfile(item)
                members[name] = content.read() if content else b""
            check_names(dict.fromkeys(names), label)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as cause:
        raise BadArchiveError(label, f"not a gzipped tar file: {cause}") from cause
    return members


class _Bounded(io.RawIOBase):
    """A stream that gives out after MAX_TOTAL_BYTES."""

    def __init__(self, stream: gzip.GzipFile, label: str) -> None:
        self._stream, self._label, self._left = stream, label, MAX_TOTAL_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise BadArchiveError(self._label, f"it unpacks to more than {MAX_TOTAL_BYTES:,} bytes")
        return data
