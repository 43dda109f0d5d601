"""Writes that survive power loss: flushed before they are given their name."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_GITIGNORE = b"*\n"
_NO_FOLDER_FLUSH = {errno.EINVAL, errno.ENOTSUP}
"""What file systems answer that cannot flush a folder (some network and shared ones); their renames are not ours."""


def write_durably(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Writes a file anew and flushes it to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes every byte, however little the system takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def flush_folder(path: Path) -> None:
    """Makes renames and unlinks in a folder durable, where its file system can. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as cause:
        if cause.errno not in _NO_FOLDER_FLUSH:
            raise
    finally:
        os.close(descriptor)


def make_private_folder(path: Path) -> None:
    """Makes a folder, with its parents, that git ignores by a `.gitignore` of its own. Raises OSError."""
    os.makedirs(path, exist_ok=True)
    ignore = path / ".gitignore"
    # An empty one is what a kill between making and writing it leaves.
    if not ignore.is_file() or not ignore.stat().st_size:
        write_durably(ignore, _GITIGNORE)


def replace_file(path: Path, data: bytes) -> None:
    """Gives a file new content in one step: readers see the old or the new, whole. Raises OSError."""
    beside = path.with_name(f".{path.name[:50]}.{os.getpid()}.new")
    try:
        write_durably(beside, data)
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)
