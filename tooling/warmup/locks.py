"""Locks beside cache files, of which no other process holds one. They are never deleted. Never raises for a disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOCK_PATIENCE_S = 10.0
"""How long a writer waits for another one's lock before it goes on without."""
BUSY = {errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN}
TOKEN_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A lock that is held, or why it is not. `busy`: another process holds it; else the file system has none."""

    trouble: str = ""
    busy: bool = False


@contextlib.contextmanager
def locked(path: Path, *, token: str = "") -> Iterator[Lock]:
    """Holds the lock beside that path; network file systems may refuse `flock`, and then there is none.

    `token` is left in it, by which others of one's own see who holds it.
    """
    handle, trouble = _open(path)
    if handle is None:
        yield Lock(trouble=trouble)
        return
    try:
        lock = _acquire(handle)
        if token and not lock.trouble:
            _leave(handle, token)
        yield lock
    finally:
        os.close(handle)


def token_beside(path: Path) -> str:
    """What the last one who held the lock left in it, "" where nothing can be read."""
    try:
        handle = _open_regular(_beside(path), os.O_RDONLY)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as stream:
        return stream.read(TOKEN_BYTES).decode(errors="replace")


def describe(error: OSError) -> str:
    """`[Errno 30] Read-only file system: 'path'`; of a rename the path that it goes to."""
    path = error.filename2 or error.filename
    return f"[Errno {error.errno}] {error.strerror}: {path!r}" if error.errno else str(error)


def _open(path: Path) -> tuple[int | None, str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _open_regular(_beside(path), os.O_RDWR | os.O_CREAT), ""
    except OSError as cause:
        return None, f"no lock: {describe(cause)}"


def _open_regular(path: Path, flags: int) -> int:
    """A handle on a regular file: a link would lead the token into another file, and a pipe would be waited for."""
    handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def _acquire(handle: int) -> Lock:
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            if cause.errno not in BUSY:
                return Lock(trouble=f"no lock: {describe(cause)}")
            if time.monotonic() > deadline:
                return Lock(trouble=f"no lock: another writer held it for {LOCK_PATIENCE_S:.0f} s", busy=True)
            time.sleep(0.02)
        else:
            return Lock()


def _leave(handle: int, token: str) -> None:
    with contextlib.suppress(OSError):  # without it others take a lock of their own, and wait for this one in vain
        os.ftruncate(handle, 0)
        os.pwrite(handle, token.encode(), 0)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")
