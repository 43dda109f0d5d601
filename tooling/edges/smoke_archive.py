"""Archives that carry files into a container and out of it: this tool's source, a tree's pins, folders, evidence.

What comes out was written by an image, so names are checked and only regular files are taken.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from tooling.edges.files.durable import replace_file
from tooling.errors import EdgeError

Packer = Callable[[tarfile.TarFile], None]


@contextmanager
def packed(*packers: Packer) -> Iterator[IO[bytes]]:
    """A temporary archive that those packers filled, at its beginning; gone afterwards."""
    with tempfile.TemporaryFile(prefix="pin-smoke-") as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for pack in packers:
                pack(archive)
        file.seek(0)
        yield file


def source_files(target: str) -> Packer:
    """This tool's package, as it is installed, without what Python made of it."""
    package = Path(__file__).resolve().parents[1]

    def keep(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if "__pycache__" in member.name or not (member.isdir() or member.isreg()) else _anybodys(member)

    return lambda archive: archive.add(package, f"{target}/{package.name}", filter=keep)


def texts(target: str, files: dict[str, bytes]) -> Packer:
    """Those files below a folder that anybody may read."""

    def pack(archive: tarfile.TarFile) -> None:
        archive.addfile(_folder(target))
        for name, data in files.items():
            member = tarfile.TarInfo(f"{target}/{name}")
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))

    return pack


def empty_folder(target: str) -> Packer:
    """A folder in which the image's user, whoever that is, may write."""
    return lambda archive: archive.addfile(_folder(target))


def folder_files(target: str, folder: Path) -> Packer:
    """A folder of this machine with its regular files; the image's user may change them, times are kept."""

    def keep(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return _anybodys(member) if member.isdir() or member.isreg() else None

    def pack(archive: tarfile.TarFile) -> None:
        archive.addfile(_folder(target))
        if folder.is_dir():
            archive.add(folder, target, filter=keep)

    return pack


def unpack(chunks: Iterable[bytes], folder: Path, *, keep: Callable[[PurePosixPath], bool]) -> list[Path]:
    """Writes the regular files of an engine's archive of a folder below `folder`, times kept; returns their paths.

    Raises:
        EdgeError: the archive is broken, names a place outside, or a file cannot be written.
    """
    written = []
    with tempfile.TemporaryFile(prefix="pin-smoke-") as file:
        for chunk in chunks:
            file.write(chunk)
        file.seek(0)
        try:
            with tarfile.open(fileobj=file, mode="r") as archive:
                for member in archive:
                    # The first part is the folder's own name in the container.
                    name = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                    if member.isreg() and keep(_inside(name)) and (content := archive.extractfile(member)) is not None:
                        written.append(_write(folder / name, content.read(), member))
        except (tarfile.TarError, EOFError) as cause:
            raise EdgeError(f"the engine's archive of the container's files is broken: {cause}",
                            hint="try again", reason="BAD_ARCHIVE") from cause  # fmt: skip
    return written


def copy_out(source: Path, target: Path) -> None:
    """Writes a file's bytes to its place in one step. Raises EdgeError if it cannot be written."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, source.read_bytes())
    except OSError as cause:
        raise EdgeError(f"{target}: cannot be written: {cause.strerror}", reason="UNWRITABLE") from cause


def _inside(name: PurePosixPath) -> PurePosixPath:
    if name.is_absolute() or ".." in name.parts:
        raise EdgeError(f"the container's archive names a place outside of its folder: {name}", reason="BAD_ARCHIVE")
    return name


def _write(path: Path, data: bytes, member: tarfile.TarInfo) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
        path.chmod(0o755 if member.mode & 0o100 else 0o644)
        os.utime(path, (member.mtime, member.mtime))
    except OSError as cause:
        raise EdgeError(f"{path}: cannot be written: {cause.strerror}", reason="UNWRITABLE") from cause
    return path


def _folder(target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(target)
    member.type, member.mode = tarfile.DIRTYPE, 0o777
    return member


def _anybodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The member as root's, which everybody may read, change and run: the image's user is known to the image only."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o777 if member.isdir() or member.mode & 0o100 else 0o666
    return member
